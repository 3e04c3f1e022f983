#!/usr/bin/env bash
# several.sh - several devices on the command line: the smallest budgets, what a trace shows and a chain copies, and
# what cannot be. (What several devices compute is in tests/matrix/layouts.c.)
. "$(dirname "$0")/lib.sh"

input_of rough
echo '{"switches": [{"devices": 2}, {"devices": 2}]}' >"$work/pairs.json"
for parts in 3 8; do
    run "partition P=$parts" "$GNNSTREAM" partition "$input" "$work/fennel$parts" --method fennel --parts $parts ||
        finish
done

# train MODEL OPTIONS...: of a store in 8 parts; writes other.safetensors and other.jsonl.
train()
{
    model_of "$1"
    shift
    rm -f "$work/other.jsonl"
    run "train $text $*" "$GNNSTREAM" train "$work/fennel8" --model "$text" --layers 2 --hidden 16 --epochs 2 \
        --keep last --seed 5 \
        --optimizer sgd --lr 0.05 --save "$work/other.safetensors" --metrics "$work/other.jsonl" "$@"
}

# last KEY: of the last epoch of `other`; 0 where it is not there.
last() { column "$1" "$work/other.jsonl" | tail -n 1 | grep . || echo 0; }
least() { sed -n 's/.*needs at least \([0-9]*\)M.*/\1/p' "$work/stderr"; }

echo '{"switches": [{"devices": 1}, {"devices": 1}], "place": {"edges": [1, 0], "vertices": [0, 1]}}' \
    >"$work/place.json"

# The smallest budgets that refusals name are enough, and hold.
for name in columns ${GS_TEST_ALL:+rgcn} sage_lstm; do
    train $name || continue
    mv "$work/other.safetensors" "$work/one.safetensors"
    tight=("$GNNSTREAM" train "$work/fennel8" --model "$text" --layers 2 --hidden 16 --device cpu:4 \
        --topology "$work/pairs.json" --epochs 1)
    refuse 1 'device-memory 64.0 KiB is too small.*needs at least [0-9]*M' "${tight[@]}" --device-memory 64K || continue
    device=$(least)
    refuse 1 'host-memory 4.0 MiB is too small.*needs at least [0-9]*M' "${tight[@]}" \
        --device-memory "${device}M" --host-memory 4M || continue
    host=$(least)
    train $name --device cpu:4 --topology "$work/pairs.json" --device-memory "${device}M" --host-memory "${host}M" ||
        continue
    compare "$name, $host MiB of host and $device MiB of device memory: weights" "$work/other.safetensors" \
        "$work/one.safetensors" 1e-4
    on_device=$(last peak_device_bytes) on_host=$(last peak_host_bytes)
    [ "$on_device" -le $((device << 20)) ] && pass || fail "$name: $on_device bytes of device memory"
    [ -n "${GS_SANITIZED:-}" ] || [ "$on_host" -le $((host << 20)) ] && pass ||
        fail "$name: $on_host bytes were resident"
    # edge passes on one device, vertex programs on the other
    train $name --device cpu:2 --topology "$work/place.json" --trace "$work/trace.json" || continue
    compare "$name, placed: weights" "$work/other.safetensors" "$work/one.safetensors" 1e-4
    run "$name: each kind of task is on its device" python3 - "$work/trace.json" $name <<'END'
import json, sys
events = json.load(open(sys.argv[1]))["traceEvents"]
tracks = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
def devices(*kinds): return {(tracks[e["tid"]], e["args"]["stage"]) for e in events if e["name"] in kinds}
edges, vertices = devices("edges", "edge program", "unroll", "back"), devices("vertex program")
assert edges and {device for device, _ in edges} == {"device 0"}, edges
# vertex programs of stages with edge passes store their sums
placed = {device for device, stage in vertices if stage not in {s for _, s in edges}}
assert placed == {"device 1"}, vertices
END
done

# All devices add to the rows of a sequence's derivative, and the trace shows that they take turns.
train sage_lstm --device cpu:4 --trace "$work/trace.json"
run "sage_lstm: derivatives on every device, in turn" python3 - "$work/trace.json" <<'END'
import json, sys
events = json.load(open(sys.argv[1]))["traceEvents"]
tracks = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
back = {}
for e in events:
    if e["name"] == "back":
        span = (e["ts"], e["ts"] + e["dur"], tracks[e["tid"]])
        back.setdefault((e["args"]["stage"], e["args"]["operand"]), []).append(span)
devices = {key: {d for _, _, d in spans} for key, spans in back.items()}
assert set().union(*devices.values()) == {f"device {d}" for d in range(4)}, devices
assert max(map(len, devices.values())) > 2, devices
for spans in back.values(): # of the same rows: one at a time
    spans.sort()
    assert all(end <= begin + 0.2 for (_, end, _), (begin, _, _) in zip(spans, spans[1:])), spans
assert any(e["name"] == "forward" and "lstm_back" in e["args"]["stage"] for e in events)
END

# A run says what it copied: without a chain nothing is handed on, with one it is, and less comes from the host.
for epochs in chain no-chain; do
    [ $epochs = chain ] && options=(--trace "$work/trace.json") || options=(--no-chain)
    train gcn --device cpu:4 --no-selective --no-cache "${options[@]}" # nothing stays: all of it travels
    eval "up_${epochs//-/_}=$(last copied_in_bytes) on_${epochs//-/_}=$(last forwarded_bytes)"
done
# shellcheck disable=SC2154
run "copies: $up_chain + $on_chain, without a chain $up_no_chain + $on_no_chain" \
    test "$on_no_chain" -eq 0 -a "$on_chain" -gt 0 -a $((up_chain + on_chain)) -eq "$up_no_chain"
trace_of_a_chain "$work/trace.json"

# Where all devices have room, rows go from the one that has made them to the others, and nothing to the host and back.
for name in gcn ${GS_TEST_ALL:+gat}; do
    train $name --device cpu:4 --device-memory 24M
    run "$name: copies among devices alone" \
        test "$(last copied_in_bytes)" -eq 0 -a "$(last copied_out_bytes)" -eq 0 -a "$(last forwarded_bytes)" -gt 0
done

# What cannot be is refused with one line.
t() { refuse "$1" "$2" "$GNNSTREAM" train "$work/fennel3" --model gcn --epochs 1 "${@:3}"; }
t 2 "a topology of 4 devices, and --device names 2" --device cpu:2 --topology "$work/pairs.json"
t 2 "is for several devices; use it with --device cpu:N" --topology "$work/pairs.json"
t 1 "no/such.json" --device cpu:2 --topology no/such.json
echo '{"switches": [{"devices": 2, "host_bps": "fast"}]}' >"$work/bad.json"
t 1 "bad.json: switch 0: \"host_bps\" must be a number of bytes per second" --device cpu:2 --topology "$work/bad.json"
finish
