#!/usr/bin/env bash
# disk_races.sh DEVICE MODEL VERTICES FEATURES MORE [OPTION...] - a training that reads what it uses from the disk anew,
# in as little host memory as goes and in the least device memory (and MORE MiB of it, each in turn), has no race
# between the disk and the GPUs (host_disk.h) and the CPU's loss; where the host does not wait for the GPUs, a race is
# found.
. "$(dirname "$0")/../e2e/lib.sh"

device=$1 model=$2 vertices=$3 features=$4 more=$5
shift 5
run "generate" "$GNNSTREAM" generate rmat "$work/graph" --vertices "$vertices" --edges $((2 * vertices)) \
    --features "$features" --classes 8 --seed 2
[ "$model" != rgcn ] || add_types "$work/graph"
run "partition" "$GNNSTREAM" partition "$work/graph" "$work/store" --parts 3 --method random || finish

train() { "$GNNSTREAM" train "$work/store" --model "$model" --epochs 2 --metrics "$work/metrics" --no-cache "$@"; }
least_of() { sed -n 's/.*at least \([0-9]*\)M.*/\1/p'; } # MiB
loss() { column loss "$work/metrics" | tail -n 1; }

run "train on the CPU" train "$@"
want=$(loss)
export GS_HOST_GPUS=2
host=$(train --device "$device" --host-memory 16M "$@" 2>&1 | least_of)
least=$(train --device "$device" --host-memory "$host"M --device-memory 1M "$@" 2>&1 | least_of)
export GS_TEST_GPU_RACES=1
for extra in $more; do # copies of one launch's arrays fit beside the others', or do not, as they happen to lie
    budgets="--host-memory ${host}M --device-memory $((least + extra))M"
    # shellcheck disable=SC2086
    run "train in $budgets" train --device "$device" $budgets "$@" && near "$budgets: loss" "$(loss)" "$want" 1e-6
done
# shellcheck disable=SC2086
(export GS_TEST_GPU_DROP='-1>-1'; train --device "$device" $budgets "$@") >"$work/said" 2>&1
# The host orders launches and copies, too: a race between those may be met before one with the disk.
if grep -q 'host GPU: RACE: ' "$work/said"; then
    pass
else
    fail "no race is found where the host waits for no event" "$work/said"
fi
finish
