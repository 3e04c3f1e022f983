# One bit turned over in any array or edge file: verify and train name the file.
# Nothing that looks like a result is left.
small_store
cp -r store whole
for file in features.bin labels.bin edges.dest.bin input_id.bin; do
    turn_over "store/$file" 1000
    refused 1 "$file" gnnstream verify store
    refused 1 "$file" gnnstream train store --model gcn --epochs 2 --no-cache --save w.safetensors --logits l.npy
    [ ! -e w.safetensors ] && [ ! -e l.npy ] || die "a result from a damaged $file"
    nothing_left
    cp "whole/$file" store
done
gnnstream verify store >text
