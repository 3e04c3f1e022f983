#!/usr/bin/env bash
# half_features.sh cpu|cuda - features of two bytes a number, 23 columns and 32, which edge passes sum as they are:
# three SGD epochs are the float64 reference's on the same rounded features, for 1, 3 and 8 parts, in memory and
# spilling, with the sums computed once and in every epoch, on one device and on several.
. "$(dirname "$0")/lib.sh"

device=$1
layouts=("1" "3" "8" "1 --no-hoist" "8 --no-cache" "3 --no-cache --no-hoist" "8 --no-cache --no-prune"
    "3 --no-selective")
if [ "$device" = cpu ]; then
    layouts+=("3 --device cpu:2" "8 --device cpu:3 --no-cache" "8 --device cpu:2 --no-hoist --no-chain")
else
    export GS_CUDA_FETCH_SAVES=0 # rows one by one wherever chunks use at most half of them
    layouts=("1 --device cuda" "3 --device cuda --no-hoist" "8 --device cuda --no-cache --no-hoist"
        "3 --device cuda --no-hoist --device-memory 13M")
fi

# check MODEL KIND TYPE: `weights` is a fixed start.
check()
{
    local layout name both=(--model "$1" --layers 2 --hidden 40 --epochs 3 --optimizer sgd --lr 0.05)
    local weights=$work/$1.$2.safetensors
    reference "$weights" "${both[@]}" --feature-type "$3" --logits "$work/ref.npy" --save "$work/ref.safetensors"
    for layout in "${layouts[@]}"; do
        name="$1, $2, $3: $layout"
        rm -f "$work"/out.*
        # shellcheck disable=SC2086
        run "$name" "$GNNSTREAM" train "$work/$2.$3"$layout "${both[@]}" --init "$weights" --logits "$work/out.npy" \
            --save "$work/out.safetensors" || continue
        compare "$name: logits" "$work/out.npy" "$work/ref.npy" 2e-4
        compare "$name: weights" "$work/out.safetensors" "$work/ref.safetensors" 2e-4
    done
}

for kind in typed symmetric; do
    input_of $kind
    for type in bf16 f16; do
        [ "$device.$kind.$type" != cuda.typed.f16 ] && [ "$device.$kind.$type" != cuda.symmetric.bf16 ] ||
            continue # kernels on fibres are slow
        for parts in 1 3 8; do
            run "partition P=$parts" "$GNNSTREAM" partition "$input" "$work/$kind.$type$parts" --method fennel \
                --parts $parts --feature-type $type || finish
        done
        for model in gcn sage gin; do
            check $model $kind $type
        done
    done
done
finish
