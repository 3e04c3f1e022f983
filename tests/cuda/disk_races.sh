#!/usr/bin/env bash
# disk_races.sh MODEL VERTICES [OPTION...] - a training that reads what it uses from the disk anew, in as little
# host memory as goes and in little device memory, has no race between the disk and the GPU (host_disk.h) and the
# CPU's loss; where the host does not wait for the GPU, such a race is found.
. "$(dirname "$0")/../e2e/lib.sh"

model=$1 vertices=$2
shift 2
run "generate" "$GNNSTREAM" generate rmat "$work/graph" --vertices "$vertices" --edges $((2 * vertices)) --features 64 \
    --classes 8 --seed 2
run "partition" "$GNNSTREAM" partition "$work/graph" "$work/store" --parts 3 --method random || finish

train() { "$GNNSTREAM" train "$work/store" --model "$model" --epochs 2 --metrics "$work/metrics" --no-cache "$@"; }
least_of() { sed -n 's/.*at least \([0-9]*\)M.*/\1/p'; } # MiB
loss() { column loss "$work/metrics" | tail -n 1; }

run "train on the CPU" train "$@"
want=$(loss)
host=$(train --device cuda --host-memory 23M "$@" 2>&1 | least_of)
device=$(train --device cuda --host-memory "$host"M --device-memory 1M "$@" 2>&1 | least_of)
export GS_TEST_GPU_RACES=1
for more in 0 2 4; do # device memory's pieces are too small, or fit, as they happen to lie
    budgets="--host-memory ${host}M --device-memory $((device + more))M"
    # shellcheck disable=SC2086
    run "train in $budgets" train --device cuda $budgets "$@" && near "$budgets: loss" "$(loss)" "$want" 1e-6
done
# Streams in the order of their making: copies in, kernels, copies out.
for waits in '1>-1' '2>-1'; do
    # shellcheck disable=SC2086
    (export GS_TEST_GPU_DROP=$waits; train --device cuda $budgets "$@") >"$work/said" 2>&1
    if grep -q 'host GPU: RACE: .* the disk' "$work/said"; then
        pass
    else
        fail "no race with the disk is found where the host does not wait for stream ${waits%>*}" "$work/said"
    fi
done 2>/dev/null # the shell's word on programs that end themselves
finish
