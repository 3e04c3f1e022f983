#!/usr/bin/env bash
# several.sh MODEL... - (built in, or a text of texts/) several devices give what one gives: logits of given weights bit
# for bit, weights learned to rounding, whatever the parts, the topology and the memory; and a chain brings a vertex
# chunk from the host once.
. "$(dirname "$0")/lib.sh"

input_of rough
echo '{"switches": [{"devices": 2}, {"devices": 2}]}' >"$work/pairs.json"
echo '{"switches": [{"devices": 1, "host_bps": 2e9}, {"devices": 3, "host_bps": 3e9, "peer_bps": 1e9}]}' \
    >"$work/lopsided.json"

# train OUT STORE OPTIONS...
train()
{
    local out=$work/$1 store=$work/$2
    shift 2
    rm -f "$out.jsonl"
    run "train ${out##*/}" "$GNNSTREAM" train "$store" --model "$model" --layers 2 --hidden 16 --epochs 3 --seed 5 \
        --optimizer sgd \
        --lr 0.05 --dropout 0.25 --logits "$out.npy" --save "$out.safetensors" \
        --metrics "$out.jsonl" "$@" ${more[@]+"${more[@]}"}
}

# last KEY: of the last epoch of `other`; 0 where it is not there.
last() { column "$1" "$work/other.jsonl" | tail -n 1 | grep . || echo 0; }

for name in "$@"; do
    model_of "$name"
    method_of "$name"
    model=$text
    [ -e "$work/$method"8 ] || three_partitions "$input" $method $method
    train one ${method}1 || continue
    cp "$work/one.npy" "$work/logits.npy"
    cp "$work/one.safetensors" "$work/weights.safetensors"
    for layout in "1 cpu:2" "3 cpu:2 --no-cache" "8 cpu:2" "1 cpu:4 --topology pairs.json" "3 cpu:4" \
        "8 cpu:4 --no-chain" \
        "8 cpu:4 --topology pairs.json --no-cache" "8 cpu:4 --topology lopsided.json --threads 8" \
        "3 cpu:1 --no-pipeline"; do
        read -r store device options <<<"$layout"
        # shellcheck disable=SC2086
        train other "$method$store" --device "$device" ${options//--topology /--topology $work/} || continue
        compare "$name: $layout: logits" "$work/other.npy" "$work/logits.npy" 1e-4
        compare "$name: $layout: weights" "$work/other.safetensors" "$work/weights.safetensors" 1e-4
    done
    for device in cpu cpu:4; do
        run "predict $device" "$GNNSTREAM" predict "$work/${method}8" --model "$model" --layers 2 --hidden 16 \
            --device $device \
            --weights "$work/weights.safetensors" --logits "$work/$device.npy" ${more[@]+"${more[@]}"}
    done
    run "$name: the same logits, bit for bit" cmp "$work/cpu.npy" "$work/cpu:4.npy"
    # The same run twice, with sums over all vertices in it.
    train other ${method}8 --device cpu:4 && cp "$work/other.safetensors" "$work/again.safetensors" &&
        train other ${method}8 --device cpu:4 &&
        run "$name: repeated, bit for bit" cmp "$work/other.safetensors" "$work/again.safetensors"
done

# The smallest budgets that refusals name are enough, and hold.
least() { sed -n 's/.*needs at least \([0-9]*\)M.*/\1/p' "$work/stderr"; }
tight=("$GNNSTREAM" train "$work/${method}8" --model "$model" --layers 2 --hidden 16 --device cpu:4 \
    --topology "$work/pairs.json" --epochs 1)
refuse 1 'device-memory 64.0 KiB is too small.*needs at least [0-9]*M' "${tight[@]}" ${more[@]+"${more[@]}"} \
    --device-memory 64K || finish
device=$(least)
refuse 1 'host-memory 4.0 MiB is too small.*needs at least [0-9]*M' "${tight[@]}" ${more[@]+"${more[@]}"} \
    --device-memory "${device}M" --host-memory 4M || finish
host=$(least)
train other "${method}8" --device cpu:4 --topology "$work/pairs.json" --device-memory "${device}M" \
    --host-memory "${host}M" || finish
compare "$name, $host MiB of host and $device MiB of device memory: weights" "$work/other.safetensors" \
    "$work/weights.safetensors" 1e-4
on_device=$(last peak_device_bytes) on_host=$(last peak_host_bytes)
[ "$on_device" -le $((device << 20)) ] && pass || fail "$name: $on_device bytes of device memory"
[ -n "${GS_SANITIZED:-}" ] || [ "$on_host" -le $((host << 20)) ] && pass || fail "$name: $on_host bytes were resident"

# All devices add to the rows of a sequence's derivative, and the trace shows that they take turns.
case " $* " in *" sage_lstm "*)
    text=sage_lstm more=() name=sage_lstm model=sage_lstm
    train other natural8 --device cpu:4 --trace "$work/trace.json"
    run "$name: derivatives on every device, in turn" python3 - "$work/trace.json" <<'END'
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
    ;;
esac

# A run says what it copied: without a chain nothing is handed on, with one it is, and less comes from the host.
name=gcn model=gcn more=()
[ -e "$work/fennel8" ] || three_partitions "$input" fennel fennel
for epochs in chain no-chain; do
    [ $epochs = chain ] && options=(--trace "$work/trace.json") || options=(--no-chain)
    train other fennel8 --device cpu:4 --no-selective "${options[@]}"
    eval "up_${epochs//-/_}=$(last copied_in_bytes) on_${epochs//-/_}=$(last forwarded_bytes)"
done
# shellcheck disable=SC2154
run "copies: $up_chain + $on_chain, without a chain $up_no_chain + $on_no_chain" \
    test "$on_no_chain" -eq 0 -a "$on_chain" -gt 0 -a $((up_chain + on_chain)) -eq "$up_no_chain"
trace_of_a_chain "$work/trace.json"

# What cannot be is refused with one line.
t() { refuse "$1" "$2" "$GNNSTREAM" train "$work/fennel3" --model gcn --epochs 1 "${@:3}"; }
t 2 "a topology of 4 devices, and --device names 2" --device cpu:2 --topology "$work/pairs.json"
t 2 "is for several devices; use it with --device cpu:N" --topology "$work/pairs.json"
t 1 "no/such.json" --device cpu:2 --topology no/such.json
echo '{"switches": [{"devices": 2, "host_bps": "fast"}]}' >"$work/bad.json"
t 1 "bad.json: switch 0: \"host_bps\" must be a number of bytes per second" --device cpu:2 --topology "$work/bad.json"
finish
