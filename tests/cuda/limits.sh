#!/usr/bin/env bash
# limits.sh - `bench limits --device cuda:0,1` measures a GPU by the calls of a run, and plans are made with it.
. "$(dirname "$0")/../e2e/lib.sh"

export XDG_CACHE_HOME=$work/cache GS_HOST_GPUS=2
unset GS_TEST_GPU_RACES # which others look for: copies of 64 MiB would take minutes
run "generate" "$GNNSTREAM" generate rmat "$work/graph" --vertices 1000 --edges 3000 --features 8 --classes 4 --seed 3
run "partition" "$GNNSTREAM" partition "$work/graph" "$work/store" --parts 2 --method random --seed 1 || finish
refuse 2 'device gpu: limits are those of cpu or of cuda' "$GNNSTREAM" bench limits --no-disk --device gpu
run "bench limits" "$GNNSTREAM" bench limits --no-disk --device cuda:0,1 --json || finish
cp "$work/stdout" "$work/limits"
run "plan" "$GNNSTREAM" plan "$work/store" --model gcn --device cuda --json || finish
cp "$work/stdout" "$work/plan"
run "figures, and the plan's links" python3 - "$work/limits" "$work/plan" <<'END'
import json, sys
limits, plan = (json.load(open(path)) for path in sys.argv[1:])
assert limits["device"].startswith("cuda:0 (") and limits["disk_read_bps"] == 0, limits
assert 0 < limits["launch_seconds"] < 1e-2 and limits["tf32_flops"] > 0 and limits["bf16_flops"] > 0, limits
assert [c["bytes"] for c in limits["copies"]] == [4096, 65536, 1 << 20, 1 << 24, 1 << 26], limits
assert all(c[way] > 0 for c in limits["copies"] for way in ("in_bps", "out_bps", "between_bps")), limits
assert all(g["flops_per_second"] > 0 and g["rows"] >= 256 for g in limits["gemm"]), limits
assert all(e["edges_per_second"] > 0 for e in limits["edges"]), limits
assert abs(max(c["in_bps"] for c in limits["copies"]) / limits["link_bps"] - 1) < 1e-6, limits
link = next(l for l in plan["links"] if l["from"] == "host" and l["to"] == "device 0")
for p in link["passes"]:
    want = p["bytes"] / limits["link_bps"] + p["requests"] * limits["link_request_seconds"]
    assert abs(p["seconds"] - want) <= 1e-6 * want, (p, want)
assert sum(p["bytes"] for p in link["passes"]) > 0, link
END
finish
