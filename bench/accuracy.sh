#!/usr/bin/env bash
# accuracy.sh [MODEL/GRAPH...] - test accuracy on real graphs, the mean over seeds.
#
#   gcn/cora gcn/dblp    Kipf and Welling: 2 layers, hidden 16, dropout 0.5 on inputs and hidden, Adam 0.01, weight
#                        decay 5e-4, 200 epochs; with P = 1 and P = 8
#   gat/cora             Velickovic et al.: 8 heads of 8, an output layer of one head, elu, dropout 0.6 of inputs,
#                        hidden and attention, Adam 0.005, weight decay 5e-4; early stopping
#   appnp/cora           Gasteiger et al.: 2 layers, hidden 64, dropout 0.5 on inputs and hidden, K = 10, alpha = 0.1,
#                        Adam 0.01; weight decay 5e-4 on all weights, as torch_geometric's benchmark has it (the paper:
#                        5e-3 on the first layer's); early stopping
#   appnp/dblp           the same; weight decay 2e-3, the best of {5e-4, 2e-3} by validation accuracy
# Early stopping is by validation accuracy with a patience of 100 epochs (choose_epoch.py): a first run says at which
# epoch, a second ends there. Test vertices are looked at once, in the logits of that run, which are the final
# weights' without dropout; the program's own report of accuracy is not taken.
#   GS_TEST_DATA  folder of the graphs; default ../shared/data beside the sources
#   GS_SEEDS      default "0 1 2 3 4 5 6 7 8 9"
#   GS_JOBS       processes at a time, one thread each; default: the CPUs
#   GS_OPTIONS    more options for train, such as --no-cache
# Fails where a mean is below its floor.
. "$(dirname "$0")/lib.sh"

data=${GS_TEST_DATA:-$root/../shared/data}
seeds=${GS_SEEDS:-0 1 2 3 4 5 6 7 8 9}
jobs=${GS_JOBS:-$(nproc)}
read -r -a more <<<"${GS_OPTIONS:-}"
[ $# -gt 0 ] || set -- gcn/cora gcn/dblp gat/cora appnp/cora appnp/dblp

# settings_of RUN: sets floor, all_parts, early (most epochs before the choice; 0: none) and settings.
settings_of()
{
    early=0 all_parts="1"
    case $1 in
    gcn/cora) floor=80.5 ;;
    gcn/dblp) floor=69.0 ;;
    gat/cora) floor=82.0 early=500 ;;
    appnp/cora) floor=82.5 early=500 ;;
    appnp/dblp) floor=74.0 early=200 ;;
    *) die "$1: none of gcn/cora, gcn/dblp, gat/cora, appnp/cora, appnp/dblp" ;;
    esac
    settings=(--layers 2 --optimizer adam --threads 1)
    case $1 in
    gcn/*)
        all_parts="1 8"
        settings+=(--model gcn --hidden 16 --dropout 0.5 --input-dropout 0.5 --lr 0.01 --weight-decay 5e-4 --epochs 200)
        ;;
    gat/*)
        settings+=(--model "$here/models/gat_one_output_head.gnn" --hidden 64 --heads 8 --act elu --dropout 0.6
            --input-dropout 0.6 --lr 0.005 --weight-decay 5e-4)
        ;;
    appnp/*)
        settings+=(--model appnp --hidden 64 --dropout 0.5 --input-dropout 0.5 --lr 0.01 --weight-decay)
        case $1 in */cora) settings+=(5e-4) ;; *) settings+=(2e-3) ;; esac
        ;;
    esac
}

# one STORE SEED: trains and leaves the accuracy and the number of epochs in files.
one()
{
    local store=$1 out=$1-seed$2 epochs=()
    mkdir -p "$out.spill"
    local command=("$GNNSTREAM" train "$store" "${settings[@]}" --seed "$2" \
        --spill "$out.spill" ${more[@]+"${more[@]}"})
    if [ "$early" -gt 0 ]; then
        show "${command[@]}" --epochs "$early" --metrics "$out.jsonl" >"$out.log" || return 1
        epochs=(--epochs "$(python3 "$here/choose_epoch.py" "$out.jsonl" 100)")
    fi
    show "${command[@]}" ${epochs[@]+"${epochs[@]}"} --eval-every 0 --logits "$out.npy" >"$out.log" || return 1
    echo "${epochs[1]:-200}" >"$out.epochs"
    python3 "$here/accuracy.py" "$data/${store_graph}" "$out.npy" >"$out.accuracy"
    rm -rf "$out.npy" "$out.spill"
}

# summary RUN STORE PARTS: a line of the table; false where the mean is below the floor.
summary()
{
    local seed line="" epochs=""
    for seed in $seeds; do
        line="$line $(cat "$2-seed$seed.accuracy")"
        epochs="$epochs $(cat "$2-seed$seed.epochs")"
    done
    echo "$line" | awk -v run="$1" -v parts="$3" -v floor="$floor" -v epochs="$epochs" '{
        for (i = 1; i <= NF; i++) { sum += $i; square += $i * $i }
        mean = sum / NF
        deviation = NF > 1 ? sqrt((square - NF * mean * mean) / (NF - 1)) : 0
        printf "%-10s P=%-2d  mean %.2f  deviation %.2f  floor %.1f  %s   seeds:%s", run, parts, mean, deviation,
            floor, (mean >= floor) ? "ok" : "BELOW", " " $0
        print "   epochs:" epochs
        exit (mean < floor) }'
}

machine
need_disk 2
mkdir -p "$dir/accuracy"
result=0
table=$dir/accuracy/table
: >"$table"
for name in "$@"; do
    settings_of "$name"
    store_graph=${name#*/}
    [ -f "$data/$store_graph/edges.npy" ] || die "$data/$store_graph: not there; set GS_TEST_DATA"
    for parts in $all_parts; do
        store=$dir/accuracy/${name%/*}-$store_graph-p$parts
        show "$GNNSTREAM" partition "$data/$store_graph" "$store" --parts "$parts" --force >/dev/null
        rm -rf "$store-seed"*
        for seed in $seeds; do
            while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do
                wait -n || die "a run failed; see $store-seed*.log"
            done
            one "$store" "$seed" &
        done
        while [ "$(jobs -rp | wc -l)" -gt 0 ]; do
            wait -n || die "a run failed; see $store-seed*.log"
        done
        summary "$name" "$store" "$parts" >>"$table" || result=1
    done
done

echo
cat "$table"
exit $result
