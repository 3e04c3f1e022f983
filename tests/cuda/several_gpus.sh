#!/usr/bin/env bash
# several_gpus.sh MODEL... - several devices on one GPU and on two give the CPU's logits and weights, whatever the
# parts, however the GPUs reach each other and whoever adds up their gradients; what a chain needs comes from the host
# once; and (with checks of races) nothing is touched by two streams at once.
. "$(dirname "$0")/../e2e/lib.sh"

if [ -n "${GS_TEST_GPU:-}" ]; then # what is there: one GPU at least
    two=cuda:0,0
    [ "$(nvidia-smi -L 2>/dev/null | grep -c '^GPU')" -lt 2 ] || two=cuda:0,1
else
    two=cuda:0,1
    export GS_HOST_GPUS=2
fi
kind=${GS_TEST_KIND:-rough} # many: edges are multiplied by the matrix of their type, some portions of them
input_of "$kind"
[ "$kind" != many ] || export GS_CUDA_PORTION_EDGES=${GS_CUDA_PORTION_EDGES:-1501}
echo '{"switches": [{"devices": 2}, {"devices": 2}]}' >"$work/pairs.json"

# train OUT STORE OPTIONS...: writes OUT.npy, OUT.safetensors and OUT.jsonl.
train()
{
    local out=$work/$1 store=$work/$2
    shift 2
    rm -f "$out.jsonl"
    run "train ${out##*/} $*" "$GNNSTREAM" train "$store" --model "$text" --layers 2 --hidden 16 \
        --epochs "${epochs:-2}" --seed 5 \
        --optimizer sgd --lr 0.05 --dropout 0.25 --device-memory 10M --logits "$out.npy" --save "$out.safetensors" \
        --metrics "$out.jsonl" "$@" ${more[@]+"${more[@]}"}
}
last() { column "$1" "$work/$2.jsonl" | tail -n 1 | grep . || echo 0; }

every=("3 $two" "1 cuda:0,0" "8 cuda:0,0,0 --no-cache" "8 cuda:0,0,0,0 --topology pairs.json --device-memory 8M"
    "3 $two NO-PEERS" "8 $two NCCL --no-chain")
of_3=("${every[0]}" "${every[4]}") of_8=("${every[2]}" "${every[3]}" "${every[5]}")
number=0

# layouts_of MODEL: `layouts` for it, and `steps` where Adam is to step there, too. How GPUs reach each other, who adds
# up and what a chain is have nothing to do with the model, but for sums over all vertices (norms) and sequences, whose
# rows travel: those and gcn have every layout, the others each number of parts once, with the layouts in turn.
layouts_of()
{
    steps=yes
    if [ -n "${GS_TEST_FEW:-}" ]; then
        layouts=("8 $two NO-PEERS" "3 cuda:0,0,0 --no-cache" "1 $two NCCL")
    elif [[ " gcn norms sage_lstm " == *" $1 "* ]]; then
        layouts=("${every[@]}")
    else
        layouts=("${every[1]}" "${of_3[number % 2]}" "${of_8[number % 3]}")
        number=$((number + 1)) steps=
    fi
}

same=8
[ "$kind" != many ] || same=3 # in 8 parts sums by type are predicted to be shorter, for one device or for two
for model in "$@"; do
    layouts_of "$model"
    model_of "$model"
    method_of "$model"
    [ -e "$work/$method"8 ] || three_partitions "$input" $method $method
    wide=() # scratch of sequences grows with a GPU's processors, to 64M
    [ -z "${GS_TEST_GPU:-}" ] || [ $method = fennel ] || wide=(--device-memory 90M)
    train cpu ${method}3 --threads 1 --device-memory 1G || continue
    if [ "$kind" = many ]; then
        run "$model: plan" "$GNNSTREAM" plan "$work/${method}3" --model "$text" --hidden 16 --device "$two" --json ||
            finish
        if grep -q '"batches": true' "$work/stdout"; then pass; else fail "$model: no batches by type"; fi
    fi
    for layout in "${layouts[@]}"; do
        read -r parts device options <<<"$layout"
        unset GS_TEST_GPU_NCCL GS_HOST_GPU_PEERS
        case $options in *NCCL*) export GS_TEST_GPU_NCCL=1 ;; *NO-PEERS*) export GS_HOST_GPU_PEERS=none ;; esac
        options=${options/NCCL/} options=${options/NO-PEERS/}
        # shellcheck disable=SC2086
        train several "$method$parts" --device "$device" ${options//--topology /--topology $work/} \
            ${wide[@]+"${wide[@]}"} || continue
        compare "$model: $layout: logits" "$work/several.npy" "$work/cpu.npy" 1e-4
        compare "$model: $layout: weights" "$work/several.safetensors" "$work/cpu.safetensors" 1e-4
    done
    unset GS_TEST_GPU_NCCL GS_HOST_GPU_PEERS
    if [ -n "$steps" ]; then
        adam=(--optimizer adam --lr 0.005)
        train adam.cpu ${method}3 --threads 1 --device-memory 1G "${adam[@]}" &&
            train adam ${method}3 --device $two "${adam[@]}" &&
            compare "$model: weights by Adam" "$work/adam.safetensors" "$work/adam.cpu.safetensors" 1e-4
    fi
    for device in cuda $two; do
        run "predict $device" "$GNNSTREAM" predict "$work/$method$same" --model "$text" --layers 2 --hidden 16 \
            --device "$device" \
            --weights "$work/cpu.safetensors" --logits "$work/$device.npy" ${more[@]+"${more[@]}"}
    done
    run "$model: the same logits, bit for bit" cmp "$work/cuda.npy" "$work/$two.npy"
done

# With a chain of four all that three others need is handed on, and as much less comes from the host.
text=gcn more=() epochs=1
[ -e "$work/fennel8" ] || three_partitions "$input" fennel fennel
train chain fennel8 --device cuda:0,0,0,0 --no-selective --trace "$work/trace.json"
train apart fennel8 --device cuda:0,0,0,0 --no-selective --no-chain
up=$(last copied_in_bytes chain) on=$(last forwarded_bytes chain) all=$(last copied_in_bytes apart)
run "copies: $up + $on, without a chain $all + $(last forwarded_bytes apart)" \
    test "$(last forwarded_bytes apart)" -eq 0 -a "$on" -gt 0 -a $((up + on)) -eq "$all"
trace_of_a_chain "$work/trace.json"

# Where no file says what hangs where, GPUs under one PCIe switch are a chain, wherever they stand in --device: those at
# 17 and 18 here.
if [ -n "${GS_TEST_TREE:-}" ]; then
    (export GS_HOST_GPUS=4 HWLOC_XMLFILE=$GS_TEST_TREE \
        GS_HOST_GPU_BUS=0000:17:00.0,0000:65:00.0,0000:18:00.0,0000:1C:00.0
        "$GNNSTREAM" train "$work/fennel8" --model gcn --epochs 1 --device cuda:0,1,2,3 --device-memory 10M \
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

# What cannot be is refused with one line.
t() { refuse "$1" "$2" "$GNNSTREAM" train "$work/fennel3" --model gcn --epochs 1 "${@:3}"; }
t 1 'there are [0-9]* GPUs, from cuda:0 on' --device cuda:0,77
t 2 '--device cuda:0,: must be ' --device cuda:0,
t 2 'a topology of 4 devices, and --device names 2' --device cuda:0,0 --topology "$work/pairs.json"
t 1 'device-memory 1.0 MiB is too small.*needs at least' --device $two --device-memory 1M
finish
