#!/usr/bin/env bash
# edge_layers.sh - what does an epoch of EdgeConv 64-64, whose MLP has two layers, take beside its products alone?
# R-MAT, 10 edges a vertex, all vertices learn, a layer.
#
# The products at the least: of edges the second linear layer forward, once more as nothing of the edges is kept, and
# its two gradients; of vertices the first one, which moves there, and its gradients by the weights. They take no longer
# than their operations at the rate of oneDNN's sgemm that bench train measures beside. The target is 1.5 times that or
# less. Beside stand the products as the text writes them, both layers of edges, forward and two gradients each, and
# those that the program makes, zeros that it leaves out among them.
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
one = 2 * 64 * 64
least, rate = 4 * one * 10 * vertices + 4 * one * vertices, b["gemm_flops_per_second"]
written, made = 3 * 3 * one * 10 * vertices, b["dense_flops"]
print(f"{sys.argv[3]} threads: an epoch {b['seconds']:.3f} s; at the least {least / 1e9:.1f} Gop at "
      f"{rate / 1e9:.1f} G/s {least / rate:.3f} s, {b['seconds'] * rate / least:.2f} times (target 1.5); "
      f"{b['seconds'] * rate / written:.2f} times the {written / 1e9:.1f} Gop that the text writes, "
      f"{b['seconds'] * rate / made:.2f} times the {made / 1e9:.1f} Gop that the program makes")
EOF_PY
done
