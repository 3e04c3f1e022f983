# What can be seen to be impossible is refused, and leaves what was there as it was.
small_store
t() { refused 1 "$1" gnnstream train store --model gcn --epochs 2 "${@:2}"; }
t '--host-memory 1.0 MiB is too small' --host-memory 1M
t '--host-memory' --host-memory 16M --device-memory 12M
t 'at least' --device-memory 64K
printf '\2\0\0\0\0\0\0\0{}' >w.safetensors
cp w.safetensors old
t 'epoch' --optimizer sgd --lr 1e30 --epochs 20 --save w.safetensors
cmp w.safetensors old || die 'an old result was replaced by none'
t 'w.safetensors' --init w.safetensors
t 'none.safetensors' --init none.safetensors
t 'no/such' --save no/such/w.safetensors
t 'no/such' --logits no/such/l.npy
mkdir folder
for option in --save --logits --metrics --trace --init; do
    t 'is a folder' $option folder
done
refused 1 'is a folder' gnnstream train store --model folder
rmdir folder
t 'no/such' --metrics no/such/m.jsonl
refused 1 'nomodel' gnnstream train store --model nomodel
refused 2 '--batch-size 1024 (the default): counts intervals of the store with --sampler cluster, and store has 3' \
    gnnstream train store --model gcn --sampler cluster
refused 2 '--batch-size 4: counts intervals of the store with --sampler cluster, and store has 3; use 1 to 3' \
    gnnstream train store --model gcn --sampler cluster --batch-size 4
refused 2 '--act wobble' gnnstream train store --model gcn --act wobble
gnnstream train store --model gcn --hidden 8 --epochs 1 --save narrow.safetensors >result
t '"convs.0.lin.weight" has shape [8, 12], the model wants [16, 12]' --hidden 16 --init narrow.safetensors
refused 2 '--hidden 16: the weights narrow.safetensors have 8' \
    gnnstream predict store --model gcn --hidden 16 --weights narrow.safetensors --logits l.npy
refused 2 '--layers 1: the weights narrow.safetensors have 2' \
    gnnstream predict store --model gcn --hidden 8 --layers 1 --weights narrow.safetensors --logits l.npy
[ ! -e l.npy ] || die 'logits of weights that do not fit'
# A device's memory that a topology gives is named as such.
echo '{"switches": [{"devices": 1, "memories": [1000]}, {"devices": 1, "memories": [9e6]}]}' >memories.json
refused 1 'it is the least of --topology'"'"'s "memories"' gnnstream train store --model gcn --device cpu:2 \
    --topology memories.json
nothing_left
