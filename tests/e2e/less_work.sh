#!/usr/bin/env bash
# less_work.sh - reading only what edges need gives the same bytes of result as reading everything, and
# less is read: exactly what the plan said.
. "$(dirname "$0")/lib.sh"

run generate "$GNNSTREAM" generate sbm "$work/graph" --vertices 24000 --edges 240000 --features 30 --classes 40 --seed 4 ||
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
        run "plan $name $way" "$GNNSTREAM" plan "$store" --epochs 2 --seed 3 --logits "$work/none.npy" "$@" $way --json || return
        grep -o '"name": "train".*' "$work/stdout" >"$work/plan$way"
        if [ "$(field "$work/plan$way" read_bytes)" = "$(field "$work/m$way" read_bytes)" ]; then pass; else
            fail "$name $way: the plan says $(field "$work/plan$way" read_bytes) bytes, the epoch read $(field "$work/m$way" read_bytes)"
        fi
    done
    for file in w%.safetensors l%.npy; do
        if cmp -s "$work/${file%\%*}${file#*%}" "$work/${file%\%*}--no-selective${file#*%}"; then pass; else
            fail "$name: ${file%\%*} differs with --no-selective"
        fi
    done
    if [ "$(field "$work/plan--no-selective" skipped_bytes)" = 0 ]; then pass; else fail "$name: --no-selective skips"; fi
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
finish
