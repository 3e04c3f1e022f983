#!/usr/bin/env bash
# least_budgets.sh - the smallest budgets that refusals name work and hold, whatever is trained on whatever store:
#     least_budgets.sh [ROUNDS] [SEED] [FIRST]
# (without GS_TEST_ALL from the second on: the first of seed 7 plans for half a minute)
# draws ROUNDS cases of model, layers, widths, store, devices and options by SEED, asks each from number FIRST on for
# its smallest budgets, both or the host's alone, and trains two epochs with them, inside a memory cgroup of that size
# where one can be made (version 1, as root), and looks at what was resident at the most in any case.
. "$(dirname "$0")/lib.sh"
rounds=${1:-3} seed=${2:-7} first=${3:-${GS_TEST_ALL:+1}}
first=${first:-2}
RANDOM=$seed

# pick A B ...: one of them, in $REPLY (a subshell would draw the same number again)
pick()
{
    shift $((RANDOM % $#))
    REPLY=$1
}
for kind in sbm rmat; do
    for n in 300 3000; do
        pick 4 10 30
        graph=(--vertices $n --edges $((n * REPLY)) --classes 4 --seed $RANDOM --force)
        pick 8 33 100
        graph+=(--features $REPLY)
            run "generate $kind" "$GNNSTREAM" generate $kind "$work/g" "${graph[@]}"
        for parts in 1 7 40; do
            pick metis random lp
            run "partition $kind" "$GNNSTREAM" partition "$work/g" "$work/$kind.$n.$parts" \
                --parts $parts --method $REPLY
        done
    done
done

group=
for parent in /sys/fs/cgroup/memory; do
    mkdir "$parent/gnnstream.$$" 2>/dev/null && group=$parent/gnnstream.$$
done
trap '[ -z "$group" ] || rmdir "$group"; rm -rf "$work"' EXIT

# confined MIB COMMAND ...: in the cgroup, of that size.
confined() {
    local mib=$1
    shift
    [ -z "$group" ] || echo $((mib << 20)) >"$group/memory.limit_in_bytes"
    [ -z "$group" ] || echo 0 >"$group/memory.force_empty"
    (
        [ -z "$group" ] || echo $BASHPID >"$group/cgroup.procs"
        exec "$@"
    ) >"$work/stdout" 2>"$work/stderr"
}

# least BUDGET OPTIONS...: that the case needs with these, in MiB; nothing where they do, or it names another
least()
{
    local budget=$1
    shift
    "${command[@]}" "$@" >"$work/stdout" 2>"$work/stderr"
    sed -n "s/.*--$budget .* is too small.*needs at least \([0-9]*\)M.*/\1/p" "$work/stderr"
}

held=0
for ((i = 1; i <= rounds; i++)); do
    pick sbm rmat
    kind=$REPLY models='gcn sage sage_max sage_lstm gat gatv2 gin appnp commnet ggcn ggnn tables'
    pick 300 3000
    store=$work/$kind.$REPLY
    pick 1 7 40
    parts=$REPLY
    pick $models
    model=$REPLY
    [ $model != tables ] || model=$(dirname "$0")/texts/tables.gnn
    pick 1 2 3 5 9 17 24 32
    # Plans of deep networks over many parts take seconds.
    [ -n "${GS_TEST_ALL:-}" ] || [ "$REPLY" -le 9 ] || [ "$parts" -lt 40 ] || parts=7
    command=("$GNNSTREAM" train "$store.$parts" --epochs 2 --lr 1e-4 --metrics "$work/metrics.jsonl")
    command+=(--model $model --layers $REPLY)
    pick 4 16 50
    command+=(--hidden $REPLY)
    pick cpu cpu:2 cpu:3 cpu:4
    command+=(--device $REPLY)
    pick adam sgd
    command+=(--optimizer $REPLY)
    pick 0 0.3
    command+=(--dropout $REPLY)
    pick 2 4
    command+=(--threads $REPLY)
    pick '' '' --no-hoist --no-move --no-prune --no-cache "--logits $work/logits.npy"
    # shellcheck disable=SC2206 # several words
    command+=($REPLY)
    pick device device '' '' ''
    both=$REPLY
    pick 4K 18M 24M
    asked=$REPLY
    [ "$i" -ge "$first" ] || continue
    device=
    [ -z "$both" ] || device=$(least device-memory --device-memory 4K)
    command+=(${device:+--device-memory "${device}M"})
    name="case $i of seed $seed: ${command[*]:1}"
    host=$(least host-memory --host-memory $asked)
    [ -n "$host" ] || host=$(least host-memory --host-memory 4K) # it was enough
    if [ -n "$both" ] && [ -z "$device" ] || [ -z "$host" ]; then
        fail "$name: names no budget: $(<"$work/stderr")"
        continue
    fi
    confined "$host" "${command[@]}" --host-memory "${host}M"
    status=$?
    peak=$(column peak_host_bytes "$work/metrics.jsonl" | tail -n 1)
    if grep -Eq 'the loss is|not finite' "$work/stderr"; then # deep networks may leave the numbers: no memory
        pass
        held=$((held + 1))
    elif [ $status -ne 0 ]; then
        fail "$name: with ${host}M it ends with $status: $(<"$work/stderr")"
    elif [ "$peak" -gt $((host << 20)) ]; then
        fail "$name: $peak bytes were resident of ${host}M"
    else
        pass
        held=$((held + 1))
    fi
done
echo "$held of $((rounds - first + 1)) smallest budgets work and hold${group:+ (in a memory cgroup)}"
finish
