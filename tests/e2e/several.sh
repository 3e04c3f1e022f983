#!/usr/bin/env bash
# several.sh MODEL... - (built in, or a text of texts/) several devices give what one gives: logits of given weights bit for bit, weights learned to rounding,
# whatever the parts, the topology and the memory; and a chain brings a vertex chunk from the host once.
. "$(dirname "$0")/lib.sh"

input_of rough
echo '{"switches": [{"devices": 2}, {"devices": 2}]}' >"$work/pairs.json"
echo '{"switches": [{"devices": 1, "host_bps": 2e9}, {"devices": 3, "host_bps": 3e9, "peer_bps": 1e9}]}' >"$work/lopsided.json"

# train OUT STORE OPTIONS...
train()
{
    local out=$work/$1 store=$work/$2
    shift 2
    rm -f "$out.jsonl"
    run "train ${out##*/}" "$GNNSTREAM" train "$store" --model "$model" --layers 2 --hidden 16 --epochs 3 --seed 5 --optimizer sgd \
        --lr 0.05 --dropout 0.25 --logits "$out.npy" --save "$out.safetensors" --metrics "$out.jsonl" "$@" ${more[@]+"${more[@]}"}
}

# last KEY: of the last epoch of `other`; 0 where it is not there.
last() { column "$1" "$work/other.jsonl" | tail -n 1 | grep . || echo 0; }

three_partitions "$input" ""
for name in "$@"; do
    model_of "$name"
    model=$text
    train one 1 || continue
    cp "$work/one.npy" "$work/logits.npy"
    cp "$work/one.safetensors" "$work/weights.safetensors"
    for layout in "1 cpu:2" "3 cpu:2 --no-cache" "8 cpu:2" "1 cpu:4 --topology pairs.json" "3 cpu:4" "8 cpu:4 --no-chain" \
        "8 cpu:4 --topology pairs.json --no-cache" "8 cpu:4 --topology lopsided.json --threads 8" "3 cpu:1 --no-pipeline"; do
        read -r store device options <<<"$layout"
        # shellcheck disable=SC2086
        train other "$store" --device "$device" ${options//--topology /--topology $work/} || continue
        compare "$name: $layout: logits" "$work/other.npy" "$work/logits.npy" 1e-4
        compare "$name: $layout: weights" "$work/other.safetensors" "$work/weights.safetensors" 1e-4
    done
    for device in cpu cpu:4; do
        run "predict $device" "$GNNSTREAM" predict "$work/8" --model "$model" --layers 2 --hidden 16 --device $device \
            --weights "$work/weights.safetensors" --logits "$work/$device.npy" ${more[@]+"${more[@]}"}
    done
    run "$name: the same logits, bit for bit" cmp "$work/cpu.npy" "$work/cpu:4.npy"
    # The same run twice, with sums over all vertices in it.
    train other 8 --device cpu:4 && cp "$work/other.safetensors" "$work/again.safetensors" && train other 8 --device cpu:4 &&
        run "$name: repeated, bit for bit" cmp "$work/other.safetensors" "$work/again.safetensors"
done

# A run says what it copied: without a chain nothing is handed on, with one it is, and less comes from the host.
name=gcn model=gcn more=()
for epochs in chain no-chain; do
    [ $epochs = chain ] && options=(--trace "$work/trace.json") || options=(--no-chain)
    train other 8 --device cpu:4 --no-selective "${options[@]}"
    eval "up_${epochs//-/_}=$(last copied_in_bytes) on_${epochs//-/_}=$(last forwarded_bytes)"
done
# shellcheck disable=SC2154
run "copies: $up_chain + $on_chain, without a chain $up_no_chain + $on_no_chain" \
    test "$on_no_chain" -eq 0 -a "$on_chain" -gt 0 -a $((up_chain + on_chain)) -eq "$up_no_chain"
trace_of_a_chain "$work/trace.json"

# What cannot be is refused with one line.
t() { refuse "$1" "$2" "$GNNSTREAM" train "$work/3" --model gcn --epochs 1 "${@:3}"; }
t 1 "lstm\(\) runs on one device; use --device cpu" --model sage_lstm --device cpu:2
t 2 "a topology of 4 devices, and --device names 2" --device cpu:2 --topology "$work/pairs.json"
t 2 "is for several devices; use it with --device cpu:N" --topology "$work/pairs.json"
t 1 "no/such.json" --device cpu:2 --topology no/such.json
echo '{"switches": [{"devices": 2, "host_bps": "fast"}]}' >"$work/bad.json"
t 1 "bad.json: switch 0: \"host_bps\" must be a number of bytes per second" --device cpu:2 --topology "$work/bad.json"
t 1 "device-memory 64.0 KiB is too small.*needs at least" --device cpu:2 --device-memory 64K
finish
