#!/usr/bin/env bash
# shared_folders.sh [ROUNDS] - two PID namespaces, as two containers have, with the same folders: in each, at once, a
# training that spills, a partition to one place and a prediction, with one name for each result. Afterwards each result
# is one run's, whole, and nothing else is there; only a partition may be refused, as another makes that store.
. "$(dirname "$0")/lib.sh"
rounds=${1:-2}
if ! unshare --pid --fork --mount-proc true 2>/dev/null; then
    echo 'SKIP no PID namespace can be made here (needs root)'
    exit 77
fi

one=(--model gcn --hidden 8 --threads 1)
run generate "$GNNSTREAM" generate sbm "$work/graph" --vertices 500 --edges 4000 --features 8 --classes 3 --seed 1
run partition "$GNNSTREAM" partition "$work/graph" "$work/store" --parts 3 --method random --seed 1
run weights "$GNNSTREAM" train "$work/store" "${one[@]}" --epochs 1 --save "$work/start" || finish
run 'the training alone' "$GNNSTREAM" train "$work/store" "${one[@]}" --epochs 3 --no-cache --save "$work/want.w"
run 'the prediction alone' "$GNNSTREAM" predict "$work/store" "${one[@]}" --weights "$work/start" \
    --logits "$work/want.l"
mkdir "$work/out" "$work/spill"

# container NUMBER: its three runs, each one's status and words in files of its own.
container()
{
    local at="$work/out/said.$1"
    unshare --pid --fork --mount-proc bash -c '
        at=$1 work=$2 program=$3
        shift 3
        note() { local to=$1; shift; "$@" >/dev/null 2>"$to.err"; echo $? >"$to.rc"; }
        note "$at.train" "$program" train "$work/store" "$@" --epochs 3 --no-cache --spill "$work/spill" \
            --save "$work/out/w" --metrics "$work/out/m" &
        note "$at.predict" "$program" predict "$work/store" "$@" --weights "$work/start" --logits "$work/out/l" &
        note "$at.partition" "$program" partition "$work/graph" "$work/out/store" --parts 3 --method random --seed 1 \
            --force &
        wait' container "$at" "$work" "$GNNSTREAM" "${one[@]}"
}

wrong=0 refused=0
blame() { wrong=$((wrong + 1)) && fail "round $round: $1"; }
for ((round = 1; round <= rounds; round++)); do
    container 1 &
    container 2 &
    wait
    for at in "$work"/out/said.*.rc; do
        [ "$(<"$at")" = 0 ] && continue
        if [[ $at == *partition* ]] && grep -q 'another process is making it' "${at%rc}err"; then
            refused=$((refused + 1))
        else
            blame "$(basename "$at") $(<"$at"): $(<"${at%rc}err")"
        fi
    done
    cmp -s "$work/out/w" "$work/want.w" || blame 'other weights'
    cmp -s "$work/out/l" "$work/want.l" || blame 'other logits'
    [ "$(grep -c '^{"epoch".*}$' "$work/out/m")" = 3 ] || blame "metrics: $(<"$work/out/m")"
    "$GNNSTREAM" verify "$work/out/store" >/dev/null 2>&1 || blame 'the store is damaged'
    left=$(cd "$work" && ls -A out spill store/spill.* 2>/dev/null | grep -E '^\.gnnstream|spill\.|unfinished|lock')
    [ -z "$left" ] || blame "left behind: $left"
    rm -f "$work"/out/said.*
done
echo "$rounds rounds of 6 runs: $wrong wrong, $refused partitions refused"
[ $wrong = 0 ] && pass
finish
