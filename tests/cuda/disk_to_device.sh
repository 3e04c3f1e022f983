#!/usr/bin/env bash
# disk_to_device.sh MODEL VERTICES FEATURES [OPTION...] - edges that come to a GPU past the host (host_files.h): the
# same weights to the bit as by way of it, as many bytes as the plan says, no race, and one line of what is missing or
# wrong.
. "$(dirname "$0")/../e2e/lib.sh"

model=$1 vertices=$2 features=$3
shift 3
run "generate" "$GNNSTREAM" generate rmat "$work/graph" --vertices "$vertices" --edges $((8 * vertices)) \
    --features "$features" --classes 8 --seed 2
[ "$model" != rgcn ] || add_types "$work/graph"
run "partition" "$GNNSTREAM" partition "$work/graph" "$work/store" --parts 4 --method random || finish

engine() # VERB OPTIONS...
{
    "$GNNSTREAM" "$1" "$work/store" --model "$model" --device cuda --no-cache --no-swap --keep last \
        --host-memory 256M "${options[@]}" "${@:2}"
}
train() # EPOCHS NAME OPTIONS...
{
    GS_HOST_CUFILE_COUNTS=$work/counts.$2 engine train --epochs "$1" --metrics "$work/metrics.$2" \
        --save "$work/weights.$2" "${@:3}"
}
same() { cmp -s "$work/weights.$1" "$work/weights.$2" && pass || fail "$1 and $2: not the same weights"; }

options=("$@")
least=$(engine plan --device-memory 1M 2>&1 | sed -n 's/.*at least \([0-9]*M\).*/\1/p')
options+=(--device-memory "$least")
run "by way of the host" train 3 host --disk-to-device no
run "past the host" train 3 past --disk-to-device yes || finish
same host past
unset GS_TEST_GPU_RACES
run "one epoch of it" train 1 one --disk-to-device yes
run "by itself" train 3 auto && same host auto
engine plan --json --disk-to-device yes >"$work/plan.json" || fail "plan"
run "planned bytes are counted" python3 - "$work" <<'PY'
import json, sys
work = sys.argv[1]
plan = json.load(open(f"{work}/plan.json"))
train = [p["name"] for p in plan["passes"]].index("train")
link = {(l["from"], l["to"]): l["passes"][train] for l in plan["links"]}
past, disk = link["disk", "device 0"], link["disk", "host"]
one, three = (json.load(open(f"{work}/counts.{n}")) for n in ("one", "past"))
epochs = [json.loads(line) for line in open(f"{work}/metrics.past")]
assert past["bytes"] > 0 and past["seconds"] > 0, link
assert (three["bytes"] - one["bytes"]) / 2 == past["bytes"], (one, three, past)
assert (three["requests"] - one["requests"]) / 2 == past["requests"], (one, three, past)
for e in epochs:
    assert e["loaded_bytes"] == past["bytes"] and e["read_bytes"] == past["bytes"] + disk["bytes"], (e, link)
assert plan["passes"][train]["read_bytes"] == past["bytes"] + disk["bytes"], plan["passes"][train]
for name in ("host", "auto"): # by itself it is not taken, as nobody has measured it
    assert all("loaded_bytes" not in json.loads(line) for line in open(f"{work}/metrics.{name}")), name
PY

[ "$model" = gcn ] || finish # the rest is alike for all

# What is missing is said once, and the run goes on.
without() # NAME PATTERN
{
    train 3 "$1" --disk-to-device yes >"$work/stdout" 2>"$work/stderr" || fail "$1: does not train" "$work/stderr"
    if [ "$(wc -l <"$work/stderr")" -eq 1 ] && grep -q "warning: --disk-to-device yes: .*$2.*by way of the host" \
        "$work/stderr"; then same host "$1"; else fail "$1: not one warning" "$work/stderr"; fi
}
GS_HOST_CUFILE=none without none 'library (libcufile.so.0) was not found'
GS_HOST_CUFILE=driver without driver 'driver nvidia-fs is not loaded'
GS_HOST_CUFILE=file without file 'edges.dest.bin: .*does not support the file.s file system'
GS_HOST_CUFILE=batch without batch 'takes no batches of requests'
GS_HOST_CUFILE=memory run "memory that is not mapped" train 3 memory --disk-to-device yes && same host memory
GS_HOST_CUFILE=short:2 run "short reads" train 3 short --disk-to-device yes && same host short
for device in cpu cuda:0,1; do
    GS_HOST_GPUS=2 "$GNNSTREAM" train "$work/store" --model gcn --epochs 1 --device $device --disk-to-device yes \
        >"$work/stdout" 2>"$work/stderr" || fail "$device: does not train" "$work/stderr"
    if grep -q 'warning: --disk-to-device yes: it is for one device that has memory of its own' "$work/stderr"; then
        pass
    else
        fail "$device: not told" "$work/stderr"
    fi
done

# Interrupted with reads under way: what is computed then has none of them in its memory.
"$GNNSTREAM" train "$work/store" --model gcn --device cuda --no-cache --no-swap --keep last --host-memory 256M \
    "${options[@]}" --epochs 5000 --disk-to-device yes --metrics "$work/metrics.ends" --save "$work/weights.ends" \
    --logits "$work/logits.ends" >"$work/stdout" 2>"$work/stderr" &
until [ -s "$work/metrics.ends" ] || ! kill -0 $! 2>"$work/null"; do sleep 0.1; done
kill -TERM $!
wait $!
[ $? -eq 1 ] && pass || fail "not interrupted" "$work/stderr"
run "predict" "$GNNSTREAM" predict "$work/store" --weights "$work/weights.ends" --logits "$work/logits.again" \
    --model gcn --device cuda --disk-to-device no "${options[@]}"
cmp -s "$work/logits.ends" "$work/logits.again" && pass || fail "interrupted: other logits"

# What goes wrong names file and chunk.
arguments=(train "$work/store" --model gcn --device cuda --no-cache --no-swap --epochs 3 --host-memory 256M
    "${options[@]}" --disk-to-device)
wrong() # FAULT PATTERN
{
    refuse 1 "edges[a-z.0-9]*bin: chunk \([0-9]+, [0-9]+\), read straight to the device: $2" env GS_HOST_CUFILE="$1" \
        "$GNNSTREAM" "${arguments[@]}" yes
}
wrong error:3 "cuFile's read failed: Input/output error"
wrong end:5 'the file ends before byte'
wrong lost:4 'cuFile lost its requests'
wrong bits:6 'these are not the bytes that matched their checksum when the run began'
refuse 2 'auto\|yes\|no' "$GNNSTREAM" "${arguments[@]}" maybe
# The host checks each chunk that is read so before the first epoch.
edges=$work/store/edges.dest.bin
printf '\001' | dd of="$edges" bs=1 seek=$(($(stat -c %s "$edges") - 4095)) conv=notrunc status=none
refuse 1 'edges.dest.bin: chunk .* does not match its checksum' "$GNNSTREAM" "${arguments[@]}" yes
finish
