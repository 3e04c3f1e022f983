# Wide features in the host's memory, which a slow device computes on in place, and a fast one behind a slow wire:
# products are made where the features are, and their narrow rows go to the sums (DAHA's layout). The plan's epoch is
# 1.3 times as short as on the better device alone; the bytes that a run copies are the plan's, and nothing is copied to
# who computes in place; losses and logits are those of one device.
gnnstream generate sbm graph --vertices 4000 --edges 160000 --features 256 --classes 8 --seed 1 >made
gnnstream partition graph store --method random --parts 16 >made
slow='{"devices": 1, "speeds": [0.05], "memories": [67108864]'
fast='{"devices": 1, "speeds": [0.2], "memories": [4194304], "host_bps": 2e7}'
echo "{\"switches\": [$slow, \"in_place\": true}, $fast]}" >both.json
echo "{\"switches\": [$slow}]}" >slow.json
echo "{\"switches\": [$fast]}" >fast.json
options=(store --model gcn --hidden 8 --no-hoist --no-prune --host-memory 256M --epochs 3)
for layout in both slow fast; do
    devices=1
    [ $layout = both ] && devices=2
    run=("${options[@]}" --device cpu:$devices --threads $devices --topology $layout.json)
    gnnstream plan "${run[@]}" --json >$layout.plan || die "no plan for $layout"
    [ $layout = fast ] && continue
    gnnstream train "${run[@]}" --seed 2 --metrics $layout.jsonl --logits $layout.npy >out 2>err ||
        die "$layout: $(<err)"
done
python3 - <<'PY' || exit 70
import array, json

def plan(layout): return json.load(open(layout + ".plan"))
def seconds(layout): return next(p["seconds"] for p in plan(layout)["passes"] if p["name"] == "train")
def logits(layout):
    with open(layout + ".npy", "rb") as f:
        data = f.read()
    numbers = array.array("f")
    numbers.frombytes(data[10 + int.from_bytes(data[8:10], "little"):])
    return numbers

alone = min(seconds("slow"), seconds("fast"))
assert alone > 1.3 * seconds("both"), (seconds("slow"), seconds("fast"), seconds("both"))
moved = {}
for link in plan("both")["links"]:
    moved[link["from"], link["to"]] = sum(p["bytes"] for p in link["passes"] if p["name"] == "train")
assert moved["host", "device 1"] > 0 and moved["host", "device 0"] == moved["device 0", "host"] == 0, moved
both, slow = ([json.loads(line) for line in open(f"{layout}.jsonl")] for layout in ("both", "slow"))
for b, s in zip(both, slow, strict=True):
    assert abs(b["loss"] - s["loss"]) < 1e-5, (b, s)
assert both[0]["copied_in_bytes"] == moved["host", "device 1"], (both[0], moved)
assert both[0]["copied_out_bytes"] == moved["device 1", "host"], (both[0], moved)
assert max(abs(b - s) for b, s in zip(logits("both"), logits("slow"), strict=True)) < 1e-4
PY
