#!/usr/bin/env bash
# batches.sh - a run on batches on a GPU: the device memory that a refusal names is enough and less is not, a run that
# was stopped goes on with the same bits, features that stay on disk change nothing, two GPUs take the steps of one, and
# what cannot be is refused.
# (That GPU and CPU compute the same is in tests/matrix/gpu.c.)
. "$(dirname "$0")/../e2e/lib.sh"
export XDG_CACHE_HOME=$work GS_HOST_GPU_MEMORY=268435456 # of more, each run clears a larger workspace

input_of rough
run "partition" "$GNNSTREAM" partition "$input" "$work/store" --method fennel --parts 4 || finish
train=("$GNNSTREAM" train "$work/store" --model gat --hidden 8 --dropout 0.3 --sampler neighbor --batch-size 100
    --fanout 3,2 --device cuda --epochs 1
    --lr 1e-3)

equal() { compare "$1" "$2" "$3" 0; }
refuse 1 'needs at least' "${train[@]}" --device-memory 100K
least=$(sed -n 's/.*at least \([0-9]*\)M.*/\1/p' "$work/stderr")
run "train within ${least}M" "${train[@]}" --device-memory "${least}M" --save "$work/least.safetensors"
refuse 1 'needs at least' "${train[@]}" --device-memory $((least - 2))M
run "train" "${train[@]}" --save "$work/whole.safetensors" --metrics "$work/metrics"
equal "weights within ${least}M" "$work/least.safetensors" "$work/whole.safetensors"
copied=$(column copied_in_bytes "$work/metrics" | head -n 1)
[ "${copied:-0}" -gt 0 ] && pass || fail "no copies are counted" "$work/metrics"

run "read features" "${train[@]}" --no-cache --save "$work/read.safetensors" --checkpoint "$work/kept" \
    --checkpoint-every 1
equal "weights where features are read" "$work/read.safetensors" "$work/whole.safetensors"
"${train[@]}" --epochs 2 --resume "$work/kept" --save "$work/on.safetensors" >"$work/stdout" 2>"$work/stderr" ||
    fail "go on" "$work/stderr"
run "train 2 epochs" "${train[@]}" --epochs 2 --save "$work/both.safetensors"
equal "weights of a run that went on" "$work/on.safetensors" "$work/both.safetensors"

# Where host memory has room for all features and not for what is beside them, a cache takes their place.
run "generate" "$GNNSTREAM" generate sbm "$work/wide-graph" --vertices 6000 --edges 30000 --features 96 --classes 5
run "partition" "$GNNSTREAM" partition "$work/wide-graph" "$work/wide" --method random --parts 16
wide=("$GNNSTREAM" train "$work/wide" --model sage --hidden 16 --sampler saint-node --batch-size 300 --device cuda
    --epochs 1 --threads 2)
refuse 1 'needs at least' "${wide[@]}" --host-memory 4K
least=$(sed -n 's/.*at least \([0-9]*\)M.*/\1/p' "$work/stderr")
for more in 1 2; do
    "${wide[@]}" --host-memory $((least + more))M >"$work/stdout" 2>"$work/stderr" ||
        grep -q 'needs at least' "$work/stderr" && pass || fail "train within $((least + more))M" "$work/stderr"
done

# The next group is drawn, and the next batch picked and sent, while this one is trained, or is not: weights are the
# same, and the trace says which it was.
ahead() # OPTION...: groups, and those that began to be drawn before the batch in front of them had been computed;
        # batches behind another of their group, and those that were picked and began to be sent before that was; those
        # that were picked before the one but one in front of them was
{
    run "train with a trace $*" "${train[@]}" --threads 1 --batch-size 20 --epochs 1 --trace "$work/trace.json" \
        --save "$work/traced.safetensors" "$@"
    python3 - "$work/trace.json" <<'PY'
import json, sys
events = [e for e in json.load(open(sys.argv[1]))["traceEvents"] if e["ph"] == "X"]
spans = {(e["name"], e["args"]["batch"]): (e["ts"], e["ts"] + e["dur"]) for e in events}
drawn = {b for name, b in spans if name == "draw"}
behind = [b for name, b in spans if name == "pick" and b not in drawn]
def ahead(name, batches):
    return sum(spans[name, b][0] < spans["compute", b - 1][1] for b in batches)
early = sum(spans["pick", b][0] < spans["compute", b - 2][1] for b in range(2, len(behind)))
print(len(drawn) - 1, ahead("draw", drawn - {0}), len(behind), ahead("send", behind), early)
PY
}
read -r groups drawn batches sent early < <(ahead --no-draw | tail -n 1)
cp "$work/traced.safetensors" "$work/ahead.safetensors"
[ "$groups" -gt 0 ] && [ "$drawn" -gt 0 ] && pass || fail "none of $groups groups were drawn ahead" "$work/stderr"
[ "$sent" -gt 0 ] && [ $((sent * 2)) -ge "$batches" ] && pass ||
    fail "$sent of $batches batches were picked and sent while one computed" "$work/stderr"
[ "$early" -gt 0 ] && pass || fail "no batch of $batches was picked while the one before it was sent" "$work/stderr"
read -r groups drawn batches sent _ < <(ahead --no-draw --no-pipeline | tail -n 1)
[ "$groups" -gt 0 ] && [ "$drawn" = 0 ] && pass || fail "$drawn of $groups groups were drawn ahead" "$work/stderr"
[ "$sent" = 0 ] && pass || fail "$sent of $batches batches were sent ahead" "$work/stderr"
equal "weights of batches that are drawn and sent ahead" "$work/ahead.safetensors" "$work/traced.safetensors"
read -r groups drawn batches sent _ < <(ahead | tail -n 1)
[ "$sent" -gt 0 ] && [ $((sent * 2)) -ge "$batches" ] && pass ||
    fail "$sent of $batches batches were drawn on the GPU while one computed" "$work/stderr"

# Batches that the GPU draws itself are those of the processors, to the bit: with any sums, of any number of hops, and
# where one has no room and goes in parts.
drawn() # STORE OPTION...
{
    local on=("$GNNSTREAM" train "$1" --sampler neighbor --device cuda --lr 1e-3 --epochs 1 --eval-every 0 "${@:2}")
    run "plan ${*:2}" "$GNNSTREAM" plan "${on[@]:2}"
    grep -q '^batches drawn on the GPU' "$work/stdout" && pass || fail "the processors draw for ${*:2}" "$work/stdout"
    run "draw on the GPU: ${*:2}" "${on[@]}" --metrics "$work/one.metrics" --save "$work/one.safetensors"
    run "draw on the processors: ${*:2}" "${on[@]}" --metrics "$work/two.metrics" --save "$work/two.safetensors" \
        --no-draw
    cmp -s "$work/one.safetensors" "$work/two.safetensors" && pass || fail "other weights, drawn on the GPU: ${*:2}"
}
for model in ${GS_TEST_ALL:+"gat --dropout 0.3" "gcn --no-prune"} "sage --layers 3 --norm batch --no-pipeline"; do
    drawn "$work/store" --model $model --hidden 8 --batch-size 100 --fanout 3,2,4
done
# Of a batch a seed of 4 bytes for each target crosses, as no rows of features do.
saved=$(($(column copied_in_bytes "$work/two.metrics") - $(column copied_in_bytes "$work/one.metrics")))
[ "$saved" -gt 0 ] && pass || fail "$saved bytes less cross" "$work/one.metrics"
# Edges with types and weights, drawn by these or not.
input_of typed
python3 - "$input/edge_weights.npy" <<'PY'
import array, sys
data = open(sys.argv[1], "rb").read()
begin = 10 + int.from_bytes(data[8:10], "little")
weights = array.array("f", (abs(w) for w in array.array("f", data[begin:])))
open(sys.argv[1], "wb").write(data[:begin] + weights.tobytes())
PY
run "partition $input" "$GNNSTREAM" partition "$input" "$work/typed-store" --method fennel --parts 4
for more in "rgcn --by-type --weighted --ignore-edge-weights" \
    ${GS_TEST_ALL:+"gcn --weighted" "rgcn --ignore-edge-weights" "gcn" \
        "rgcn --by-type --no-prune --ignore-edge-weights"}; do
    drawn "$work/typed-store" --model $more --hidden 8 --batch-size 100 --fanout 3,2
done
run "make a graph" "$GNNSTREAM" generate sbm "$work/uneven" --vertices 5120 --edges 5120 --features 8 --classes 4
rm "$work/uneven/"{valid,test}_idx.npy
python3 - "$work/uneven" <<'PY'
import struct, sys
def save(name, shape, numbers): # of int32
    head = "{'descr': '<i4', 'fortran_order': False, 'shape': (%s), }" % shape
    with open(f"{sys.argv[1]}/{name}.npy", "wb") as out:
        out.write(b"\x93NUMPY\1\0" + struct.pack("<H", 118) + head.ljust(117).encode() + b"\n")
        out.write(struct.pack(f"<{len(numbers)}i", *numbers))
edges = [(k * 977 + v * 31 + 1) % 5120 if end == 0 else v
         for v in range(5120) for k in range(6 if v // 256 in (4, 9) else 1) for end in (0, 1)]
save("edges", f"{len(edges) // 2}, 2", edges)
save("train_idx", "5120,", list(range(5120)))
PY
run "partition it" "$GNNSTREAM" partition "$work/uneven" "$work/uneven.store" --method natural --parts 2
drawn "$work/uneven.store" --model sage --hidden 4 --batch-size 256 --fanout 6,2 --shuffle never

# The GPU steps by itself with two slots: with the same bits, also where a run was stopped within an epoch, and with the
# host's word on numbers that are not finite.
for fault in ${GS_TEST_ALL:+"--lr 1e30"} "--lr 1e38 --optimizer sgd --weight-decay 1e10"; do
    for more in "" --no-pipeline; do
        refuse 1 'not finite|not a number' "${train[@]}" --batch-size 20 $fault $more
        mv "$work/stderr" "$work/said$more"
    done
    cmp -s "$work/said" "$work/said--no-pipeline" && pass || fail "another fault" "$work/said"
done
for more in "--weight-decay 0.01 --norm batch" ${GS_TEST_ALL:+"--optimizer sgd --momentum 0.9" "--clip-norm 0.5"}; do
    run "train $more" "${train[@]}" --batch-size 20 --save "$work/one.safetensors" $more
    run "train $more --no-pipeline" "${train[@]}" --batch-size 20 --save "$work/two.safetensors" --no-pipeline $more
    equal "weights with $more" "$work/two.safetensors" "$work/one.safetensors"
done
long=("${train[@]}" --batch-size 10 --epochs 3 --eval-every 0 --keep last)
began=$EPOCHREALTIME
"${long[@]}" --save "$work/one.safetensors" >"$work/stdout" 2>"$work/stderr" || fail "train 3 epochs" "$work/stderr"
ended=$EPOCHREALTIME
stopped=false
for part in 70 80 60 90 50 85 75 65 95 55 45 40 35 30 100 120 150 200; do # of the time that it takes, others beside it
    rm -rf "$work/within"
    timeout -s INT "$(awk "BEGIN {print ($ended - $began) * $part / 100}")" "${long[@]}" \
        --checkpoint "$work/within" >"$work/stdout" 2>"$work/stderr"
    grep -q 'batches of the next$' "$work/stderr" && stopped=true && break
done
$stopped && pass || fail "never stopped within an epoch" "$work/stderr"
"${long[@]}" --resume "$work/within" --save "$work/two.safetensors" >"$work/stdout" 2>"$work/stderr" ||
    fail "go on within an epoch" "$work/stderr"
equal "weights of a run that went on within an epoch" "$work/two.safetensors" "$work/one.safetensors"

run "two batches a step" "${train[@]}" --batches-per-step 2 --save "$work/one.safetensors"
for device in ${GS_TEST_ALL:+cuda:0,0} cuda:0,1; do
    run "train on $device" env GS_HOST_GPUS=2 "${train[@]}" --device "$device" --save "$work/two.safetensors"
    compare "weights of $device" "$work/two.safetensors" "$work/one.safetensors" 1e-4
done
# Processors have one of three batches, and the GPU two.
place='"edges": [0.5, 1], "vertices": [0.5, 1]'
echo '{"switches": [{"devices": 1}, {"devices": 1}], "place": {'"$place"'}}' >"$work/third.json"
beside=("${train[@]}" --batches-per-step 3 --device cpu,cuda:0)
run "three batches a step" "${train[@]}" --batches-per-step 3 --save "$work/one.safetensors"
run "plan of cpu,cuda:0" "$GNNSTREAM" plan "${beside[@]:2}" --topology "$work/third.json"
grep -q '^batches of a step *1 on device 0, 2 on device 1$' "$work/stdout" && pass || fail "shares" "$work/stdout"
for more in ${GS_TEST_ALL:+""} --no-cache; do
    run "train on cpu,cuda:0 $more" "${beside[@]}" --topology "$work/third.json" $more --save "$work/two.safetensors"
    compare "weights of cpu,cuda:0 $more" "$work/two.safetensors" "$work/one.safetensors" 1e-4
done
refuse 2 'has 2 devices, to which the batches of a step are dealt' "${beside[@]}" --batches-per-step 1
# Pairs are scored by the processors, behind layers on a GPU: of the whole graph, and of batches of neighbours.
for pairs in "cuda:0,1 --decoder mlp --loss logistic" ${GS_TEST_ALL:+"cuda --negatives-by degree"} \
    "cuda:0,1 --decoder mlp --seeds edges --sampler neighbor --fanout 3,2 --batch-size 300 --batches-per-step 2"; do
    scored=("$GNNSTREAM" train "$work/store" --task link --model gcn --hidden 8 --negatives 4 --epochs 2
        --optimizer sgd --lr 0.1 --eval-every 0 --keep last ${pairs#* })
    run "pairs on the processors: $pairs" "${scored[@]}" --save "$work/one.safetensors"
    run "pairs on $pairs" env GS_HOST_GPUS=2 "${scored[@]}" --device "${pairs%% *}" --save "$work/two.safetensors"
    compare "weights of pairs on $pairs" "$work/two.safetensors" "$work/one.safetensors" 1e-4
done
# Losses of GraphSAINT's batches have factors: of classes, smoothed or not, and of numbers.
for loss in "--label-smoothing 0.2" "--task regress"; do
    saint=("$GNNSTREAM" train "$work/store" --model gcn --hidden 8 --epochs 2 --lr 1e-3 --sampler saint-walk
        --batch-size 60 --coverage 3 --ignore-edge-weights $loss)
    run "coverage $loss on the processors" "${saint[@]}" --save "$work/one.safetensors"
    run "coverage $loss" "${saint[@]}" --device cuda --save "$work/two.safetensors"
    compare "weights with coverage $loss" "$work/two.safetensors" "$work/one.safetensors" 1e-4
done
finish
