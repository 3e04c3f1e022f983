#!/usr/bin/env bash
# exactness.sh KIND LAYERS LR METHODS PARTS - five SGD epochs against the float64 reference.
#
# For GCN and GraphSAGE, from the same initial weights, over every method and
# number of parts, once with what fits in memory and once with nothing kept:
# losses, logits and weights agree with the reference.
. "$(dirname "$0")/lib.sh"

kind=$1 layers=$2 lr=$3 methods=$4 all_parts=$5
epochs=5 tolerance=1e-4
input_of "$kind"

for model in gcn sage; do
    reference "$work/$model.init.safetensors" --model $model --layers "$layers" --epochs $epochs --lr "$lr" \
        --logits "$work/$model.ref.npy" --save "$work/$model.ref.safetensors" --losses "$work/$model.ref.losses"
done

# check MODEL NAME OPTIONS...: one training run of the store, against the reference.
check()
{
    local model=$1 name="$kind $1 $2"
    shift 2
    rm -f "$work"/out.*
    run "$name" "$GNNSTREAM" train "$store" --model "$model" --layers "$layers" --hidden 16 --epochs $epochs \
        --optimizer sgd --lr "$lr" --init "$work/$model.init.safetensors" --logits "$work/out.npy" \
        --save "$work/out.safetensors" --metrics "$work/out.jsonl" "$@" || return
    compare "$name: logits" "$work/out.npy" "$work/$model.ref.npy" $tolerance
    compare "$name: weights" "$work/out.safetensors" "$work/$model.ref.safetensors" $tolerance
    near "$name: loss of the last epoch" "$(column loss "$work/out.jsonl" | tail -n 1)" \
        "$(tail -n 1 "$work/$model.ref.losses")" 1e-5
    near "$name: lines of metrics" "$(wc -l <"$work/out.jsonl")" $epochs 0
}

for method in $methods; do
    for parts in $all_parts; do
        store=$work/store
        rm -rf "$store"
        run "$kind $method P=$parts: partition" "$GNNSTREAM" partition "$input" "$store" --method "$method" \
            --parts "$parts" --seed 1 || continue
        run "$kind $method P=$parts: verify" "$GNNSTREAM" verify "$store"
        for model in gcn sage; do
            check $model "$method P=$parts in memory"
            check $model "$method P=$parts spilling" --no-cache
            if [ "$layers" -gt 1 ] && [ -f "$work/out.jsonl" ]; then
                if [ "$(column written_bytes "$work/out.jsonl" | total)" -gt 0 ]; then
                    pass
                else
                    fail "$kind $model $method P=$parts: --no-cache wrote nothing, so nothing was spilled"
                fi
            fi
        done
    done
done
finish
