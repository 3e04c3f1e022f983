# Batches that go to devices of cpu:2 over wires of their own: they are picked, sent and computed on at the same time,
# and weights are the same to the bit with the pipeline and without, without wires, with groups of any size and any
# budget, and in a run that goes on from within an epoch. The plan says that a step is as long as its longest lane.
small_store
wire='{"devices": 1, "host_bps": 2000000, "peer_bps": 2000000}'
echo "{\"switches\": [$wire, $wire]}" >wires.json
model=(store --model gcn --hidden 4 --sampler neighbor --batch-size 4 --fanout 4,4 --device cpu:2 --threads 2)
train=(gnnstream train "${model[@]}" --epochs 2 --eval-every 0 --keep last)
same()
{
    "${train[@]}" --save other.safetensors "$@" >out 2>err || die "$* $(<err)"
    cmp <(tensors first.safetensors) <(tensors other.safetensors) || die "other weights: $*"
}
"${train[@]}" --save first.safetensors --topology wires.json --trace trace.json >out 2>err || die "$(<err)"
python3 - trace.json <<'END' || die 'lanes wait for each other'
import json, sys
at = {(e["name"], e["args"]["batch"]): (e["ts"], e["ts"] + e["dur"])
      for e in json.load(open(sys.argv[1]))["traceEvents"] if e["ph"] == "X"}
batches = [b for name, b in at if name == "compute" and b >= 4] # a device has every second one
begin = {lane: sum(at[lane, b][0] < at[before, b - 2 * n][1] for b in batches)
         for lane, before, n in (("pick", "send", 1), ("send", "compute", 1))}
assert 2 * begin["pick"] > len(batches) > 4 and begin["send"] > 0, begin # a busy machine wakes threads late
assert all(at["send", b][0] >= at["compute", b - 4][1] for b in batches), "a slot was overwritten"
END
same
same --topology wires.json --no-pipeline
same --topology wires.json --host-memory 80M --no-cache
"${train[@]}" --topology wires.json --host-memory 20M >out 2>err && die 'too small a budget was taken'
least=$(sed -n 's/.*at least \([0-9]*\)M.*/\1/p' err)
same --topology wires.json --host-memory $((least + 1))M # the program's own memory varies by some pages
plan() { gnnstream plan "${model[@]}" --topology wires.json --json "$@"; }
plan >ahead.json
plan --no-pipeline >behind.json
python3 - <<'END' || die "$(<ahead.json)"
import json
ahead, behind = (json.load(open(f"{name}.json")) for name in ("ahead", "behind"))
lane = [ahead[f"{name}_seconds"] for name in ("draw", "pick", "send", "compute")]
assert max(lane) == ahead["send_seconds"] > 0 and max(lane) <= ahead["step_seconds"] <= 1.1 * max(lane), (lane, ahead)
assert abs(behind["step_seconds"] - sum(lane)) < 0.01 * sum(lane), (lane, behind["step_seconds"])
END
# Stopped within an epoch.
stopped=false
for after in 0.6 0.9 1.3 1.8; do
    rm -rf kept
    timeout -s INT $after "${train[@]}" --topology wires.json --epochs 20 --checkpoint kept >out 2>err || true
    grep -q 'batches of the next$' err && stopped=true && break
done
$stopped || die "never stopped within an epoch: $(<err)"
"${train[@]}" --topology wires.json --epochs 20 --save first.safetensors >out 2>err || die "$(<err)"
same --topology wires.json --epochs 20 --resume kept
