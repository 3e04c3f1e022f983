#!/usr/bin/env bash
# batch_accuracy.sh [GRAPH...] - test accuracy on real graphs of GraphSAGE and GAT, trained on the whole graph, on
# batches of neighbours and on batches of clusters: the mean over seeds, of the weights after the last epoch.
#
# 2 layers, hidden 64 (GAT: 8 heads of 8), dropout 0.5 on inputs and hidden, Adam 0.01, weight decay 5e-4. Whole
# graph: 100 epochs of a step. Neighbours: 50 epochs, batches of 32 training vertices, fanout 10,10, so that none has
# fewer steps than the whole graph. Clusters: 50 epochs, 8 (GS_CLUSTERS) of 16 intervals that METIS made, as many steps.
# GRAPH is cora, dblp or pubmed; of PubMed's features there are those of 1060 vertices (partial_features_*), the others
# are zeros, so its figures do not compare with published ones. PubMed needs a python3 that has numpy.
#   GS_TEST_DATA  folder of the graphs; default ../shared/data beside the sources
#   GS_SEEDS      default "0 1 2 3 4 5 6 7 8 9"
#   GS_CLUSTERS   intervals of a batch of clusters, default 8
# Fails where batches are more than half a point below the whole graph.
. "$(dirname "$0")/lib.sh"

data=${GS_TEST_DATA:-$root/../shared/data}
seeds=${GS_SEEDS:-0 1 2 3 4 5 6 7 8 9}
[ $# -gt 0 ] || set -- pubmed cora dblp
machine

# known_features FROM TO: the folder FROM with features of all vertices, zeros where there are none.
known_features()
{
    mkdir -p "$2"
    cp "$1"/{edges,labels,train_idx,valid_idx,test_idx}.npy "$2"
    python3 - "$1" "$2" <<'PYTHON'
import sys
import numpy as np
source, target = sys.argv[1:]
rows, indptr, indices, data = (np.load(f"{source}/partial_{name}.npy") for name in (
    "idx", "features_indptr", "features_indices", "features_data"))
features = np.zeros((len(np.load(f"{source}/labels.npy")), 500), np.float32)
features[np.repeat(rows, np.diff(indptr)), indices] = data
np.save(f"{target}/features.npy", features)
PYTHON
}

# mean STORE OPTION...: of the test accuracy over the seeds, in percent.
mean()
{
    local seed
    for seed in $seeds; do
        "$GNNSTREAM" train "$@" --seed "$seed" --threads 1 --layers 2 --hidden 64 --dropout 0.5 --input-dropout 0.5 \
            --lr 0.01 --weight-decay 5e-4 --eval-every 0 2>/dev/null | sed -n 's/^test *//p'
    done | awk '{ sum += $1; squares += $1 * $1 }
        END { m = sum / NR; printf "%.2f %.2f", 100 * m, 100 * sqrt((squares / NR - m * m) / NR) }'
}

failed=0
printf '%-8s %-6s %-10s %8s %6s\n' graph model trained accuracy +-
for graph in "$@"; do
    from=$data/$graph
    if [ -e "$from/partial_idx.npy" ]; then
        known_features "$from" "$dir/$graph.known"
        from=$dir/$graph.known
    fi
    "$GNNSTREAM" partition "$from" "$dir/$graph" --parts 16 --method metis --force >/dev/null
    for model in sage gat; do
        options=("$dir/$graph" --model "$model")
        [ $model = sage ] || options+=(--heads 8 --act elu)
        for trained in whole neighbor cluster; do
            case $trained in
            whole) how=(--epochs 100) ;;
            neighbor) how=(--epochs 50 --sampler neighbor --batch-size 32 --fanout 10,10) ;;
            cluster) how=(--epochs 50 --sampler cluster --batch-size "${GS_CLUSTERS:-8}") ;;
            esac
            read -r accuracy error < <(mean "${options[@]}" "${how[@]}"; echo)
            printf '%-8s %-6s %-10s %8s %6s\n' "$graph" "$model" "$trained" "$accuracy" "$error"
            [ "$trained" != whole ] || whole=$accuracy
            ! awk "BEGIN { exit !($accuracy < $whole - 0.5) }" || failed=1
        done
    done
done
exit $failed
