#!/usr/bin/env bash
# several_gpus.sh - what a chain needs comes from the host once, GPUs under one switch are a chain, and what cannot be
# is refused. (What several GPUs compute is in tests/matrix/gpu.c.)
. "$(dirname "$0")/../e2e/lib.sh"

if [ -n "${GS_TEST_GPU:-}" ]; then # what is there: one GPU at least
    two=cuda:0,0
    [ "$(nvidia-smi -L 2>/dev/null | grep -c '^GPU')" -lt 2 ] || two=cuda:0,1
else
    two=cuda:0,1
    export GS_HOST_GPUS=2
fi
input_of rough
for parts in 3 8; do
    run "partition P=$parts" "$GNNSTREAM" partition "$input" "$work/fennel$parts" --method fennel --parts $parts ||
        finish
done
echo '{"switches": [{"devices": 2}, {"devices": 2}]}' >"$work/pairs.json"

# train OUT OPTIONS...: writes OUT.jsonl.
train()
{
    local out=$work/$1
    shift
    run "train ${out##*/} $*" "$GNNSTREAM" train "$work/fennel8" --model gcn --hidden 16 --epochs 1 --seed 5 \
        --device-memory 10M --metrics "$out.jsonl" "$@"
}
last() { column "$1" "$work/$2.jsonl" | tail -n 1 | grep . || echo 0; }

# With a chain of four all that three others need is handed on, and as much less comes from the host.
export GS_HOST_GPU_STALL=1
train chain --device cuda:0,0,0,0 --no-selective --no-cache --trace "$work/trace.json"
unset GS_HOST_GPU_STALL
train apart --device cuda:0,0,0,0 --no-selective --no-cache --no-chain
up=$(last copied_in_bytes chain) on=$(last forwarded_bytes chain) all=$(last copied_in_bytes apart)
run "copies: $up + $on, without a chain $all + $(last forwarded_bytes apart)" \
    test "$(last forwarded_bytes apart)" -eq 0 -a "$on" -gt 0 -a $((up + on)) -eq "$all"
trace_of_a_chain "$work/trace.json"

# Where all have room, rows go from the one that has made them to the others, and none over the links to the host.
"$GNNSTREAM" plan "$work/fennel8" --model gcn --hidden 16 --device cuda:0,0,0,0 --device-memory 10M --json \
    >"$work/room.json"
run "links to the host are not used" python3 - "$work/room.json" <<'END'
import json, sys
links = json.load(open(sys.argv[1]))["links"]
moved = {(l["from"], l["to"]): p["bytes"] for l in links for p in l["passes"] if p["name"] == "train" and p["bytes"]}
assert len(moved) == 4 and all("host" not in link for link in moved), moved
END
# What each device computes, by the device's clock: one after the other, after it was asked for and before it was heard
# of, within what two clocks differ by, though threads are stopped now and then.
run "the trace shows kernels" python3 - "$work/trace.json" <<'END'
import json, sys
events = json.load(open(sys.argv[1]))["traceEvents"]
tracks = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
spans = lambda name: sorted((e["ts"], e["ts"] + e["dur"]) for e in events
                            if e["ph"] == "X" and tracks[e["tid"]] == name)
for d in range(4):
    asked, kernels = spans(f"device {d}"), spans(f"kernels of device {d}")
    assert 0 < len(kernels) <= len(asked), (len(kernels), len(asked))
    assert all(a[1] <= b[0] + 1 for a, b in zip(kernels, kernels[1:])), kernels
    assert all(any(a[0] - 200 <= k[0] and k[1] <= a[1] + 200 for a in asked) for k in kernels), (asked, kernels)
    assert 0 < sum(k[1] - k[0] for k in kernels) < 200 * len(asked) + sum(a[1] - a[0] for a in asked)
END

# Where no file says what hangs where, GPUs under one PCIe switch are a chain, wherever they stand in --device: those at
# 17 and 18 here.
if [ -n "${GS_TEST_TREE:-}" ]; then
    (unset HWLOC_COMPONENTS # by which others leave out the PCI that is here
        export GS_HOST_GPUS=4 HWLOC_XMLFILE=$GS_TEST_TREE \
        GS_HOST_GPU_BUS=0000:17:00.0,0000:65:00.0,0000:18:00.0,0000:1C:00.0
        "$GNNSTREAM" train "$work/fennel8" --model gcn --epochs 1 --device cuda:0,1,2,3 --device-memory 10M --no-cache \
            --trace "$work/tree.json") >"$work/said" 2>&1 ||
        fail "train on four GPUs" "$work/said"
    run "the chain is the switch's" python3 - "$work/tree.json" <<'END'
import json, sys
events = json.load(open(sys.argv[1]))["traceEvents"]
tracks = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
handed = {(e["args"]["from"], tracks[e["tid"]]) for e in events if e["name"] == "forward"}
assert handed == {(0, "chain to device 1")}, handed
END
fi

# Where links of their own join all GPUs, rows come in a ring where that is faster, and over PCIe by chains alone: of
# the same four GPUs, at three ports of the host, what either of two at one port has made goes to the other one.
if [ -n "${GS_TEST_TREE:-}" ]; then
    run "generate" "$GNNSTREAM" generate rmat "$work/wide" --vertices 40000 --edges 100000 --features 256 --classes 4 \
        --seed 1
    run "partition" "$GNNSTREAM" partition "$work/wide" "$work/wide.store" --method random --parts 16
    for peers in all linked; do
        (unset HWLOC_COMPONENTS
            export XDG_CACHE_HOME=$work GS_HOST_GPUS=4 GS_HOST_GPU_PEERS=$peers GS_HOST_GPU_PROCESSORS=132 \
            HWLOC_XMLFILE=$GS_TEST_TREE GS_HOST_GPU_BUS=0000:17:00.0,0000:65:00.0,0000:18:00.0,0000:1C:00.0
            "$GNNSTREAM" plan "$work/wide.store" --model gcn --hidden 256 --device cuda:0,1,2,3 --device-memory 24M \
                --host-memory 2G --no-hoist --no-selective --no-prune --json) >"$work/$peers.json" 2>"$work/said" ||
            fail "plan for four GPUs, $peers" "$work/said"
    done
    run "a ring where GPUs are linked, chains where they are not" python3 - "$work/all.json" "$work/linked.json" <<'END'
import json, sys
every = {f"device {d}" for d in range(4)}
for path, word, takers in (sys.argv[1], "chain", {"device 0", "device 1"}), (sys.argv[2], "ring", every):
    links = json.load(open(path))["links"]
    got = {l["to"] for l in links if l["from"] == word and l["passes"][0]["bytes"] > 0}
    assert got == takers, (word, takers, links)
END
fi

# What cannot be is refused with one line.
t() { refuse "$1" "$2" "$GNNSTREAM" train "$work/fennel3" --model gcn --epochs 1 "${@:3}"; }
t 1 'there are [0-9]* GPUs, from cuda:0 on' --device cuda:0,77
t 2 '--device cuda:0,: must be ' --device cuda:0,
t 2 'a topology of 4 devices, and --device names 2' --device cuda:0,0 --topology "$work/pairs.json"
t 1 'device-memory 1.0 MiB is too small.*needs at least' --device $two --device-memory 1M
finish
