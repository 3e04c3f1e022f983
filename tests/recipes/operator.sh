# A model with the operator computes what one that says the same with others does, bit for bit: forward and back.
gnnstream generate sbm graph --vertices 300 --edges 2000 --features 8 --classes 3 --seed 1 >made
gnnstream partition graph store --parts 2 --method random --seed 1 >made
for square in 'square(x)' 'x * x'; do
    cat >mine.gnn <<TEXT
layer mine(h[in]) -> [out]:
    param w[out, in]
    x = h @ w'
    y = $square
    return mean(u.y)
TEXT
    gnnstream train store --model ./mine.gnn --layers 2 --hidden 8 --epochs 4 --seed 3 --lr 0.01 \
        --logits "${square%%[( ]*}.npy" >said
done
cmp square.npy x.npy
