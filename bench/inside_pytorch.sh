#!/usr/bin/env bash
# inside_pytorch.sh - a layer inside PyTorch beside torch_geometric's GATConv: gradients of both against the same in
# float64, on graphs with self loops, doubled edges and vertices without edges; then epochs of two layers, 8 heads of 8
# and one of 8, on one graph. Builds the Python package with pip.
#   GS_PYTHON  a Python with torch and torch_geometric; default the environment that peers.sh makes
#   GS_SCALE   divides vertices (100,000) and edges (1,000,000) of the epochs, default 1
. "$(dirname "$0")/lib.sh"

python=${GS_PYTHON:-$dir/peers-venv/bin/python}
"$python" -c 'import torch, torch_geometric' 2>/dev/null ||
    die "$python: has no torch and torch_geometric; run bench/peers.sh pubmed, or set GS_PYTHON"
machine
target=$dir/inside-pytorch
trap 'rm -rf "$target"' EXIT
rm -rf "$target"
show "$python" -m pip install --quiet --no-deps --disable-pip-version-check --target "$target" "$root"
PYTHONPATH=$target PYTHONWARNINGS=ignore show "$python" "$here/inside_pytorch.py" "${GS_SCALE:-1}"
