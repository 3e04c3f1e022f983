#!/usr/bin/env bash
# train_on_gpu.sh rough|many MODEL... - training (of the zoo's models, or texts of tests/e2e) on the GPU gives the CPU
# device's logits and weights: whatever the number of parts, with everything resident, with copies from host memory, and
# spilling. `many`: the graph's edges have more types than a vertex has edges, and are multiplied by batches, a few
# portions of them.
. "$(dirname "$0")/../e2e/lib.sh"

export GS_CUDA_FETCH_SAVES=0 # rows one by one wherever chunks use at most half of them
kind=$1
shift
input_of "$kind"
[ "$kind" != many ] || export GS_CUDA_PORTION_EDGES=${GS_CUDA_PORTION_EDGES:-1501}
three_partitions "$input" p

# train OUT STORE OPTIONS...: writes OUT.npy and OUT.safetensors.
train()
{
    local out=$work/$1 store=$work/$2
    shift 2
    run "train ${out##*/} $*" "$GNNSTREAM" train "$store" --model "$text" --layers 2 --hidden 16 --epochs 3 --seed 5 \
        --optimizer sgd --lr 0.05 --dropout 0.25 --logits "$out.npy" \
        --save "$out.safetensors" "$@" ${more[@]+"${more[@]}"}
}

for model in "$@"; do
    model_of "$model"
    train $model.cpu p3 --threads 1 || continue
    tight=13M tolerance=1e-4
    [ "${model%-rounded}" = "$model" ] || tolerance=2e-3 # a sum that differs in its last bit may round to the neighbour
    # scratch of sequences grows with a GPU's processors, to 64M
    [ "$model" != sage_lstm ] || [ -z "${GS_TEST_GPU:-}" ] || tight=80M
    if [ "$kind" = many ]; then
        run "$model: plan" "$GNNSTREAM" plan "$work/p3" --model "$text" --hidden 16 --device cuda --json || finish
        if grep -q '"batches": true' "$work/stdout"; then pass; else fail "$model: no batches by type"; fi
    fi
    layouts=("1" "3" "8" "8 --no-cache" "3 --device-memory $tight")
    [ "$kind" != many ] || layouts=("1" "3 --no-cache") # in 8 parts sums by type are predicted to be shorter
    for layout in "${layouts[@]}"; do
        cpu=$model.cpu
        # its sequences follow the store's order of vertices
        if [ "$model" = sage_lstm ] && [ "${layout%% *}" != 3 ]; then
            cpu=$model.cpu${layout%% *}
            [ -e "$work/$cpu.npy" ] || train "$cpu" p${layout%% *} --threads 1 || continue
        fi
        # shellcheck disable=SC2086
        train $model.cuda p$layout --device cuda || continue
        compare "$model: $layout: logits" "$work/$model.cuda.npy" "$work/$cpu.npy" $tolerance
        compare "$model: $layout: weights" "$work/$model.cuda.safetensors" "$work/$cpu.safetensors" $tolerance
    done
    # By Adam, whose state is in the device's memory.
    [ "$model" != sage_lstm ] && [ "$kind" != many ] || continue # slow, and a step is a step
    adam=(--optimizer adam --lr 0.005 --weight-decay 0.01)
    train $model.adam p3 --threads 1 "${adam[@]}" && train $model.cuda p3 --device cuda "${adam[@]}" &&
        compare "$model: weights by Adam" "$work/$model.cuda.safetensors" "$work/$model.adam.safetensors" 1e-4
done
finish
