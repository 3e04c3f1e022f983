#!/usr/bin/env bash
# same_training.sh [accuracy] [memory] [disk] - trainings in PyTorch of which only the loader's line is changed.
#
#   accuracy  as PyG's Reddit and ogbn-products examples train, on graphs that are given (batches/same_training.py):
#             test accuracy over five seeds, beside torch_geometric's NeighborLoader
#   memory    batches a second of a generated graph in memory, beside NeighborLoader, with the model and without
#   disk      the same with features on disk, in a memory cgroup of a quarter of these, beside GraphBolt's; needs root,
#             and the environment that loaders.sh makes
#
# PyPI has no wheel of pyg-lib or torch-sparse, one of which NeighborLoader needs. Of torch-sparse's sources, the
# neighbour sampler alone is compiled here, two files, some minutes; NeighborLoader then runs as with all of it.
#   GS_PYTHON   a Python with torch and torch_geometric; default the environment that peers.sh makes
#   GS_PACKAGE  a folder with the package gnnstream for it; default: pip builds it
#   GS_GRAPHS   folders of graphs for accuracy, ":60" behind one that is split 60/20/20 at random
#   GS_SCALE    divides vertices and edges of memory and disk, default 1
#   GS_ROUNDS, GS_EPOCHS  as in loaders.sh
. "$(dirname "$0")/lib.sh"

python=${GS_PYTHON:-$dir/peers-venv/bin/python}
scale=${GS_SCALE:-1}
work=$dir/loaders$([ "$scale" = 1 ] || echo "-$scale")
package=${GS_PACKAGE:-$dir/same-training/package}
sparse=torch_sparse-0.6.18
sampler=$dir/same-training/neighbor_sample.so
[ $# -gt 0 ] || set -- accuracy memory
"$python" -c 'import torch, torch_geometric' 2>/dev/null ||
    die "$python: has no torch and torch_geometric; run bench/peers.sh pubmed, or set GS_PYTHON"
mkdir -p "$dir/same-training" "$work"

build_package()
{
    [ -d "$package/gnnstream" ] || show "$python" -m pip install --quiet --no-deps --disable-pip-version-check \
        --target "$package" "$root"
    export PYTHONPATH=$package PYTHONWARNINGS=ignore
}

build_sampler()
{
    local torch
    [ ! -e "$sampler" ] || return 0
    cd "$dir/same-training"
    show "$python" -m pip download --quiet --no-deps --no-binary :all: --no-build-isolation torch-sparse==0.6.18
    tar xzf $sparse.tar.gz
    torch=$("$python" -c 'import torch; print(torch.__path__[0])')
    show g++ -shared -O2 -std=c++20 -fPIC -fopenmp -w -DAT_PARALLEL_OPENMP=1 -I$sparse/csrc \
        -I$sparse/third_party/parallel-hashmap -I"$torch/include" -I"$torch/include/torch/csrc/api/include" \
        $sparse/csrc/neighbor_sample.cpp $sparse/csrc/cpu/neighbor_sample_cpu.cpp -L"$torch/lib" -ltorch -ltorch_cpu \
        -lc10 -o "$sampler"
    cd - >/dev/null
}

# beside PYTHON NAME VERTICES EDGES FEATURES OPTIONS...: on a graph of loaders.sh, made once.
beside()
{
    local name=$2 vertices=$3 edges=$4 features=$5 with=$1
    shift 5
    [ -d "$work/$name" ] || show "$GNNSTREAM" generate sbm "$work/$name" --vertices $((vertices / scale)) \
        --edges $((edges / scale)) --features "$features" --classes 16 --seed 1
    [ -d "$work/$name.store" ] || show "$GNNSTREAM" partition "$work/$name" "$work/$name.store" --parts 8 --memory 2G
    [ -e "$work/$name/peer_indptr.npy" ] || "$with" "$here/batches/peer.py" prepare "$work/$name"
    set -- "$with" "$here/batches/beside.py" "$work/$name" "$work/$name.store" --gnnstream "$GNNSTREAM" --models sage \
        --rounds "${GS_ROUNDS:-3}" "$@"
    show "$@"
    show "$@" --batches-alone
}

machine
build_package
for what in "$@"; do
    case $what in
    accuracy)
        [ -n "${GS_GRAPHS:-}" ] || die "accuracy: GS_GRAPHS must name folders of graphs"
        build_sampler
        read -r -a graphs <<<"$GS_GRAPHS"
        show "$python" "$here/batches/same_training.py" "$dir/same-training" "${graphs[@]}" --sampler "$sampler"
        ;;
    memory)
        build_sampler
        beside "$python" mem 500000 10000000 128 --peers neighborloader,loader-pyg --sampler "$sampler" \
            --epochs "${GS_EPOCHS:-2}"
        ;;
    disk)
        [ -e "$dir/loaders-venv/complete" ] || die "$dir/loaders-venv: not there; run bench/loaders.sh disk before"
        need_disk 9
        beside "$dir/loaders-venv/bin/python" wide 2000000 20000000 512 --disk --fanout 5,5 \
            --peers graphbolt,loader-dgl --epochs 1 --peer-batches 60
        ;;
    *) die "$what: must be accuracy, memory or disk" ;;
    esac
done
