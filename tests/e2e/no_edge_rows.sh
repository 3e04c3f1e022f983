#!/usr/bin/env bash
# no_edge_rows.sh - training allocates and spills nothing that has a row an edge.
#
# Attention models on the same vertices with 80,000 edges and with 16 times as many, nothing cached: the bytes
# spilled are the same, and what all allocations of the process together hold (counted from outside, by
# tests/support/alloc_log.c) grows by less than one float for each added edge. The chunks of the store that are
# being read are in there: they are what the ring bounds.
. "$(dirname "$0")/lib.sh"

: "${ALLOC_LOG_MODULE:?}"
vertices=4096 few=80000 many=1280000
host=40M
for edges in $few $many; do
    run "generate $edges" "$GNNSTREAM" generate rmat "$work/g$edges" --vertices $vertices --edges $edges --features 16 \
        --classes 4 --seed 1 || finish
    run "partition $edges" "$GNNSTREAM" partition "$work/g$edges" "$work/s$edges" --parts 8 --method random || finish
done

# train EDGES OPTIONS...: leaves metrics in m$EDGES and the allocations in a$EDGES.
train()
{
    local edges=$1
    shift
    run "$model $edges" env LD_PRELOAD="$ALLOC_LOG_MODULE" ALLOC_LOG="$work/a$edges" "$GNNSTREAM" train \
        "$work/s$edges" "$@"
}

for model in gat gatv2; do
    for edges in $few $many; do
        train $edges --model $model --heads 8 --hidden 64 --epochs 1 --no-cache --threads 2 --host-memory $host \
            --device-memory 8M --metrics "$work/m$edges" || finish
        spilled=$(column written_bytes "$work/m$edges" | total)
        if [ "$spilled" -gt $((vertices * 64 * 4)) ]; then pass
        else fail "$model $edges: $spilled bytes spilled: too few"; fi
    done
    near "$model: bytes spilled with 16 times the edges" "$(column written_bytes "$work/m$many" | total)" \
        "$(column written_bytes "$work/m$few" | total)" 0
    before=$(sed -n 's/^peak //p' "$work/a$few") after=$(sed -n 's/^peak //p' "$work/a$many")
    if [ "$before" -gt $((4 << 20)) ] && [ $((after - before)) -lt $((4 * (many - few))) ]; then pass; else
        fail "$model: allocations hold $before bytes with $few edges, $after with $many"
    fi
done
finish
