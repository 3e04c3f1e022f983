#!/usr/bin/env bash
# rounded.sh MODEL... - `--spill-type bf16`: what is kept for later stages is rounded, in every layout alike; results
# stay within what bf16's 8 bits allow, and less is moved.
. "$(dirname "$0")/lib.sh"

input_of typed
for parts in 1 8; do
    run "partition P=$parts" "$GNNSTREAM" partition "$input" "$work/p$parts" --method fennel --parts $parts || finish
done

# train OUT STORE OPTIONS...: writes OUT.npy.
train()
{
    local out=$work/$1 store=$work/$2
    shift 2
    run "train ${out##*/} $*" "$GNNSTREAM" train "$store" --model "$text" "${network[@]}" --hidden 32 --epochs 4 \
        --optimizer sgd --lr 0.1 \
        --seed 5 --logits "$out.npy" "$@"
}

# moved OPTIONS...: bytes that a training epoch reads and writes where nothing is kept.
moved()
{
    "$GNNSTREAM" plan "$work/p8" --model "$text" "${network[@]}" --hidden 32 --no-cache --json "$@" |
        python3 -c 'import json, sys
train = [p for p in json.load(sys.stdin)["passes"] if p["name"] == "train"]
print(sum(p["read_bytes"] + p["written_bytes"] for p in train))'
}

rounded=(--spill-type bf16)
for model in "$@"; do
    network_of "$model"
    train full p8 || continue
    train a p8 "${rounded[@]}" --threads 1
    train b p8 "${rounded[@]}" --threads 1
    train c p8 "${rounded[@]}" --threads 2
    train d p1 "${rounded[@]}"
    train e p8 "${rounded[@]}" --no-cache
    train f p8 "${rounded[@]}" --device cpu:2
    if cmp -s "$work/a.npy" "$work/b.npy"; then pass; else fail "$model: the same command twice differs"; fi
    if cmp -s "$work/a.npy" "$work/full.npy"; then fail "$model: nothing was rounded"; else pass; fi
    compare "$model: rounded against not" "$work/a.npy" "$work/full.npy" 1e-2
    # A float32 sum in another order now and then rounds to the neighbour: 1 / 256 of one element.
    for run in c d e f; do
        compare "$model: run $run" "$work/$run.npy" "$work/a.npy" 2e-3
    done
    case $model in gcn | sage) ;; *) continue ;; esac # others may cut their stages elsewhere
    less=$(moved "${rounded[@]}") more=$(moved)
    if [ -n "$less" ] && [ "$less" -lt "$more" ]; then pass; else fail \
        "$model: $less bytes moved, $more without rounding"; fi
done

finish
