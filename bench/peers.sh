#!/usr/bin/env bash
# peers.sh [GRAPH...] - whole epochs in memory, beside PyTorch Geometric, torch's sparse CSR by hand, and DGL.
#
# Same graph, same first weights, same optimiser (SGD), same number of epochs, all CPUs; each
# program is a process of its own, so its peak memory is its own. The losses of all epochs are
# compared: a difference above 1e-3 fails. Timed is what PEER does in an epoch (bench/peers/train.py) and what
# gnnstream says an epoch took, which has its accuracies in it. The bars: gnnstream's epoch at most
# 1/3 of the fastest peer's, its memory at most 1/2 of that peer's; rows that miss are marked.
#
# Graphs (hidden 64, 2 layers):
#   pubmed        19,717 vertices, 88,648 edges, 500 random features, 3 classes
#   blogcatalog   10,312 vertices, 667,966 edges, 128 random features, 39 random classes
#   rmat-200k     200,000 vertices, 2M edges, 128 features, 16 classes
#   reddit-tenth  RMAT of Reddit's shape at one tenth: 23,297 vertices, 11.5M edges, 602 features, 41 classes
# R-GCN has 4 random edge types, GAT 8 heads. A model that gnnstream does not know is a row without it
# ("not available").
#
# The peers come from PyPI into $GS_BENCH_DIR/peers-venv (6 GB, for PyPI's torch brings CUDA) at the
# first run; the project and its tests never need them.
#   GS_MODELS       default "gcn sage gat gin rgcn"
#   GS_PEERS        default "pyg pyg-csr csr csr-once dgl": PyG's edge_index, its torch CSR, torch CSR by hand, the same
#                   with the features' sums of layer 1 made once before the first epoch (as gnnstream does), DGL
#   GS_EPOCHS       default by graph, 5 to 40; the first is not in the median
#   GS_LR           default by graph and model, such that losses move and stay finite
#   GS_BUDGET       --host-memory of gnnstream, default 12G; 3/4 of it is --device-memory
#   GS_PEER_BYTES   most private memory of a peer, default 3/4 of what is available
#   GS_PEER_SECONDS most time of a program, default 600
#   GS_PREPARE      1: install and make the inputs, then stop
#   GS_ALL          1: peers run where gnnstream lacks the model too
#   GS_PIP_OPTIONS  more options for pip install, such as an index with smaller wheels
#   GS_TEST_DATA    folder of the real graphs; default ../shared/data beside the sources
. "$(dirname "$0")/lib.sh"

data=${GS_TEST_DATA:-$root/../shared/data}
export MODELS=${GS_MODELS:-gcn sage gat gin rgcn}
peers=${GS_PEERS:-pyg pyg-csr csr csr-once dgl}
budget=${GS_BUDGET:-12G}
work=$dir/peers
results=$work/results
python=$dir/peers-venv/bin/python
threads=$(nproc)
types=4
heads=8
[ $# -gt 0 ] || set -- pubmed blogcatalog rmat-200k reddit-tenth
export OMP_NUM_THREADS=$threads PYTHONWARNINGS=ignore

# install: the virtual environment, once. DGL may fail; the others may not.
install()
{
    local pip=("$python" -m pip install --quiet --no-cache-dir --disable-pip-version-check)
    read -r -a more <<<"${GS_PIP_OPTIONS:-}"
    [ -f "$dir/peers-venv/complete" ] && return
    need_disk 15
    rm -rf "$dir/peers-venv"
    show python3 -m venv "$dir/peers-venv"
    show "${pip[@]}" ${more[@]+"${more[@]}"} -r "$here/peers/requirements.txt"
    if ! show "${pip[@]}" ${more[@]+"${more[@]}"} -r "$here/peers/requirements-dgl.txt" ||
        ! show "${pip[@]}" --no-deps ${more[@]+"${more[@]}"} dgl; then
        echo 'DGL does not install here' >&2
    fi
    touch "$dir/peers-venv/complete"
}

# usable PEER: its import works.
usable()
{
    (cd "$here/peers" && case $1 in
        dgl) "$python" -c 'import with_dgl' ;;
        csr | csr-once) "$python" -c 'import torch' ;;
        *) "$python" -c 'import with_pyg' ;;
    esac) >"$work/import-$1.log" 2>&1
}

classes_of() {
    case $1 in pubmed) echo 3 ;; blogcatalog) echo 39 ;; rmat-200k) echo 16 ;; reddit-tenth) echo 41 ;; esac
}
epochs_of() { case $1 in pubmed) echo 40 ;; blogcatalog) echo 20 ;; rmat-200k) echo 8 ;; reddit-tenth) echo 5 ;; esac; }
# home GRAPH MODEL: the folder of its inputs; R-GCN has its own, with edge types.
home() { if [ "$2" = rgcn ]; then echo "$work/$1-typed"; else echo "$work/$1"; fi; }

# rate_of GRAPH MODEL: GIN sums over all neighbours, so on graphs with hubs only small steps are stable.
rate_of()
{
    case $2-$1 in
        gin-pubmed) echo "${GS_LR:-0.01}" ;;
        gin-reddit-tenth) echo "${GS_LR:-1e-8}" ;;
        gin-*) echo "${GS_LR:-1e-4}" ;;
        *-pubmed) echo "${GS_LR:-0.05}" ;;
        *) echo "${GS_LR:-0.2}" ;;
    esac
}

# source_of GRAPH: its folder of .npy files, made if it is generated.
source_of()
{
    local out=$work/$1-source
    case $1 in
        pubmed | blogcatalog)
            [ -f "$data/$1/edges.npy" ] || die "$data/$1: not there; set GS_TEST_DATA"
            out=$data/$1
            ;;
        rmat-200k)
            [ -f "$out/meta.json" ] || show "$GNNSTREAM" generate rmat "$out" --vertices 200000 --edges 2000000 \
                --features 128 --classes 16 --seed 1 >&2
            ;;
        reddit-tenth)
            [ -f "$out/meta.json" ] || show "$GNNSTREAM" generate rmat "$out" --vertices 23297 --edges 11461589 \
                --features 602 --classes 41 --seed 1 >&2
            ;;
        *) die "$1: no such graph" ;;
    esac
    echo "$out"
}

# inputs GRAPH MODEL: store and tensors, made once.
inputs()
{
    local at from kinds=0 random=()
    at=$(home "$1" "$2")
    [ -f "$at/complete" ] && return
    rm -rf "$at"
    mkdir -p "$at"
    case $1 in
        pubmed) random=(--random-features 500) ;;
        blogcatalog) random=(--random-features 128) ;;
    esac
    [ "$2" = rgcn ] && kinds=$types
    from=$(source_of "$1")
    show "$python" "$here/peers/inputs.py" label "$from" "$at/graph" --classes "$(classes_of "$1")" --types "$kinds"
    show "$GNNSTREAM" partition "$at/graph" "$at/store" --parts 1 --memory 4G ${random[@]+"${random[@]}"} \
        >"$at/partition.txt"
    show "$python" "$here/peers/inputs.py" tensors "$at/graph" "$at/store" "$at/tensors"
    rm -rf "$at/graph"
    touch "$at/complete"
}

# known GRAPH MODEL: does gnnstream have the model? Else $reason says why it does not.
known()
{
    local error
    error=$("$GNNSTREAM" plan "$(home "$1" "$2")/store" --model "$2" --hidden 64 2>&1 >/dev/null) && return
    reason=$error
    case $error in *'neither a built-in model'*) reason='not available' ;; esac
    return 1
}

# measured CELL COMMAND...: leaves CELL.measured.json and CELL.log; a failure shows its last line.
measured()
{
    local cell=$1
    shift
    say "$@"
    python3 "$here/peers/measure.py" "$results/$cell.measured.json" "$most" "${GS_PEER_SECONDS:-600}" "$@" \
        >"$results/$cell.log" 2>&1 || tail -n 1 "$results/$cell.log" >&2
}

# ours GRAPH MODEL EPOCHS
ours()
{
    local cell=$1-$2-gnnstream options=()
    [ "$2" = gat ] && options=(--heads "$heads")
    measured "$cell" "$GNNSTREAM" train "$(home "$1" "$2")/store" --model "$2" \
        --hidden 64 ${options[@]+"${options[@]}"} \
        --epochs "$3" --optimizer sgd --lr "$(rate_of "$1" "$2")" --init "$results/$1-$2.safetensors" \
        --metrics "$results/$cell.jsonl" --threads "$threads" --host-memory "$budget" --device-memory "$device_budget"
}

# row GRAPH MODEL: every program once, one after the other.
row()
{
    local epochs peer options
    epochs=${GS_EPOCHS:-$(epochs_of "$1")}
    options=(--model "$2" --weights "$results/$1-$2.safetensors" --heads "$heads" --classes "$(classes_of "$1")"
        --types "$types" --epochs "$epochs" --lr "$(rate_of "$1" "$2")" --threads "$threads")
    rm -f "$results/$1-$2"[-.]*
    if ! known "$1" "$2"; then
        echo "$reason" >"$results/$1-$2-gnnstream.none"
        if [ -z "${GS_ALL:-}" ]; then
            for peer in $PEERS; do echo 'not run' >"$results/$1-$2-$peer.none"; done
            return
        fi
    fi
    "$python" "$here/peers/train.py" weights "$(home "$1" "$2")/tensors" - "${options[@]}"
    [ -f "$results/$1-$2-gnnstream.none" ] || ours "$1" "$2" "$epochs"
    for peer in $PEERS; do
        measured "$1-$2-$peer" "$python" "$here/peers/train.py" "$peer" "$(home "$1" "$2")/tensors" \
            "$results/$1-$2-$peer.json" "${options[@]}"
    done
}

machine
mkdir -p "$results"
install
need_disk 4
device_budget=$(awk -v b="$budget" \
    'BEGIN { n = substr(b, length(b)); print int((b + 0) * 768) (n == "G" ? "M" : "K") }')
most=${GS_PEER_BYTES:-$(awk '/MemAvailable/ { printf "%.0f", $2 * 768 }' /proc/meminfo)}
for graph in "$@"; do
    for model in $MODELS; do inputs "$graph" "$model"; done
done
PEERS=
for peer in $peers; do
    if usable "$peer"; then
        PEERS="$PEERS $peer"
    else
        echo "$peer does not work here: $(tail -n 1 "$work/import-$peer.log")"
    fi
done
export PEERS
"$python" -m pip list --disable-pip-version-check 2>/dev/null |
    awk '$1 ~ /^(torch|torch-geometric|torch_geometric|dgl|numpy)$/ { printf "%s%s %s", sep, $1, $2; sep = ", " }
         END { print "" }'
[ -z "${GS_PREPARE:-}" ] || exit 0
for graph in "$@"; do
    for model in $MODELS; do row "$graph" "$model"; done
done
echo
python3 "$here/peers/table.py" "$results" "$@"
