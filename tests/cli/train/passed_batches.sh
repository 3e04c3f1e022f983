# A subgraph without training vertices is passed over and nothing is read for it: what the cache has of its rows is
# never taken for what was read. Most batches here are such.
gnnstream generate sbm graph --vertices 20000 --edges 100000 --features 512 --classes 4 >made
mv graph/train_idx.npy all
{
    printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '<i8', 'fortran_order': False, 'shape': (100,), }"
    tail -c +129 all | head -c 800
} >graph/train_idx.npy
gnnstream partition graph store --parts 4 --method natural >made
train=(gnnstream train store --model sage --hidden 4 --layers 1 --sampler saint-node --batch-size 200 --epochs 1
    --eval-every 0)
"${train[@]}" --save memory.safetensors >out 2>err || die "$(<err)"
grep -q ' read 0 B' out || die "something was read: $(<out)"
"${train[@]}" --save all.safetensors --no-cache >out 2>err || die "$(<err)" # of the evaluation: rows stay
grep -q ' read 0 B' out && die "nothing was read: $(<out)"
host=72M
[ -z "${GS_SANITIZED:-}" ] || host=400M # a sanitizer's memory is the program's
"${train[@]}" --save some.safetensors --host-memory $host >out 2>err || die "$(<err)"
if [ -z "${GS_SANITIZED:-}" ] && grep -q ' read 0 B' out; then
    die "nothing was read with $host: $(<out)"
fi
cmp <(tensors memory.safetensors) <(tensors all.safetensors) || die 'other weights with a cache of all rows'
cmp <(tensors memory.safetensors) <(tensors some.safetensors) || die 'other weights with a cache of some'
