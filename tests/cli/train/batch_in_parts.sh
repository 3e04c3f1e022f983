# A batch with more than a quarter above what the largest of the trial batches had goes in parts, of features in memory
# and of those that are read alike. With this seed batch 3 of the first epoch is one.
gnnstream generate rmat graph --vertices 20000 --edges 400000 --features 16 >made
gnnstream partition graph store --parts 4 --method natural >made
train=(gnnstream train store --model sage --hidden 4 --sampler neighbor --batch-size 256 --fanout 3000 --epochs 1
    --eval-every 0 --seed 33 --dropout 0.3)
"${train[@]}" --save memory.safetensors >out 2>err || die "$(<err)"
"${train[@]}" --save read.safetensors --no-cache >out 2>err || die "$(<err)"
grep -q ' read 0 B' out && die "nothing was read: $(<out)"
cmp <(tensors memory.safetensors) <(tensors read.safetensors) || die 'other weights'
