#!/usr/bin/env bash
# gradients.sh KIND MODEL... - what one SGD step says of the gradient.
#
# (w0 - w1) / lr equals the reference's analytic gradient, and for the
# steepest element of each parameter the central difference of the engine's
# own loss (the first line of --metrics is the loss at the initial weights).
# The differences are left out of sanitized builds: the same code runs for each
# of their hundreds of losses.
. "$(dirname "$0")/lib.sh"

kind=$1
shift
input_of "$kind"
margin=1e-7
lr=64 # large: w1 then holds more digits of the gradient than of w0

# loss_at WEIGHTS: of the engine.
loss_at()
{
    run "$name: loss" "$GNNSTREAM" train "$store" --model "$text" "${network[@]}" --epochs 1 \
        --optimizer sgd --lr 0.1 --init "$1" --metrics "$work/loss.jsonl" "${options[@]}" || return 1
    loss=$(column loss "$work/loss.jsonl")
}

# The step is a compromise: the loss is known to about 1e-8, and a longer one meets kinks of relu
# (the float64 loss itself gives slopes that are 0.5 % off at 0.0005).
step_of()
{
    case " ${network[*]} " in *" relu "*) step=0.0005 ;; *) step=0.003 ;; esac
}

difference_at()
{
    local at=$1 up down width
    "$REFERENCE" nudge "$init" "$work/up.safetensors" --at "$at,$step"
    "$REFERENCE" nudge "$init" "$work/down.safetensors" --at "$at,-$step"
    width=$(echo "$("$REFERENCE" value "$work/up.safetensors" --at "$at")" \
        "$("$REFERENCE" value "$work/down.safetensors" --at "$at")" | awk '{ printf "%.12g", $1 - $2 }')
    loss_at "$work/up.safetensors" && up=$loss && loss_at "$work/down.safetensors" && down=$loss || return 1
    slope=$(awk -v u="$up" -v d="$down" -v w="$width" 'BEGIN { printf "%.12g", (u - d) / w }')
}

for model in "$@"; do
    network_of "$model"
    method_of "$model"
    step_of
    init=$work/$model.init.safetensors
    reference "$init" --model "$model" "${network[@]}" --epochs 1 --gradient "$work/ref.gradient.safetensors"
    for parts in 1 8; do
        store=$work/$method$parts
        [ -d "$store" ] || run "$kind P=$parts: partition" "$GNNSTREAM" partition "$input" "$store" --method "$method" \
            --parts $parts || continue
        options=()
        [ $parts -gt 1 ] && options=(--no-cache)
        name="$kind $model P=$parts ${options[*]}"
        run "$name: step" "$GNNSTREAM" train "$store" --model "$text" "${network[@]}" --epochs 1 \
            --optimizer sgd --lr $lr --init "$init" --save "$work/step.safetensors" "${options[@]}" || continue
        "$REFERENCE" slope "$init" "$work/step.safetensors" "$work/gradient.safetensors" --lr $lr || exit 99
        compare "$name: gradient" "$work/gradient.safetensors" "$work/ref.gradient.safetensors" 1e-4
    done
    [ -z "${GS_SANITIZED:-}" ] || continue
    while read -r at gradient; do
        [ "$gradient" = 0 ] && continue # a buffer
        difference_at "$at" && near "$name: finite difference at $at" "$slope" "$gradient" 1e-2
    done < <("$REFERENCE" steepest "$work/gradient.safetensors")
done
finish
