# Four devices, each of which may have a share of the targets of an edge pass, or a part of the width of its rows: over
# the widths of hidden layers, the bytes that cross the links are those of the plan, and the plan takes the way that has
# fewer: targets where rows are so wide that edges do not stay in the devices' memory. Logits of the same weights are
# the same to the bit, losses up to rounding.
gnnstream generate rmat graph --vertices 2000 --edges 150000 --features 8 --classes 16 --seed 3 >made
gnnstream partition graph store --parts 8 --method random --undirected >made
wire='{"devices": 1, "host_bps": 2e7}'
wires="\"switches\": [$wire, $wire, $wire, $wire]"
echo "{$wires}" >targets.json
echo "{$wires, \"width\": true}" >width.json
widths=(8 32 128 512)
for hidden in "${widths[@]}"; do
    options=(store --layers 3 --hidden "$hidden" --no-prune --no-swap --device cpu:4 --device-memory 14M)
    model=gcn
    [ "$hidden" != 32 ] || model=sage
    for way in targets width chosen; do
        run=("${options[@]}" --model $model --topology targets.json)
        [ $way != targets ] || run+=(--no-width)
        [ $way != width ] || run=("${options[@]}" --model $model --topology width.json)
        gnnstream plan "${run[@]}" --epochs 100 --json >"$way.$hidden.plan" || die "no plan: $way, $hidden"
        [ $way != chosen ] || continue
        gnnstream train "${run[@]}" --epochs 2 --eval-every 0 --keep last --seed 2 --save "$way" \
            --metrics "$way.$hidden.jsonl" >out 2>err || die "$way, $hidden: $(<err)"
    done
    for way in targets width; do
        gnnstream predict store --weights width --logits "$way.npy" --device cpu:4 --device-memory 14M \
            --topology "$way.json" >out 2>err || die "no prediction: $way, $hidden: $(<err)"
    done
    cmp targets.npy width.npy || die "other logits: $hidden"
done
python3 - "${widths[@]}" <<'PY' || exit 70
import json, sys

def plan(way, hidden):
    """Bytes over the links of a pass "train", into devices and out of them; is the width dealt?"""
    p = json.load(open(f"{way}.{hidden}.plan"))
    moved = {"in": 0, "out": 0, "among": 0}
    for link in p["links"]:
        ends = [link[k].startswith("device") for k in ("from", "to")]
        where = "among" if all(ends) else "in" if ends[1] else "out" if ends[0] else None
        if where:
            moved[where] += sum(q["bytes"] for q in link["passes"] if q["name"] == "train")
    return moved, next(q["width"] for q in p["passes"] if q["name"] == "train")

ways = []
for hidden in sys.argv[1:]:
    total, losses = {}, {}
    for way in "targets", "width":
        moved, dealt = plan(way, hidden)
        assert dealt == (way == "width"), (way, hidden)
        epochs = [json.loads(line) for line in open(f"{way}.{hidden}.jsonl")]
        losses[way] = [e["loss"] for e in epochs]
        assert len(epochs) == 2
        for e in epochs[1:]:
            counted = {"in": e["copied_in_bytes"], "out": e["copied_out_bytes"], "among": e.get("forwarded_bytes", 0)}
            assert counted == moved, (way, hidden, counted, moved)
        total[way] = sum(moved.values())
    assert all(abs(a - b) < 1e-5 for a, b in zip(*losses.values(), strict=True)), losses
    moved, dealt = plan("chosen", hidden)
    ways.append(dealt)
    assert sum(moved.values()) <= 1.02 * min(total.values()), (hidden, moved, dealt, total)
assert True in ways and False in ways, ways
PY
