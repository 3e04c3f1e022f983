#!/usr/bin/env bash
# races.sh - streams wait for each other wherever they meet in memory (host_streams.h): a training whose copies are all
# staged, in as little memory as goes, has no race; and with any of the kinds of waits left out, one is found.
. "$(dirname "$0")/../e2e/lib.sh"

input_of rough
run "partition" "$GNNSTREAM" partition "$input" "$work/store" --method natural --parts 8 || finish
export GS_TEST_GPU_RACES=1

device=cuda
train() {
    "$GNNSTREAM" train "$work/store" --model ggcn --hidden 16 --epochs 2 --device $device --no-cache \
        --device-memory "$1"
}

least=$(train 1M 2>&1 | sed -n 's/.*at least \([0-9]*M\).*/\1/p')
run "train in $least" train "$least"
export GS_HOST_GPUS=2 GS_HOST_GPU_PEERS=none
device=cuda:0,1
least_of_two=$(train 1M 2>&1 | sed -n 's/.*at least \([0-9]*M\).*/\1/p')
run "train on two in $least_of_two each" train "$least_of_two"
device=cuda
# -1 is the host, which waits for the events of copies and launches, and begins what the plan has behind them where the
# GPU's streams cannot: 0, 1 and 2 are copies to it, kernels and copies back, and wait for each other. Of two GPUs that
# reach each other by way of the host's memory alone, stream 8, of the second, takes from the buffer what 9, on the
# first, puts there; 6 and 7 are of the other direction. Where a thread has seen what a stream would wait for there is
# no race, so one is looked for again.
for waits in '-1>-1' '0>1' '1>0' '1>2' '9>8' '8>9'; do
    case $waits in *[89]*) device=cuda:0,1 least=$least_of_two ;; esac
    found=
    for _ in {1..20}; do
        (export GS_TEST_GPU_DROP=$waits; train "$least") >"$work/said" 2>&1
        [ $? -ge 128 ] && grep -q 'host GPU: RACE: \|Segmentation fault\|Bus error' "$work/said" && found=1 && break
    done
    [ -n "$found" ] && pass ||
        fail "no race is found without waits of stream ${waits#*>} for stream ${waits%>*}" "$work/said"
done 2>/dev/null # the shell's word on programs that end themselves
finish
