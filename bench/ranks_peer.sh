#!/usr/bin/env bash
# ranks_peer.sh [RANKS...] - whole epochs on RANKS (2 4) ranks of one thread, each in a network namespace of its own:
# gnnstream beside torch.distributed over gloo (bench/peers/with_ranks.py), which deals vertices as SAR does, as its
# authors' users would write it (`gloo`), and with layer 1's sums of the features made before the first epoch, as
# gnnstream makes them (`gloo, AX once`). Same graph (R-MAT, 200,000 vertices, 2M edges, 128 features, random order),
# first weights, SGD. Prints the median epoch, megabytes that left the devices in it (the kernel's count, with
# headers: what the run moved behind a run of two epochs) and the most memory of a rank; the peer's import of torch is
# said beside. Losses of all epochs are compared: a difference above 1e-3 fails. gnnstream leaves out rows that no loss
# sees, which the peer computes and sends (GS_OPTIONS=--no-prune: the same work).
#
# For root, iproute2, MPICH over UCX; the venv of bench/peers.sh (GS_PREPARE=1 makes it).
#   GS_MODELS    default "gcn sage gin"
#   GS_RATE      of each device, as tc has it, default 1gbit
#   GS_EPOCHS    default 12, the first is not in the median
#   GS_OPTIONS   more options of gnnstream train, default none
#   GS_PYTHON    with torch, torch_geometric, numpy, scipy, safetensors; default that of bench/peers.sh
. "$(dirname "$0")/lib.sh"
: "${GS_MODELS:=gcn sage gin}" "${GS_RATE:=1gbit}" "${GS_EPOCHS:=12}" "${GS_PYTHON:=$dir/peers-venv/bin/python}"
read -r -a options <<<"${GS_OPTIONS:-}"
counts=("${@:-2}")
[ $# -gt 0 ] || counts=(2 4)
work=$(mktemp -d)
# shellcheck source=bench/namespaces.sh
. "$here/namespaces.sh"
end()
{
    end_namespaces
    rm -rf "$work"
}
trap end EXIT
export XDG_CACHE_HOME=$work MPIR_CVAR_NOLOCAL=1 UCX_TLS=tcp UCX_NET_DEVICES=all PYTHONWARNINGS=ignore
export GLOO_SOCKET_IFNAME=eth0 MASTER_ADDR=10.77.0.1 MASTER_PORT=29500
graph=$dir/ranks-peer/graph tensors=$dir/ranks-peer/tensors
rate_of() { if [ "$1" = gin ]; then echo 1e-4; else echo 0.2; fi; }

# inputs RANKS: store and the peers' arrays, made once.
inputs()
{
    need_disk 4
    mkdir -p "$dir/ranks-peer"
    if [ ! -f "$tensors/complete" ]; then
        show "$GNNSTREAM" generate rmat "$graph" --vertices 200000 --edges 2000000 --features 128 --classes 16 \
            --seed 1 --force
        show "$GNNSTREAM" partition "$graph" "$dir/ranks-peer/store-1" --parts 1 --method natural --force
        show "$GS_PYTHON" "$here/peers/inputs.py" tensors "$graph" "$dir/ranks-peer/store-1" "$tensors"
        touch "$tensors/complete"
    fi
    [ -f "$dir/ranks-peer/store-$1/manifest.json" ] ||
        show "$GNNSTREAM" partition "$graph" "$dir/ranks-peer/store-$1" --parts $((4 * $1)) --method random
}

ours() # RANKS MODEL EPOCHS
{
    timeout 600 mpirun -n "$1" bash "$work/one" "$GNNSTREAM" train "$dir/ranks-peer/store-$1" --model "$2" --hidden 64 \
        --threads 1 --host-memory 2G --epochs "$3" --optimizer sgd --lr "$(rate_of "$2")" \
        --init "$work/$2.safetensors" --metrics "$work/metrics" ${options[@]+"${options[@]}"} \
        >"$work/out" 2>&1 || { cat "$work/out" >&2; return 1; }
}

theirs() # RANKS MODEL EPOCHS [--once]
{
    local r pids=() failed=0
    for r in $(seq 0 $(($1 - 1))); do
        timeout 600 ip netns exec "${namespace}_$r" env OMP_NUM_THREADS=1 "$GS_PYTHON" "$here/peers/with_ranks.py" \
            "$r" "$1" "$tensors" "$work/peer.json" --model "$2" --weights "$work/$2.safetensors" --epochs "$3" \
            --lr "$(rate_of "$2")" ${4+"$4"} >"$work/peer.$r" 2>&1 &
        pids+=($!)
    done
    for r in "${!pids[@]}"; do wait "${pids[$r]}" || { failed=1; tail -n 3 "$work/peer.$r" >&2; }; done
    return $failed
}

# sent WHO RANKS MODEL ...: sets $bytes to what an epoch moves, and leaves the last run's figures.
sent()
{
    local before few
    before=$(sent_by_all)
    "$1" "$2" "$3" 2 ${4+"$4"}
    few=$(($(sent_by_all) - before)) before=$(sent_by_all)
    "$1" "$2" "$3" $((GS_EPOCHS + 2)) ${4+"$4"}
    bytes=$((($(sent_by_all) - before - few) / GS_EPOCHS))
}

machine
echo "load $(cut -d' ' -f1-3 /proc/loadavg); $GS_RATE for each rank, one thread each"
for model in $GS_MODELS; do
    inputs 2 >&2
    "$GS_PYTHON" "$here/peers/train.py" weights "$tensors" - --model "$model" --classes 16 \
        --weights "$work/$model.safetensors"
done
echo "model  ranks  program          epoch s  sent MB  most memory of a rank MB"
for n in "${counts[@]}"; do
    inputs "$n" >&2
    make_namespaces "$n" "$GS_RATE"
    for model in $GS_MODELS; do
        sent ours "$n" "$model"
        python3 "$here/peers/ranks_row.py" "$model" "$n" gnnstream "$bytes" "$work/metrics" "$work/losses"
        for once in "" --once; do
            sent theirs "$n" "$model" ${once:+"$once"}
            python3 "$here/peers/ranks_row.py" "$model" "$n" "gloo${once:+, AX once}" "$bytes" "$work/peer.json" \
                "$work/losses"
        done
    done
    end_namespaces
done
