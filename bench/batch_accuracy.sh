#!/usr/bin/env bash
# batch_accuracy.sh [GRAPH...] - test accuracy on real graphs of GraphSAGE and GAT, trained on the whole graph and on
# batches of neighbours, the mean over seeds of the epoch with the best validation accuracy.
#
# 2 layers, hidden 64 (GAT: 8 heads of 8), dropout 0.5 on inputs and hidden, Adam 0.01, weight decay 5e-4, 60 epochs;
# batches of 64 training vertices, fanout 10,10.
#   GS_TEST_DATA  folder of the graphs; default ../shared/data beside the sources
#   GS_SEEDS      default "0 1 2 3 4 5 6 7 8 9"
# Fails where batches are more than half a point below the whole graph.
. "$(dirname "$0")/lib.sh"

data=${GS_TEST_DATA:-$root/../shared/data}
seeds=${GS_SEEDS:-0 1 2 3 4 5 6 7 8 9}
[ $# -gt 0 ] || set -- cora dblp
machine

# mean STORE OPTION...: of the test accuracy over the seeds, in percent.
mean()
{
    for seed in $seeds; do
        "$GNNSTREAM" train "$@" --seed "$seed" --threads 1 --layers 2 --hidden 64 --dropout 0.5 --input-dropout 0.5 \
            --lr 0.01 --weight-decay 5e-4 --epochs ${GS_EPOCHS:-60} | sed -n 's/^test *//p'
    done | awk '{ sum += $1 } END { printf "%.2f", 100 * sum / NR }'
}

failed=0
printf '%-8s %-6s %10s %10s\n' graph model whole batches
for graph in "$@"; do
    "$GNNSTREAM" partition "$data/$graph" "$dir/$graph" --parts 4 --force > /dev/null
    for model in sage gat; do
        options=("$dir/$graph" --model "$model")
        [ $model = sage ] || options+=(--heads 8 --act elu)
        whole=$(mean "${options[@]}")
        batches=$(mean "${options[@]}" --sampler neighbor --batch-size 64 --fanout 10,10)
        printf '%-8s %-6s %10s %10s\n' "$graph" $model "$whole" "$batches"
        awk "BEGIN { exit !($batches < $whole - 0.5) }" && failed=1
    done
done
exit $failed
