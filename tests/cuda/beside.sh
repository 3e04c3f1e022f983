#!/usr/bin/env bash
# beside.sh - processors beside GPUs: the plan takes what it predicts to be shortest and says so, a run goes on with the
# devices that it began with, and what cannot be is refused. (What both compute is in tests/matrix/gpu.c.)
. "$(dirname "$0")/../e2e/lib.sh"
unset GS_TEST_GPU_RACES
export GS_HOST_GPUS=2 XDG_CACHE_HOME=$work # nothing is known of this machine

input_of rough
run "partition" "$GNNSTREAM" partition "$input" "$work/store" --method fennel --parts 8 || finish
echo '{"switches": [{"devices": 1}, {"devices": 1}], "take": "all"}' >"$work/all.json"
echo '{"switches": [{"devices": 1}, {"devices": 1, "host_bps": 1e4}]}' >"$work/slow.json"
echo '{"switches": [{"devices": 1}]}' >"$work/one.json"
echo '{"switches": [{"devices": 2}]}' >"$work/chain.json"
echo '{"switches": [{"devices": 1}, {"devices": 1, "speeds": [0.5]}]}' >"$work/speeds.json"
echo '{"switches": [{"devices": 1}, {"devices": 1}], "across_bps": 1e9, "share": "ring"}' >"$work/ring.json"
options=("$work/store" --model gcn --hidden 16 --seed 5 --host-memory 1G --device-memory 10M --no-hoist)

# plan NAME OPTIONS...: writes NAME.plan
plan()
{
    "$GNNSTREAM" plan "${options[@]}" --json "${@:2}" >"$work/$1.plan" 2>"$work/said" || fail "plan $1" "$work/said"
}
plan either --device cpu,cuda:0
plan cpu --device cpu
plan cuda --device cuda:0
plan slow --device cpu,cuda:0 --topology "$work/slow.json" --no-cache
plan all --device cpu,cuda:0 --topology "$work/all.json"
plan three --device cpu,cuda:0,1
run "each way has the seconds of a plan of its own, the shortest is taken, and its links are the plan's" \
    python3 - "$work" <<'END'
import json, sys
def plan(name): return json.load(open(f"{sys.argv[1]}/{name}.plan"))
def epoch(p): return next(x["seconds"] for x in p["passes"] if x["name"] == "train")
def ways(p): return {w["devices"]: w for w in p["ways"]}
either, w = plan("either"), ways(plan("either"))
kinds = ["cpu,cuda:0", "cpu alone", "cuda:0 alone"]
assert list(w)[:3] == kinds, w
for alone, name in ("cpu", "cpu alone"), ("cuda", "cuda:0 alone"):
    assert abs(w[name]["seconds"] / epoch(plan(alone)) - 1) < 1e-9, (w, epoch(plan(alone)))
taken = [k for k in kinds if w[k]["taken"]]
alone = min(w[k]["seconds"] for k in kinds[1:])
assert len(taken) == 1, w
both = w[kinds[0]]["seconds"]
assert w[taken[0]]["seconds"] == (both if both <= 0.875 * alone else alone), w
assert abs(epoch(either) / w[taken[0]]["seconds"] - 1) < 1e-9
# behind a wire of 10 kB/s no GPU is worth it
w = ways(plan("slow"))
assert w["cpu alone"]["taken"] and not w["cpu,cuda:0"]["taken"] and plan("slow")["devices"] == 1, w
# all: ways to deal alone, the better one of those is taken, and both compute
p = plan("all")
assert p["devices"] == 2 and not set(ways(p)) & set(kinds), p["ways"]
assert "each device as fast as it is" in ways(p) and "device 0 alone" not in ways(p)
taken, = [x for x in p["ways"] if x["taken"]]
assert taken["seconds"] == min(x["seconds"] for x in p["ways"]), p["ways"]
busy = {end for l in p["links"] for end in (l["from"], l["to"]) if end.startswith("device")
        and any(x["bytes"] > 0 for x in l["passes"])}
assert busy == {"device 1"}, busy # the processors compute on what the host has: nothing is copied to them
assert "cuda:0,1 alone" in ways(plan("three"))
END

# Without --device-memory, a GPU alone may fill its own; beside processors each has its share of half the host's.
for device in cuda:0 cpu,cuda:0; do
    [ $device = cuda:0 ] && wires=() || wires=(--topology "$work/all.json")
    "$GNNSTREAM" plan "$work/store" --model gcn --device $device ${wires[@]+"${wires[@]}"} --host-memory 1G \
        --json >"$work/$device.budget" 2>"$work/said" || fail "plan with the budget of $device" "$work/said"
done
run "budgets of devices where none is given" python3 - "$work" <<'END'
import json, sys
gpu, beside = (json.load(open(f"{sys.argv[1]}/{d}.budget"))["device_memory"] for d in ("cuda:0", "cpu,cuda:0"))
assert gpu > 1 << 30 and beside == (1 << 30) // 2 // 2, (gpu, beside)
END

# A run that goes on has the devices that it began with, whatever is predicted by then: the same weights, bit for bit.
for topology in slow ${GS_TEST_ALL:+all}; do
    train=("$GNNSTREAM" train "${options[@]}" --device 'cpu,cuda:0' --topology "$work/$topology.json" --no-cache)
    run "train, $topology" "${train[@]}" --epochs 4 --save "$work/whole.safetensors"
    run "begin, $topology" "${train[@]}" --epochs 2 --checkpoint "$work/kept.$topology" --checkpoint-every 1
    "${train[@]}" --epochs 4 --resume "$work/kept.$topology" --save "$work/two.safetensors" >"$work/said" 2>&1 ||
        fail "go on, $topology" "$work/said"
    run "$topology: the same weights" cmp "$work/whole.safetensors" "$work/two.safetensors"
done
grep -aqrE '"devices_taken":[[:space:]]*"cpu"' "$work/kept.slow" ||
    fail "the checkpoint does not say which devices were taken"
[ -n "${GS_TEST_ALL:-}" ] && grep -aqr devices_taken "$work/kept.all" && fail "a checkpoint of all devices names some"

# What cannot be is refused with one line.
t() { refuse "$1" "$2" "$GNNSTREAM" train "${options[@]}" --epochs 1 "${@:3}"; }
for device in cuda:0,cpu cpu:2,cuda:0 cpu,cuda:0,cpu cpu,cuda:x; do
    t 2 "--device $device: the processors beside GPUs are one device, and the first: use cpu,cuda:N" --device $device
done
for device in cpu,cpu cuda:0,cuda:1; do
    t 2 "--device $device: several of a kind are named once" --device $device
done
t 1 'there are 2 GPUs, from cuda:0 on' --device cpu,cuda:7
beside() { t "$1" "$2" --device cpu,cuda:0 "${@:3}"; }
beside 2 'a topology of 1 devices, and --device names 2' --topology "$work/one.json"
beside 2 'device 0 of --device cpu,cuda:0 computes on host memory; give it a switch of its own' \
    --topology "$work/chain.json"
beside 2 '"speeds": of processors and GPUs each is as fast as was measured' --topology "$work/speeds.json"
echo '{"switches": [{"devices": 1}, {"devices": 1, "in_place": true}]}' >"$work/place.json"
beside 2 'device 1 of --device cpu,cuda:0 has memory of its own; leave its "in_place" out' --topology "$work/place.json"
beside 2 '"share" ring: of --device cpu,cuda:0 one computes on host memory' --topology "$work/ring.json"
echo '{"switches": [{"devices": 1, "memories": [1e7]}, {"devices": 1, "memories": [2e7]}]}' >"$work/memories.json"
beside 2 '"memories" and --device-memory both say what devices have; leave one out' --topology "$work/memories.json"

# The host memory that a refusal names is the least of the ways'; where all must compute, theirs, and less is refused.
# It is enough with the device's that comes of it. (A sanitizer's own memory is beyond all this.)
least=0
for topology in one all; do
    [ -z "${GS_SANITIZED:-}" ] || break
    way=("$GNNSTREAM" plan "$work/store" --model gcn --hidden 16 --device cpu,cuda:0)
    [ $topology = one ] || way+=(--topology "$work/all.json")
    [ $topology = one ] || refuse 1 "host-memory $least.0 MiB is too small" "${way[@]}" --host-memory "${least}M"
    refuse 1 'host-memory 1.0 MiB is too small' "${way[@]}" --host-memory 1M
    least=$(sed -n 's/.*at least \([0-9]*\)M.*/\1/p' "$work/stderr")
    run "$topology: ${least:=0}M, as named" "${way[@]}" --host-memory "${least}M"
done
finish
