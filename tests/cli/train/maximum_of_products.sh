# The gradient of a maximum goes to the edges whose value equals it, and the value is a product that each pass makes
# again, in tiles that threads cut in other places: a step's weights are the same for any number of threads.
gnnstream generate sbm graph --vertices 1500 --edges 9000 --features 8 --classes 4 >made
gnnstream partition graph store --parts 1 --method natural >made
cat >edgeconv.gnn <<'END'
layer edgeconv(h[in]) -> [out]:
    param nn.0.weight[out, 2 * in], nn.0.bias[out], nn.2.weight[out, out], nn.2.bias[out]
    return max(relu(concat(v.h, u.h - v.h) @ nn.0.weight' + nn.0.bias) @ nn.2.weight' + nn.2.bias)
END
for threads in 1 2 3; do
    gnnstream train store --model edgeconv.gnn --hidden 8 --epochs 1 --optimizer sgd --lr 1 --keep last \
        --threads $threads --save $threads.safetensors >made
    cmp 1.safetensors $threads.safetensors || die "the weights of $threads threads"
done
