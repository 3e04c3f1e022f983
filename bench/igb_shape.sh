#!/usr/bin/env bash
# igb_shape.sh - the workload of GriNNder's table: IGB-medium's shape, generated: 10M vertices, 120M edges in
# communities, 1024 features stored as bfloat16 (20 GB), GCN 3 layers of 256, host budget 8 GiB. GriNNder reports
# 2.2 million edges a second for an epoch of it on an A5000 GPU with a PCIe 5 SSD; the ratio to that is printed, with
# where the time goes. Full size takes 20 GiB of store and spills 66 GiB, 38 with
# --spill-type bf16, or 28 with --no-hoist.
#   GS_SCALE    divides vertices, edges and budget, default 1
#   GS_EPOCHS   default 1
#   GS_OPTIONS  more options for train; `plan` is asked with and without --no-hoist, and of those that the disk holds
#               the one with the shorter epoch is run (what is computed once is in no epoch)
# On a machine that does nothing else, OMP_WAIT_POLICY=passive GOMP_SPINCOUNT=30000 gains 4 %.
. "$(dirname "$0")/lib.sh"

scale=${GS_SCALE:-1}
epochs=${GS_EPOCHS:-1}
read -r -a more <<<"${GS_OPTIONS:-}"
out=$dir/igb
edges=$((120000000 / scale))
machine
mkdir -p "$out"
if [ ! -f "$out/store-$scale/manifest.json" ]; then
    need_disk $((52 / scale + 2))
    show "$GNNSTREAM" generate sbm "$out/graph" --vertices $((10000000 / scale)) --edges $edges --features 0 \
        --classes 19 --seed 1 --force
    show "$GNNSTREAM" partition "$out/graph" "$out/store-$scale" --method lp --random-features 1024 \
        --feature-type bf16 --parts 160 --memory 4G
    rm -rf "$out/graph"
fi
run=(--model gcn --layers 3 --hidden 256 --host-memory $((8192 / scale))M --device-memory $((2048 / scale))M)
best=$(for hoist in "" --no-hoist; do
    # shellcheck disable=SC2086 # an option or none
    "$GNNSTREAM" plan "$out/store-$scale" "${run[@]}" --epochs "$epochs" ${more[@]+"${more[@]}"} $hoist --json \
        >"$out/plan.json"
    python3 -c 'import json, sys
plan = json.load(open(sys.argv[1]))
if plan["spill_bytes"] < 1024 * int(sys.argv[3]):
    print(sum(p["seconds"] for p in plan["passes"] if p["name"] == "train"), sys.argv[2])' \
        "$out/plan.json" "$hoist" "$(df -Pk "$out" | awk 'NR == 2 { print $4 }')"
done | sort -g | head -n 1)
[ -n "$best" ] || die "$out: not enough disk for what is spilled; set GS_BENCH_DIR to a larger one"
best=$(cut -d ' ' -f 2 <<<"$best")
# shellcheck disable=SC2086
show "$GNNSTREAM" bench train "$out/store-$scale" "${run[@]}" --epochs "$epochs" ${more[@]+"${more[@]}"} $best --json \
    >"$out/bench.json"
python3 - "$out/bench.json" "$edges" <<'EOF_PY'
import json, sys
b, edges = json.load(open(sys.argv[1])), int(sys.argv[2])
rate = edges / b["seconds"]
p = b["predicted"]
print(f"""
epoch        {b['seconds']:9.2f} s, {rate / 1e6:.2f} million edges a second: \
{rate / 2.2e6:.2f} of GriNNder's published 2.2
computing    {b['compute_seconds']:9.2f} s, of it {b['edge_seconds']:.2f} s in edge sums; waiting for data \
{b['stall_seconds']:.2f} s
dense        {b['dense_flops'] / 1e12:9.2f} Tflop, {b['dense_flops'] / b['gemm_flops_per_second']:.2f} s at \
this machine's {b['gemm_flops_per_second'] / 1e9:.0f} Gflop/s
read         {b['read_bytes'] / 2**30:9.2f} GiB, {b['read_bytes'] / b['disk_read_bps']:.2f} s at \
{b['disk_read_bps'] / 2**20:.0f} MiB/s
written      {b['written_bytes'] / 2**30:9.2f} GiB
predicted    {p['seconds']:9.2f} s, bound by {p['bottleneck']}
peak         {b['peak_host_bytes'] / 2**20:9.0f} MiB resident""")
EOF_PY
