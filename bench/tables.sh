#!/usr/bin/env bash
# tables.sh - learned rows of vertices that do not fit: GCN on param emb.weight[vertices, 64] of 4M vertices and 16M
# edges, without features, by Adam (4 arrays of 1 GB: the rows, their gradient, two moments), inside a memory cgroup of
# 512 MiB in which the page cache counts too; then an epoch of clusters there, and one of neighbours' batches
# (200,000 random blocks a batch: some minutes). Then five steps against PyTorch's, on the same graph, and five batches.
#   GS_VERTICES  default 4000000; four times as many edges
#   GS_EPOCHS    default 3
#   GS_TORCH     a Python that has torch, numpy and safetensors; without it the comparison is left out
# Needs root and a writable cgroup file system, and 8 GiB of disk; the comparison 2 KB of memory a vertex.
. "$(dirname "$0")/lib.sh"

vertices=${GS_VERTICES:-4000000}
model=$here/models/tables.gnn
work=$dir/tables.$vertices
need_disk 8
machine
mkdir -p "$work"
if [ ! -d "$work/store" ]; then
    show "$GNNSTREAM" generate sbm "$work/graph" --vertices "$vertices" --edges $((4 * vertices)) --features 1 \
        --classes 16 --seed 1
    rm -f "$work/graph/features.npy"
    sed -i '/num_features/d' "$work/graph/meta.json"
    show "$GNNSTREAM" partition "$work/graph" "$work/store" --parts 32 --method fennel --memory 1G
fi
budget=(--host-memory 448M --device-memory 200M --spill "$work/spill")
# limited EPOCHS OPTIONS...: a run within 512 MiB, and what it took.
limited()
{
    local run=("$GNNSTREAM" train "$work/store" --model "$model" --hidden 16 --lr 0.01 --keep last "${budget[@]}"
        --epochs "$@")
    say limited.py 512M "${run[@]}"
    python3 "$here/limited.py" 512M "$work/report.json" "${run[@]}" --metrics "$work/metrics.jsonl" ||
        die "did not get through in 512M"
    printf 'resident %s MiB, cgroup %s MiB, limit hit %s times, %s s of processors; the last epoch: %s\n' \
        "$(mib "$(field resident_peak_bytes "$work/report.json")")" \
        "$(mib "$(field cgroup_peak_bytes "$work/report.json")")" "$(field limit_hits "$work/report.json")" \
        "$(field user_seconds "$work/report.json")" \
        "$(tail -n 1 "$work/metrics.jsonl" | grep -o '"\(seconds\|read_bytes\|written_bytes\)": [0-9.]*' | tr '\n' ' ')"
}
limited "${GS_EPOCHS:-3}"
limited "${GS_EPOCHS:-3}" --eval-every 0 --sampler cluster --batch-size 1
limited 1 --eval-every 0 --sampler neighbor --batch-size 1024 --fanout 10,5
[ -n "${GS_TORCH:-}" ] || exit 0
export GNNSTREAM
show "$GS_TORCH" "$here/tables_torch.py" "$work/graph" "$model" "$work" 16 5 "${budget[@]}"
show "$GNNSTREAM" partition "$work/graph" "$work/natural" --parts 32 --method natural --memory 1G --force
show "$GS_TORCH" "$here/tables_batches.py" "$work/graph" "$model" "$work" 16 5 --spill "$work/spill" --no-cache
