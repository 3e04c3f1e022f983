# One device of cpu:N trains batches, too, as the processors do that it is.
small_store
train=(gnnstream train store --model sage --hidden 4 --epochs 1 --sampler neighbor --batch-size 300 --fanout 4,4
    --threads 2)
"${train[@]}" --save cpu.safetensors >out 2>err || die "$(<err)"
"${train[@]}" --device cpu:1 --save one.safetensors >out 2>err || die "$(<err)"
cmp <(tensors cpu.safetensors) <(tensors one.safetensors) || die 'other weights'
