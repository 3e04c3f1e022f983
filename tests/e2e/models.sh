#!/usr/bin/env bash
# models.sh MODEL... - every built-in model, and a text of texts/, trains to the same logits and weights whatever the
# number of parts, the memory and the threads; its weights load again and give the same logits.
# (That the mathematics is right is the business of tests/compile.)
. "$(dirname "$0")/lib.sh"

input_of rough

# train OUT STORE OPTIONS...: writes OUT.npy and OUT.safetensors.
train()
{
    local out=$work/$1 store=$work/$2
    shift 2
    run "train ${out##*/}" "$GNNSTREAM" train "$store" --model "$model" --layers 2 --hidden 16 --epochs 3 --seed 5 \
        --optimizer sgd --lr 0.05 --dropout 0.25 --logits "$out.npy" \
        --save "$out.safetensors" "$@" ${more[@]+"${more[@]}"}
}

# set_buffers FILE: every tensor called "...eps" becomes 0.25.
set_buffers()
{
    python3 - "$1" <<'END'
import json, struct, sys
data = bytearray(open(sys.argv[1], "rb").read())
begin = 8 + struct.unpack_from("<Q", data)[0]
names = [n for n in json.loads(data[8:begin]) if n.endswith(".eps")]
for n in names:
    struct.pack_into("<f", data, begin + json.loads(data[8:begin])[n]["data_offsets"][0], 0.25)
open(sys.argv[1], "wb").write(data)
sys.exit(not names)
END
}

for name in "$@"; do
    more=()
    model=$name
    [ -f "$(dirname "$0")/texts/$name.gnn" ] && model=$(dirname "$0")/texts/$name.gnn
    case $name in gat | gatv2) more=(--heads 4) ;; esac
    method_of "$name"
    for parts in 1 3 8; do
        [ -d "$work/$method$parts" ] || run "partition P=$parts" "$GNNSTREAM" partition "$input" "$work/$method$parts" \
            --method "$method" --parts $parts || finish
    done
    train $name.one ${method}1 --threads 1 || continue
    for layout in "3" "8" "8 --no-cache" "3 --no-cache --threads 1"; do
        # shellcheck disable=SC2086
        train $name.other $method$layout || continue
        compare "$name: $layout: logits" "$work/$name.other.npy" "$work/$name.one.npy" 2e-4
        compare "$name: $layout: weights" "$work/$name.other.safetensors" "$work/$name.one.safetensors" 2e-4
    done
    run "predict $name" "$GNNSTREAM" predict "$work/${method}8" --model "$model" --layers 2 --hidden 16 \
        --weights "$work/$name.one.safetensors" --logits "$work/again.npy" ${more[@]+"${more[@]}"} &&
        compare "$name: predict" "$work/again.npy" "$work/$name.one.npy" 1e-4
    [ "$name" = gin ] || continue
    # A buffer's value is in what runs once.
    cp "$work/gin.one.safetensors" "$work/eps.safetensors"
    run "eps = 0.25" set_buffers "$work/eps.safetensors"
    train gin.hoisted ${method}3 --init "$work/eps.safetensors"
    train gin.not ${method}3 --init "$work/eps.safetensors" --no-hoist
    compare "gin: eps in what runs once" "$work/gin.hoisted.npy" "$work/gin.not.npy" 2e-4
done
finish
