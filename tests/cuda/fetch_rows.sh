#!/usr/bin/env bash
# fetch_rows.sh - where chunks read few of an interval's rows, only those are copied to the GPU: fewer bytes, the same
# weights.
. "$(dirname "$0")/../e2e/lib.sh"

run "generate" "$GNNSTREAM" generate sbm "$work/graph" --vertices 2000 --edges 500 --features 32 --classes 4 --seed 3
run "partition" "$GNNSTREAM" partition "$work/graph" "$work/store" --method random --parts 2 --seed 1 || finish

# train SAVES: copies only used rows where that saves so many bytes a launch. Of the features, which come from the disk
# anew in every epoch and which no launch has written: what one has is on the GPU still.
train()
{
    GS_CUDA_FETCH_SAVES=$1 "$GNNSTREAM" train "$work/store" --model sage --hidden 64 --epochs 2 --optimizer sgd \
        --device cuda --no-cache \
        --no-hoist --no-move --no-prune --metrics "$work/metrics.$1" --save "$work/$1.safetensors"
}
copied() { column copied_in_bytes "$work/metrics.$1" | tail -n 1; }

run "train, whole intervals" train 1000000000
run "train, rows that are used" train 0
compare "weights" "$work/0.safetensors" "$work/1000000000.safetensors" 0
whole=$(copied 1000000000) some=$(copied 0)
note "bytes to the GPU in an epoch: $some instead of $whole"
# 2000 rows of 32 floats, of which the 1000 directed edges name at most half.
if [ $((whole - some)) -ge $((1000 * 32 * 4 * 8 / 10)) ]; then pass
else fail "$some bytes, not enough below $whole"; fi
finish
