#!/usr/bin/env bash
# killed_partition.sh [ROUNDS] - partitions that are killed (SIGKILL) at random moments, and two that make one store at
# once. Whatever happens, the store that was there is whole, or the new one is; the next run starts clean, ends with
# the bytes of a run that nothing has disturbed, and leaves nothing beside the store. 4 rounds where it runs as a test.
. "$(dirname "$0")/lib.sh"

rounds=${1:-4}
RANDOM=${GS_SEED:-$$}
place=$work/place
store=$place/s
mkdir "$place"

# same A B: two stores of the same bytes.
same() { diff -rq "$1" "$2" >/dev/null 2>&1; }
# partition GRAPH [exec]
partition() { ${2:-} "$GNNSTREAM" partition "$1" "$store" --parts 8 --method fennel --memory 256M --force; }

# go_on WHAT: the next run, with nothing before it cleared by hand.
go_on()
{
    local begun=${EPOCHREALTIME/./}
    run "$1, and once more" partition "$work/new" || return
    took=$((${EPOCHREALTIME/./} - begun)) # microseconds; other programs may run here, so it changes
    same "$store" "$work/new.store" || fail "$1: the next run's store differs from an undisturbed one's"
    [ "$(ls -A "$place")" = s ] && pass || fail "$1: left beside the store: $(ls -A "$place" | tr '\n' ' ')"
}

seed=0
for graph in old new; do
    run generate "$GNNSTREAM" generate sbm "$work/$graph" --vertices 8000 --edges 80000 --features 32 --classes 4 \
        --seed $((++seed)) || finish
    run partition partition "$work/$graph" || finish
    cp -r "$store" "$work/$graph.store"
done
same "$work/old.store" "$work/new.store" && fail 'the two graphs are one'
go_on 'not killed'

# ---- killed: every other one with a store in place; every third one in the last fifth of its time ----
hit=0 drafts=0 kept=0
for ((round = 0; hit < rounds && round < 10 * rounds; round++)); do
    rm -rf "$store"
    [ $((round % 2)) -eq 0 ] || cp -r "$work/old.store" "$store"
    delay=$((took * (RANDOM % 1100) / 1000))
    [ $((round % 3)) -ne 0 ] || delay=$((took * (800 + RANDOM % 250) / 1000))
    (partition "$work/new" exec) >/dev/null 2>&1 &
    pid=$!
    sleep "$((delay / 1000000)).$(printf %06d $((delay % 1000000)))"
    kill -KILL $pid 2>/dev/null
    wait $pid 2>/dev/null
    [ $? -eq 137 ] && hit=$((hit + 1)) # else it had ended
    what="killed after $delay of $took us"
    compgen -G "$store.unfinished.*" >/dev/null && drafts=$((drafts + 1))
    if [ $((round % 2)) -eq 1 ] && same "$store" "$work/old.store"; then
        kept=$((kept + 1)) && pass
    elif same "$store" "$work/new.store" || { [ $((round % 2)) -eq 0 ] && [ ! -e "$store" ]; }; then
        pass
    else
        fail "$what: neither the old store nor the new one is in place"
    fi
    go_on "$what"
done
note "$hit killed at work, of them $drafts left a draft and $kept kept the old store; $((round - hit)) had ended before"

# ---- two at once ----
refused=0
for ((round = 0; round < rounds; round++)); do
    rm -rf "$store"
    for graph in old new; do
        { partition "$work/$graph" >"$work/$graph.out" 2>"$work/$graph.err"; echo $? >"$work/$graph.rc"; } &
    done
    wait
    done_by=''
    for graph in old new; do
        if [ "$(cat "$work/$graph.rc")" = 0 ]; then
            done_by+=" $graph"
        elif grep -q 'another process is making it' "$work/$graph.err"; then
            refused=$((refused + 1))
        else
            fail 'one of two at once failed otherwise' "$work/$graph.err"
        fi
    done
    whole=no
    for graph in $done_by; do same "$store" "$work/$graph.store" && whole=yes; done
    [ $whole = yes ] && pass || fail "two at once: no whole store of those that were made ($done_by)"
    go_on 'two at once'
done
note "$rounds pairs: $refused runs refused, no store lost"
finish
