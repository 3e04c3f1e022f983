#!/usr/bin/env bash
# zoo_exact.sh pairs|many|product MODEL... - three SGD epochs of any model against the float64 reference.
#
# From given weights, on a directed graph with self loops, parallel edges, edge types and weights, and
# vertices without edges: logits and every weight agree within 2e-4, for 1, 3 and 8 parts and with the
# engine's switches (all `--no-...` that it lists; --no-cache is what makes it spill) in these combinations:
#   pairs    all on, all off, each off alone, and runs in which any two of (parts, switches) take each of their
#            values together
#   many     the same on edges of more types than a vertex has edges, which must be multiplied by batches where nothing
#            forbids it
#   product  all of them
. "$(dirname "$0")/lib.sh"

kind=typed
how=$1
shift
[ "$how" = many ] && { how=pairs kind=many; }
epochs=3 tolerance=2e-4
margin=1e-7 # float32's own error; among ten thousands of edge values some are always nearer than a few times that
input_of "$kind"
all_parts=(1 3 8)

# stores METHOD: one of each number of parts, made once.
stores()
{
    local parts
    for parts in "${all_parts[@]}"; do
        [ -d "$work/$1$parts" ] || run "partition P=$parts" "$GNNSTREAM" partition "$input" "$work/$1$parts" \
            --method "$1" \
            --parts "$parts" || finish
    done
}

# --no-verify changes no number.
mapfile -t switches < <("$GNNSTREAM" help train | sed '/^Not available/,$d' |
    sed -n 's/^  \(--no-[a-z-]*\).*/\1/p' | grep -v -e --no-verify)
[ "${#switches[@]}" -ge 4 ] || { echo "no switches in gnnstream help train" >&2; exit 99; }

# combinations: lines of a number of parts and the switches set, as bits.
#
# pairs: of round j = 0 to 4 and its complement, switch i is set in the one where bit j of i is 0, else in the other.
# Two different switches below 16 agree in round 4 and differ in some other, so with the complements they take all four
# pairs of values; and as each round comes with its complement, so do a switch and its parts.
combinations()
{
    local n=${#switches[@]} every i j bits
    every=$(((1 << n) - 1))
    if [ "$how" = product ]; then
        for i in "${all_parts[@]}"; do
            for ((j = 0; j <= every; j++)); do echo "$i $j"; done
        done
        return
    fi
    [ "$n" -le 16 ] || { echo "more than 16 switches: combinations() needs another round" >&2; exit 99; }
    for ((j = 0; j < 5; j++)); do
        bits=0
        for ((i = 0; i < n; i++)); do bits=$((bits | ((i >> j) & 1) << i)); done
        echo "${all_parts[j % 3]} $bits"
        echo "${all_parts[j % 3]} $((every & ~bits))"
    done
    echo "8 0"
    for ((i = 0; i < n; i++)); do echo "${all_parts[(i + 1) % 3]} $((1 << i))"; done
}

# check PARTS BITS: one run of $model.
check()
{
    local options=() i name
    for ((i = 0; i < ${#switches[@]}; i++)); do
        (($2 >> i & 1)) && options+=("${switches[i]}")
    done
    name="$model P=$1 ${options[*]:-all on}"
    rm -f "$work"/out.*
    run "$name" "$GNNSTREAM" train "$work/$method$1" --model "$text" "${network[@]}" --epochs $epochs \
        --optimizer sgd --lr $lr \
        --init "$work/init.safetensors" --logits "$work/out.npy" --save "$work/out.safetensors" \
        --metrics "$work/out.jsonl" ${options[@]+"${options[@]}"} || return
    compare "$name: logits" "$work/out.npy" "$work/ref.npy" $tolerance
    compare "$name: weights" "$work/out.safetensors" "$work/ref.safetensors" $tolerance
    case " ${options[*]} " in
    *" --no-cache "*)
        spilled=$(column written_bytes "$work/out.jsonl" | total)
        if [ "$spilled" -gt 0 ]; then pass; else fail "$name: nothing was spilled"; fi
        ;;
    esac
}

for model in "$@"; do
    network_of "$model"
    method_of "$model"
    stores "$method"
    # Steps that move the weights well, but not so far that the next epochs blow up float32's rounding.
    lr=0.2
    case $model in gin | ggnn | gates | walk) lr=0.02 ;; esac
    reference "$work/init.safetensors" --model "$model" "${network[@]}" --epochs $epochs --lr $lr \
        --logits "$work/ref.npy" --save "$work/ref.safetensors"
    if [ "$kind" = many ]; then
        run "$model: plan" "$GNNSTREAM" plan "$work/${method}3" --model "$text" "${network[@]}" --json || finish
        if grep -q '"batches": true' "$work/stdout"; then pass; else fail "$model: no batches by type"; fi
    fi
    while read -r parts bits; do
        check "$parts" "$bits"
    done < <(combinations)
done
finish
