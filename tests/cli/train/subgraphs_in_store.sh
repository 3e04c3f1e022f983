# GraphSAINT's subgraphs, where the edges do not fit in memory, are drawn of edges in the store, within the least budget
# that a refusal names: a pass for each step along edges and one for the edges between vertices. The weights are the
# same to the bit, with coefficients, too.
gnnstream generate rmat graph --vertices 50000 --edges 6000000 --features 8 --seed 1 >made
gnnstream partition graph store --parts 8 --method natural >made
for batches in 'saint-edge --batch-size 500' 'saint-walk --batch-size 500 --walk-length 1 --coverage 1'; do
    # shellcheck disable=SC2086 # a list of words
    train=(gnnstream train store --model sage --hidden 8 --sampler $batches --epochs 1 --eval-every 0 --keep last
        --host-memory)
    "${train[@]}" 20M >out 2>err && die '20M is enough'
    least=$(sed -n 's/.*host-memory 20.0 MiB is too small.* at least \([0-9]*\)M.*/\1/p' err)
    [ -n "$least" ] || die "$batches: $(<err)"
    does=$least
    [ -z "${GS_SANITIZED:-}" ] || does=$((3 * least)) # freed memory stays for a while
    "${train[@]}" "${does}M" --save read.safetensors >out 2>err || die "$batches: $(<err)"
    [ -n "${GS_SANITIZED:-}" ] || grep -q ' read [0-9.]* GiB' out || die "$batches: edges were not read: $(<out)"
    "${train[@]}" 1G --save memory.safetensors >out 2>err || die "$batches: $(<err)"
    grep -q ' read 0 B' out || die "$batches: edges or features were read: $(<out)"
    cmp <(tensors memory.safetensors) <(tensors read.safetensors) || die "$batches: other weights"
done
# Coefficients that do not fit are refused by their name.
refused 1 '--coverage 4000: takes 1.5 GiB where edges do not fit in memory' gnnstream train store --model sage \
    --sampler saint-node --batch-size 300 --coverage 4000 --host-memory 26M
