#!/usr/bin/env bash
# less_work.sh - reading only what edges need gives the same bytes of result as reading everything, and
# less is read: exactly what the plan said.
. "$(dirname "$0")/lib.sh"

run generate "$GNNSTREAM" generate sbm "$work/graph" --vertices 24000 --edges 240000 --features 30 --classes 40 \
    --seed 4 ||
    finish

# field FILE NAME: a number of a JSON text.
field() { grep -o "\"$2\": [0-9]*" "$1" | head -1 | grep -o '[0-9]*$'; }

# same NAME: OPTIONS... against both positions of --no-selective; sets the plan's skipped bytes.
same()
{
    local name=$1 store=$2 way
    shift 2
    for way in "" --no-selective; do
        # shellcheck disable=SC2086
        run "train $name $way" "$GNNSTREAM" train "$store" --epochs 2 --seed 3 "$@" $way --metrics "$work/m$way" \
            --save "$work/w$way.safetensors" --logits "$work/l$way.npy" || return
        # shellcheck disable=SC2086
        run "plan $name $way" "$GNNSTREAM" plan "$store" --epochs 2 --seed 3 --logits "$work/none.npy" "$@" $way \
            --json || return
        grep -o '"name": "train".*' "$work/stdout" >"$work/plan$way"
        if [ "$(field "$work/plan$way" read_bytes)" = "$(field "$work/m$way" read_bytes)" ]; then pass; else
            fail "$name $way: $(field "$work/plan$way" read_bytes) bytes planned, $(field "$work/m$way" read_bytes)"
        fi
    done
    for file in w%.safetensors l%.npy; do
        if cmp -s "$work/${file%\%*}${file#*%}" "$work/${file%\%*}--no-selective${file#*%}"; then pass; else
            fail "$name: ${file%\%*} differs with --no-selective"
        fi
    done
    if [ "$(field "$work/plan--no-selective" skipped_bytes)" = 0 ]; then pass
    else fail "$name: --no-selective skips"; fi
}

# Two of a hundred vertices have labels, all for training: what the loss sees is little, and weights
# are the same to rounding as when everything is computed.
few()
{
    local file=$work/graph/$1 count=$2
    sed -i "1s/(2400,)/($count,) /; 1s/(4800,)/($count,) /" "$file"
    truncate -s $((128 + 8 * count)) "$file"
}

pruned()
{
    local name=$1 store=$2 way
    shift 2
    for way in "" --no-prune; do
        # shellcheck disable=SC2086
        run "train $name $way" "$GNNSTREAM" train "$store" --optimizer sgd --lr 0.1 --epochs 3 --seed 3 "$@" $way \
            --metrics "$work/m$way" --save "$work/w$way.safetensors" --logits "$work/l$way.npy" || return
        # shellcheck disable=SC2086
        run "plan $name $way" "$GNNSTREAM" plan "$store" --logits "$work/none.npy" "$@" $way --json || return
        grep -o '"name": "train".*' "$work/stdout" >"$work/plan$way"
        if [ "$(field "$work/plan$way" read_bytes)" = "$(field "$work/m$way" read_bytes)" ]; then pass; else
            fail "$name $way: $(field "$work/plan$way" read_bytes) bytes planned, $(field "$work/m$way" read_bytes)"
        fi
    done
    compare "$name: weights against --no-prune" "$work/w.safetensors" "$work/w--no-prune.safetensors" 1e-4
    compare "$name: logits against --no-prune" "$work/l.npy" "$work/l--no-prune.npy" 1e-4
}

small=(--no-cache --device-memory 8M)
for method in metis random; do
    run "partition $method" "$GNNSTREAM" partition "$work/graph" "$work/$method" --method $method --parts 12 || finish
    for model in gcn sage gat; do
        same "$method $model" "$work/$method" --model $model --hidden 64 "${small[@]}"
        if [ $method = metis ] && [ "$(field "$work/plan" skipped_bytes)" -eq 0 ]; then
            fail "$method $model: nothing was skipped"
        else
            pass
        fi
    done
done

few train_idx.npy 480
few valid_idx.npy 0
few test_idx.npy 0
for method in metis natural; do
    run "partition $method" "$GNNSTREAM" partition "$work/graph" "$work/few.$method" --method $method --parts 5 ||
        finish
    for model in gcn sage gat ggcn; do
        pruned "$method $model" "$work/few.$method" --model $model --hidden 16
        pruned "$method $model, spilling" "$work/few.$method" --model $model --hidden 16 --no-cache
    done
    pruned "$method gcn, 3 layers, dropout" "$work/few.$method" --model gcn --layers 3 --hidden 16 --dropout 0.5 \
        --eval-every 0 --no-cache
done
# GCN's last layer is trained on 2 % of the edges, its first is summed once before the run.
run "plan gcn" "$GNNSTREAM" plan "$work/few.metis" --model gcn --json
# Labelled vertices and those that they hear stand first in their intervals, so vertex programs run for little more.
rows=$(grep -o '"name": "train".*' "$work/stdout" | grep -o '"rows": [0-9]*' | head -1 | grep -o '[0-9]*$')
if [ "$rows" -gt 0 ] && [ "$rows" -le 15000 ]; then pass; else fail "gcn: an epoch's stages run for $rows rows"; fi
edges=$(grep -o '"name": "train".*' "$work/stdout" | grep -o '"edges": [0-9]*' | head -1 | grep -o '[0-9]*$')
if [ "$edges" -gt 0 ] && [ "$edges" -le $((480000 * 3 / 100)) ]; then pass
else fail "gcn: an epoch goes over $edges edges"; fi
finish
