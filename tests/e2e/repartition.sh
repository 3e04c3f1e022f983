#!/usr/bin/env bash
# repartition.sh - a refusal of a budget names the parts to partition again with, and with them it does; without --parts
# a store has a grid that serves small budgets, whatever memory there was to make it.
. "$(dirname "$0")/lib.sh"

run generate "$GNNSTREAM" generate rmat "$work/input" --vertices 100000 --edges 600000 --features 64 --classes 8 \
    --seed 4 || finish
run 'one part' "$GNNSTREAM" partition "$work/input" "$work/whole" --parts 1 --method natural || finish

number=0 models=gcn
[ -z "${GS_TEST_ALL:-}" ] || models='gcn gat sage'
[ -z "${GS_SANITIZED:-}" ] || [ -n "${GS_TEST_ALL:-}" ] || models=gat # plans of many parts are slow there
for model in $models; do
    for budgets in 'cpu 60M 64M' 'cpu 200M 12M' 'cpu:2 200M 12M' 'cpu 48M 16M'; do
        read -r on host device <<<"$budgets"
        # A sanitized program takes some 60 MiB for itself, which no grid makes less.
        [ -z "${GS_SANITIZED:-}" ] || [ "${host%M}" -ge 200 ] || continue
        # Every other of them.
        number=$((number + 1))
        [ -n "${GS_TEST_ALL:-}" ] || [ $((number % 2)) -eq 1 ] || continue
        options=(--model $model --device "$on" --host-memory "$host" --device-memory "$device")
        refuse 1 'needs at least .*; or partition again with --parts [0-9]*$' "$GNNSTREAM" plan "$work/whole" \
            "${options[@]}" || continue
        parts=$(sed -n 's/.*--parts \([0-9]*\)$/\1/p' "$work/stderr")
        run "$parts parts" "$GNNSTREAM" partition "$work/input" "$work/finer" --parts "$parts" --method natural \
            --force || continue
        run "$model on $on in $host and $device, $parts parts" "$GNNSTREAM" plan "$work/finer" "${options[@]}"
    done
    number=$((number + 1))
done

# 300,000 vertices of 256 floats at least, 64 MiB of them an interval: five, in 14 MiB each.
run 'large graph' "$GNNSTREAM" generate rmat "$work/large" --vertices 300000 --edges 600000 --features 8 --classes 8 \
    --seed 4 || finish
run 'no --parts' "$GNNSTREAM" partition "$work/large" "$work/large.store" --method natural --memory 4G || finish
grep -q '^5 parts' "$work/stdout" && pass || fail "without --parts: $(head -n 1 "$work/stdout")"
finish
