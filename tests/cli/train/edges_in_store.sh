# Where the edges do not fit in memory beside the rest of a run on batches, they are read from the store, within the
# least budget that a refusal names: of neighbours, a pass over the columns for a hop of a group of batches; of
# clusters, the chunks of their own. The weights are the same to the bit.
gnnstream generate rmat graph --vertices 50000 --edges 6000000 --features 8 --seed 1 >made
gnnstream partition graph store --parts 8 --method natural >made
for batches in 'neighbor --batch-size 1000 --fanout 3,3' 'cluster --batch-size 1'; do
    # shellcheck disable=SC2086 # a list of words
    train=(gnnstream train store --model sage --hidden 8 --sampler $batches --epochs 1 --eval-every 0 --keep last
        --host-memory)
    "${train[@]}" 20M >out 2>err && die '20M is enough'
    least=$(sed -n 's/.*host-memory 20.0 MiB is too small.* at least \([0-9]*\)M.*/\1/p' err)
    [ -n "$least" ] || die "$batches: $(<err)"
    does=$least
    [ -z "${GS_SANITIZED:-}" ] || does=$((least + least / 4)) # freed memory stays for a while
    "${train[@]}" "${does}M" --save read.safetensors >out 2>err || die "$batches: $(<err)"
    [ -n "${GS_SANITIZED:-}" ] || ! grep -q ' read 0 B' out || die "$batches: nothing was read: $(<out)"
    "${train[@]}" 1G --save memory.safetensors >out 2>err || die "$batches: $(<err)"
    grep -q ' read 0 B' out || die "$batches: edges or features were read: $(<out)"
    cmp <(tensors memory.safetensors) <(tensors read.safetensors) || die "$batches: other weights"
done
