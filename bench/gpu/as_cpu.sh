#!/usr/bin/env bash
# as_cpu.sh FOLDER - a small graph trained on the GPU and on the processors: the first result that can be wrong. The
# logits agree within 1e-4 of the largest, for sums of rows and for attention. With $GNNSTREAM, $REFERENCE.
set -euo pipefail
: "${GNNSTREAM:?}" "${REFERENCE:?}"
folder=$1
"$GNNSTREAM" generate sbm "$folder" --force --vertices 3000 --edges 40000 --features 32 --classes 8 --seed 1
"$GNNSTREAM" partition "$folder" "$folder.store" --force --method random --parts 3 --seed 1
for model in gcn gat; do
    for device in cuda cpu; do
        "$GNNSTREAM" train "$folder.store" --model $model --hidden 32 --epochs 3 --optimizer sgd --lr 0.05 --seed 1 \
            --keep last --device $device --logits "$folder.$device.npy" --metrics "$folder.$device.jsonl" >/dev/null
    done
    loss() { sed -n '$s/.*"loss": *\([^,}]*\).*/\1/p' "$folder.$1.jsonl"; }
    echo "$model: loss $(loss cuda) on cuda, $(loss cpu) on cpu"
    "$REFERENCE" compare "$folder.cuda.npy" "$folder.cpu.npy" --tolerance 1e-4
done
