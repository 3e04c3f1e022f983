# Where the edges do not fit in memory beside the rest of a run on batches of neighbours, they are read from the store,
# a pass over the columns for a hop of a group of batches, within the least budget that a refusal names; the weights are
# the same to the bit.
gnnstream generate rmat graph --vertices 50000 --edges 6000000 --features 8 --seed 1 >made
gnnstream partition graph store --parts 8 --method natural >made
train=(gnnstream train store --model sage --hidden 8 --sampler neighbor --batch-size 1000 --fanout 3,3 --epochs 1
    --eval-every 0 --host-memory)
"${train[@]}" 20M >out 2>err && die '20M is enough'
least=$(sed -n 's/.*host-memory 20.0 MiB is too small.* at least \([0-9]*\)M.*/\1/p' err)
[ -n "$least" ] || die "$(<err)"
does=$least
[ -z "${GS_SANITIZED:-}" ] || does=$((least + least / 4)) # freed memory stays for a while
"${train[@]}" "${does}M" --save read.safetensors >out 2>err || die "$(<err)"
[ -n "${GS_SANITIZED:-}" ] || ! grep -q ' read 0 B' out || die "nothing was read: $(<out)"
"${train[@]}" 1G --save memory.safetensors >out 2>err || die "$(<err)"
grep -q ' read 0 B' out || die "edges or features were read: $(<out)"
cmp <(tensors memory.safetensors) <(tensors read.safetensors) || die 'other weights'
# Other samplers need their edges in memory, and say so.
refused 1 'needs its edges in host memory' gnnstream train store --model sage --sampler cluster --batch-size 2 \
    --host-memory 20M
