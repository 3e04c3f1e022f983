# The figures of a short run, as JSON: whole, positive, and no epoch below its floor.
small_store
gnnstream bench train store --model gcn --epochs 3 --no-cache --json >bench.json
gnnstream bench train store --model gcn --epochs 3 >text
grep -q '^floor ' text || die "$(<text)"
nothing_left
python3 - <<'PY'
import json
b = json.load(open("bench.json"))
for key in ("seconds", "edge_seconds", "read_bytes", "disk_read_bps", "gemm_flops_per_second", "gather_bps", "dense_flops",
            "edge_flops", "edge_bytes", "floor_seconds"):
    assert b[key] > 0, key
assert 0 < b["fraction"] <= 1, b["fraction"]
assert b["edge_seconds"] <= b["compute_seconds"] <= b["seconds"]
PY
