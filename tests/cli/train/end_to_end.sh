# A tiny graph all the way: accuracy from the planted classes, files whole, predict
# gives the bytes that train gave.
small_store
gnnstream verify store >text
gnnstream plan store --model gcn --hidden 16 >plan
grep -q '^train ' plan && grep -q '^host memory ' plan && grep -q 'parameters' plan || die "$(<plan)"
gnnstream plan store --model gcn --no-cache >plan
grep -q '^disk to host  *train ' plan || die "no links: $(<plan)"
gnnstream plan store --model gcn --hidden 16 --json >plan.json
[ "$(find store -newer plan.json)" = '' ] || die 'plan wrote into the store'
gnnstream train store --model gcn --hidden 16 --epochs 40 --lr 0.05 --seed 2 --save w.safetensors --logits l.npy \
    --metrics m.jsonl >result
grep -q '^40 epochs in ' result || die "$(<result)"
accuracy=$(sed -n 's/^test *//p' result)
awk -v a="$accuracy" 'BEGIN { exit !(a > 0.8 && a <= 1) }' || die "test accuracy $accuracy of planted classes"
[ "$(wc -l <m.jsonl)" = 40 ] || die 'not one line of metrics an epoch'
awk -F'"loss": ' '{ split($2, a, ","); loss[NR] = a[1] + 0 }
    END { exit !(loss[1] > 0.9 && loss[1] < 1.5 && loss[40] < 0.6 * loss[1]) }' m.jsonl || die "losses: $(<m.jsonl)"
[ "$(stat -c %s l.npy)" = $((128 + 1500 * 3 * 4)) ] || die "logits of $(stat -c %s l.npy) bytes"
gnnstream predict store --model gcn --hidden 16 --weights w.safetensors --logits p.npy >predicted
cmp l.npy p.npy || die 'predict and train give other logits'
[ "$(sed -n 's/^test *//p' predicted)" = "$accuracy" ] || die 'predict and train give other accuracies'
nothing_left
if command -v python3 >/dev/null; then
    python3 - <<'PY'
import json, struct
lines = [json.loads(l) for l in open("m.jsonl")]
assert [l["epoch"] for l in lines] == list(range(1, 41))
keys = ["epoch", "loss", "train_acc", "valid_acc", "test_acc", "lr", "seconds", "read_bytes", "written_bytes",
        "compute_seconds", "stall_seconds", "peak_host_bytes", "peak_device_bytes", "valid_loss"]
keys += [f"{split}_{name}" for name in ("macro_f1", "balanced_acc") for split in ("train", "valid", "test")]
assert all(list(l) == keys for l in lines)
assert all(0 <= l["valid_acc"] <= 1 and l["seconds"] > 0 for l in lines)
plan = json.load(open("plan.json"))
assert [p["name"] for p in plan["passes"]] == ["setup", "train", "eval"]
assert 0 < plan["host_bytes"] <= plan["host_memory"]
assert [(l["from"], l["to"]) for l in plan["links"]] == [("disk", "host"), ("host", "disk")]
for i, p in enumerate(plan["passes"]):
    read, write = (l["passes"][i] for l in plan["links"])
    assert (read["name"], read["bytes"], read["requests"]) == (p["name"], p["read_bytes"], p["read_requests"])
    assert write["bytes"] == p["written_bytes"] and (read["seconds"] > 0) == (read["bytes"] > 0)
raw = open("w.safetensors", "rb").read()
n = struct.unpack("<Q", raw[:8])[0]
shapes = {k: v["shape"] for k, v in json.loads(raw[8:8 + n]).items() if k != "__metadata__"}
assert shapes == {"convs.0.lin.weight": [16, 12], "convs.0.bias": [16],
                  "convs.1.lin.weight": [3, 16], "convs.1.bias": [3]}, shapes
PY
fi
