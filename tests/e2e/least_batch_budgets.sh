#!/usr/bin/env bash
# least_batch_budgets.sh - the smallest host budgets that refusals name work and hold where training is on batches:
#     least_batch_budgets.sh [ROUNDS] [SEED] [FIRST]
# draws ROUNDS cases of model, layers, widths, sampler, sizes of batches, store and devices by SEED, asks each from
# number FIRST on twice for its smallest budget, with little memory and with less, and trains two epochs with it, inside
# a memory cgroup of that size where one can be made (version 1, as root), and looks at what was resident at the most in
# any case. What is named must depend little on what it was asked with.
. "$(dirname "$0")/lib.sh"
rounds=${1:-3} seed=${2:-18} first=${3:-1}
RANDOM=$seed

# pick A B ...: one of them, in $REPLY (a subshell would draw the same number again)
pick()
{
    shift $((RANDOM % $#))
    REPLY=$1
}

# store KIND VERTICES PARTS: its folder, in $REPLY; made when it is first drawn. Large ones have lists of edges that
# small budgets have no room for.
store()
{
    local degree=10 features=33
    [ "$2" -lt 12000 ] || degree=220 features=8
    REPLY=$work/$1.$2.$3
    [ ! -e "$REPLY" ] || return
    run "generate $1" "$GNNSTREAM" generate "$1" "$work/g" --vertices "$2" --edges $(($2 * degree)) \
        --features $features --classes 4 --seed "$2" --force
    run "partition $1" "$GNNSTREAM" partition "$work/g" "$REPLY" --parts "$3" --method random
}

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

# least BUDGET: that is named with so little, in MiB; nothing where that does, or it names none
least()
{
    "${command[@]}" --host-memory "$1" >"$work/stdout" 2>"$work/stderr"
    sed -n "s/.*--host-memory .* is too small.*needs at least \([0-9]*\)M.*/\1/p" "$work/stderr"
}

held=0
for ((i = 1; i <= rounds; i++)); do
    pick sbm rmat
    kind=$REPLY
    pick 300 3000 12000
    vertices=$REPLY
    pick 4 40
    parts=$REPLY
    pick gcn sage sage_max sage_lstm gat gatv2 gin appnp commnet tables
    [ "$vertices$REPLY" != 12000sage_lstm ] || REPLY=sage # minutes
    model=$REPLY
    [ $model != tables ] || REPLY=$(dirname "$0")/texts/tables.gnn
    command=("$GNNSTREAM" train STORE --epochs 2 --lr 1e-4 --metrics "$work/metrics.jsonl" --model $REPLY)
    pick 1 2 3
    layers=$REPLY
    pick 4 16 50
    command+=(--layers $layers --hidden $REPLY)
    pick neighbor neighbor cluster saint-node saint-edge saint-walk
    sampler=$REPLY
    command+=(--sampler $sampler)
    pick 10 100 1000
    size=$REPLY
    [ $sampler != cluster ] || size=$((size == 1000 ? 4 : size / 100 + 1))
    command+=(--batch-size $size)
    pick 3 10 0
    fanout=$REPLY
    for ((k = 1; k < layers; k++)); do
        fanout+=,$((RANDOM % 10 + 1))
    done
    [ $sampler != neighbor ] || command+=(--fanout $fanout)
    pick cpu cpu:2 cpu:3
    command+=(--device $REPLY)
    step=${REPLY#cpu} step=${step#:}
    [ $model != tables ] || step=$((${step:-1} * layers)) # whose rows are in memory together
    [ -z "$step" ] || command+=(--batches-per-step "$step")
    pick 0 0.3
    command+=(--dropout $REPLY)
    pick '' '' --no-hoist --no-prune --no-cache "--logits $work/logits.npy" '--shuffle adaptive'
    case $REPLY$sampler in --shuffle*saint*) REPLY= ;; esac
    # shellcheck disable=SC2206 # several words
    command+=($REPLY)
    pick 17M 18M 24M
    asked=$REPLY
    [ "$i" -ge "$first" ] || continue
    store $kind $vertices $parts
    command[2]=$REPLY
    name="case $i of seed $seed: ${command[*]:1}"
    little=$(least 4K)
    host=$(least $asked)
    [ -n "$host" ] || host=$little # it was enough
    if [ -z "$little" ]; then
        fail "$name: names no budget: $(<"$work/stderr")"
        continue
    fi
    [ "$little" -le $((host + host / 20 + 1)) ] || fail "$name: ${little}M is named with 4K, ${host}M with $asked"
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
