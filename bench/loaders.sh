#!/usr/bin/env bash
# loaders.sh [memory] [disk] [accuracy] - training on batches beside GraphBolt (DGL) and NeighborLoader (PyG); default:
# memory and disk.
#
#   memory    batches a second and memory of GraphSAGE and GAT on 500,000 vertices with 128 features, all in memory
#   disk      the same on 2M vertices with 512 features, in a memory cgroup of a quarter of these, beside GraphBolt's
#             features on disk
#   accuracy  on that graph, bytes and seconds until 94 % test accuracy: whole graph, neighbours, clusters
#
# The peers come from PyPI into $GS_BENCH_DIR/loaders-venv (6 GB) at the first run. PyPI has no pyg-lib, and
# torch-sparse, which NeighborLoader samples with instead, as sources alone; they take half an hour and more to compile,
# so NeighborLoader is left out unless it is asked for. `disk` and `accuracy` need root, for the cgroup and to drop the
# page cache, and 9 GB.
#   GS_ROUNDS        turns of each program, default 3
#   GS_SCALE         divides the numbers of vertices and edges, default 1; at 2 and 4, where PyPI's torch and its CUDA
#                    libraries take more than half of the cgroup of `disk`, GraphBolt's has so much more
#   GS_MODELS        of sage,gat, which is the default
#   GS_PEER_BATCHES  of a peer's epoch from disk, default 60
#   GS_EPOCHS        epochs of `memory` that are timed, default 2
#   GS_TORCH_SPARSE  1: compiles torch-sparse, for NeighborLoader
#   GS_PIP_OPTIONS   more options for pip install
. "$(dirname "$0")/lib.sh"

python=$dir/loaders-venv/bin/python
scale=${GS_SCALE:-1}
work=$dir/loaders$([ "$scale" = 1 ] || echo "-$scale")
peers=graphbolt
[ "${GS_TORCH_SPARSE:-0}" != 1 ] || peers+=,neighborloader
mkdir -p "$work"
[ $# -gt 0 ] || set -- memory disk

install()
{
    local pip=("$python" -m pip install --quiet --no-cache-dir --disable-pip-version-check)
    read -r -a more <<<"${GS_PIP_OPTIONS:-}"
    [ -f "$dir/loaders-venv/complete" ] && return
    need_disk 8
    rm -rf "$dir/loaders-venv"
    show python3 -m venv "$dir/loaders-venv"
    show "${pip[@]}" ${more[@]+"${more[@]}"} -r "$here/peers/requirements-loaders.txt"
    show "${pip[@]}" --no-deps ${more[@]+"${more[@]}"} dgl==2.1.0
    touch "$dir/loaders-venv/complete"
    [ "${GS_TORCH_SPARSE:-0}" = 1 ] || return 0
    FORCE_ONLY_CPU=1 show "${pip[@]}" --no-deps --no-build-isolation ${more[@]+"${more[@]}"} torch-scatter==2.1.2 \
        torch-sparse==0.6.18 || echo 'torch-sparse does not build here: NeighborLoader is left out' >&2
}

# graph NAME VERTICES EDGES FEATURES METHOD PARTS: folder and store, once.
graph()
{
    [ -d "$work/$1" ] || show "$GNNSTREAM" generate sbm "$work/$1" --vertices $(($2 / scale)) \
        --edges $(($3 / scale)) --features "$4" --classes 16 --seed 1
    [ -d "$work/$1.store" ] || show "$GNNSTREAM" partition "$work/$1" "$work/$1.store" --method "$5" --parts "$6" \
        --memory 2G
}

beside()
{
    [ -e "$work/$1/peer_indptr.npy" ] || "$python" "$here/batches/peer.py" prepare "$work/$1"
    show "$python" "$here/batches/beside.py" "$work/$1" "$work/$1.store" --gnnstream "$GNNSTREAM" \
        --rounds "${GS_ROUNDS:-3}" --models "${GS_MODELS:-sage,gat}" "${@:2}"
}

machine
for what in "$@"; do
    case $what in
    memory)
        install
        graph mem 500000 10000000 128 natural 8
        beside mem --peers "$peers" --epochs "${GS_EPOCHS:-2}"
        ;;
    disk)
        install
        need_disk 9
        graph wide 2000000 20000000 512 metis 128
        beside wide --disk --fanout 5,5 --peers graphbolt --epochs 1 --peer-batches "${GS_PEER_BATCHES:-60}"
        ;;
    accuracy)
        need_disk 9
        graph wide 2000000 20000000 512 metis 128
        show python3 "$here/batches/to_accuracy.py" "$work/wide.store" --gnnstream "$GNNSTREAM"
        ;;
    *) die "$what: must be memory, disk or accuracy" ;;
    esac
done
