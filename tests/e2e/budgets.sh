#!/usr/bin/env bash
# budgets.sh - a refusal names the smallest budget that works; with it, and with
# everything from there to plenty, a run gives the same result, reads the less the more
# memory it has, and stays inside (the last is left out under sanitizers, whose
# own memory is the process's: GS_SANITIZED).
. "$(dirname "$0")/lib.sh"

run generate "$GNNSTREAM" generate sbm "$work/input" --vertices 20000 --edges 200000 --features 96 --classes 5 \
    --seed 2 || finish
store=$work/store
run partition "$GNNSTREAM" partition "$work/input" "$store" --parts 24 --method fennel || finish
files=$(echo "$store"/*)
# The logits count too: a refusal speaks of the very run that is asked for.
train=("$GNNSTREAM" train "$store" --hidden 24 --epochs 2 --dropout 0.3 --optimizer sgd --lr 0.5
    --logits "$work/tight.npy")

# least: the size that the last refusal names, in MiB.
least() { sed -n 's/.*needs at least \([0-9]*\)M.*/\1/p' "$work/stderr"; }

models=sage more_of_them='0 30' # (e2e/least-budgets draws models)
[ -z "${GS_TEST_ALL:-}" ] || models='gcn sage' more_of_them='0 6 30'
for model in $models; do
    run "$model: plenty" "${train[@]}" --model $model --metrics "$work/plenty.jsonl" || continue
    mv "$work/tight.npy" "$work/plenty.npy"
    refuse 1 'device-memory.*needs at least [0-9]*M' "${train[@]}" --model $model --device-memory 4K || continue
    device=$(least)
    refuse 1 'host-memory.*needs at least [0-9]*M' "${train[@]}" --model $model --device-memory "${device}M" \
        --host-memory 4K || continue
    host=$(least)
    [ "$device" -gt 1 ] && refuse 1 'device-memory' "${train[@]}" --model $model --device-memory $((device - 1))M
    refuse 1 'host-memory' "${train[@]}" --model $model --device-memory "${device}M" --host-memory $((host - 5))M
    before=
    for more in $more_of_them; do
        name="$model, $((host + more)) MiB of host and $device MiB of device memory"
        run "$name" "${train[@]}" --model $model --device-memory "${device}M" --host-memory $((host + more))M \
            --metrics "$work/tight.jsonl" || continue
        compare "$name: logits" "$work/tight.npy" "$work/plenty.npy" 1e-5
        bytes=$(column read_bytes "$work/tight.jsonl" | tail -n 1)
        [ "$bytes" -le "${before:-$bytes}" ] && pass ||
            fail "$name: reads $bytes bytes an epoch, with less memory $before"
        before=$bytes
        peak=$(column peak_host_bytes "$work/tight.jsonl" | tail -n 1)
        [ -n "${GS_SANITIZED:-}" ] || [ "$peak" -le $(((host + more) << 20)) ] && pass ||
            fail "$name: $peak bytes were resident"
        peak=$(column peak_device_bytes "$work/tight.jsonl" | tail -n 1)
        [ "$peak" -le $((device << 20)) ] && pass || fail "$name: $peak bytes of device memory"
        [ $more -gt 0 ] || spilled=$(column written_bytes "$work/tight.jsonl" | tail -n 1)
    done
    [ "${spilled:-0}" -gt 0 ] && pass || fail "$model: nothing was spilled at the smallest budget"
    [ "$(echo "$store"/*)" = "$files" ] && pass ||
        fail "$model: the store's folder now holds $(ls "$store" | tr '\n' ' ')"
done

# Planning keeps the budget too: of 160 parts a plan is 10 MiB, and many are compared, of two programs.
[ -z "${GS_SANITIZED:-}" ] || finish
run generate "$GNNSTREAM" generate rmat "$work/many" --vertices 10000 --edges 150000 --features 8 --classes 4 --seed 2
run partition "$GNNSTREAM" partition "$work/many" "$work/many.store" --parts 160 --method random || finish
run 'many parts' "$GNNSTREAM" train "$work/many.store" --model sage --hidden 16 --epochs 1 --device-memory 5M \
    --host-memory 64M --metrics "$work/many.jsonl" || finish
peak=$(column peak_host_bytes "$work/many.jsonl" | tail -n 1)
[ "$peak" -le $((64 << 20)) ] && pass || fail "many parts: $peak bytes were resident, of 64 MiB"
# Partitioning keeps what it names, too, of which the process's own memory is a part.
for method in lp random; do
    size=4K
    for _ in 1 2 3; do # one for each of what it takes: vertices, chunks, the largest chunk
        "$GNNSTREAM" partition "$work/many" "$work/small" --parts 30 --method $method --memory "${size:-1}" --force \
            >"$work/stdout" 2>"$work/stderr" && break
        size=$(sed -n 's/.*at least \([0-9]*M\).*/\1/p' "$work/stderr")
    done
    peak=$(sed -n 's/.*at most \([0-9]*\)\.[0-9] MiB resident/\1/p' "$work/stdout")
    [ -n "$peak" ] && [ "$peak" -lt "${size%M}" ] && pass ||
        fail "partition by $method: $peak MiB were resident of $size" "$work/stderr"
done
finish
