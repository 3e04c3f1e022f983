#!/usr/bin/env bash
# edge_layers.sh - what does an epoch of EdgeConv 64-64, whose MLP has two layers, take beside its products alone?
# R-MAT, 10 edges a vertex, all vertices learn, a layer.
#
# Two floors, both at the rate of oneDNN's sgemm that bench train measures beside:
# - what the mathematics needs: of an edge one product, the second linear layer's; of each number of a vertex's maximum
#   its two gradients, one row of the matrix each, as no other edge has a part of them; of a vertex the two products of
#   the first layer, which moves there, and their gradients by the weights. And the bytes: a row of 64 numbers that each
#   edge gathers, at the rate of gathers that bench train measures. Rows that gradients gather are not counted, as their
#   number depends on who has the maxima; nor does the floor let one be made beside the other.
# - with products of all edges: four of an edge (forward, once more as nothing of the edges is kept, two gradients). A
#   program may come below it. The target is 1.5 times that or less.
# Beside stand the products as the text writes them, both layers of edges, forward and two gradients each, and those
# that the program makes, zeros that it leaves out among them.
#   GS_VERTICES  default 200000
#   GS_THREADS   default "1 2"
. "$(dirname "$0")/lib.sh"

vertices=${GS_VERTICES:-200000}
read -r -a all_threads <<<"${GS_THREADS:-1 2}"
work=$dir/edge-layers.$vertices
machine
need_disk $((1 + vertices / 250000))
if [ ! -d "$work/store" ]; then
    mkdir -p "$work"
    show "$GNNSTREAM" generate rmat "$work/graph" --vertices "$vertices" --edges $((10 * vertices)) --features 64 \
        --classes 64 --force
    python3 - "$work/graph" "$vertices" <<'EOF_PY'
import array, struct, sys
folder, vertices = sys.argv[1], int(sys.argv[2])
for name, ids in (("train", range(2, vertices)), ("valid", range(1)), ("test", range(1, 2))):
    head = f"{{'descr': '<i8', 'fortran_order': False, 'shape': ({len(ids)},), }}"
    head += " " * (-(10 + len(head) + 1) % 64) + "\n"
    with open(f"{folder}/{name}_idx.npy", "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        array.array("q", ids).tofile(f)
EOF_PY
    show "$GNNSTREAM" partition "$work/graph" "$work/store" --parts 1
fi
for threads in "${all_threads[@]}"; do
    show "$GNNSTREAM" bench train "$work/store" --model "$root/tests/e2e/edge_texts/edgeconv.gnn" --layers 1 \
        --hidden 64 --epochs 5 --threads "$threads" --json >"$work/bench.json"
    python3 - "$work/bench.json" "$vertices" "$threads" <<'EOF_PY'
import json, sys
b, vertices = json.load(open(sys.argv[1])), int(sys.argv[2])
one, edges, rate = 2 * 64 * 64, 10 * vertices, b["gemm_flops_per_second"]
needed, gathered = one * (edges + 2 * vertices + 4 * vertices), 4 * 64 * edges
floor = needed / rate + gathered / b["gather_bps"]
print(f"{sys.argv[3]} threads: an epoch {b['seconds']:.3f} s, {b['seconds'] / floor:.2f} times what the mathematics "
      f"needs: {needed / 1e9:.1f} Gop at {rate / 1e9:.1f} G/s {needed / rate:.3f} s and {gathered / 1e6:.0f} MB at "
      f"{b['gather_bps'] / 1e9:.1f} GB/s {gathered / b['gather_bps']:.3f} s")
for what, flops in (("products of all edges (target 1.5)", one * (4 * edges + 4 * vertices)),
                    ("products as the text writes them", 3 * 3 * one * edges),
                    ("products as the program makes them", b["dense_flops"])):
    print(f"  {what}: {flops / 1e9:.1f} Gop {flops / rate:.3f} s, {b['seconds'] * rate / flops:.2f} times")
EOF_PY
done
