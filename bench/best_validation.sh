#!/usr/bin/env bash
# best_validation.sh - the weights of the best validation result, and early stopping: a GCN on Cora, ten seeds.
#
# As Kipf and Welling: 2 layers, hidden 16, dropout 0.5 on inputs and hidden, Adam 0.01, weight decay 5e-4. First 200
# epochs, of which the best are kept (--keep best, the default): the mean of the test accuracies, which run by run are
# those of the saved weights in a prediction. Then up to 1000 epochs with --patience 100: the epochs that it says it
# saved are those that have no line in --metrics, and the best epoch lies 100 before the end.
#   GS_TEST_DATA  folder of the graphs; default ../shared/data beside the sources
#   GS_SEEDS      default "0 1 2 3 4 5 6 7 8 9"
# Fails where the mean is below 81.5 or a number is not what it says.
. "$(dirname "$0")/lib.sh"

data=${GS_TEST_DATA:-$root/../shared/data}/cora
seeds=${GS_SEEDS:-0 1 2 3 4 5 6 7 8 9}
floor=81.5
[ -f "$data/edges.npy" ] || die "$data: not there; set GS_TEST_DATA"
work=$dir/best_validation
mkdir -p "$work"
machine
show "$GNNSTREAM" partition "$data" "$work/cora" --parts 1 --force >/dev/null
settings=(--model gcn --hidden 16 --dropout 0.5 --input-dropout 0.5 --lr 0.01 --weight-decay 5e-4 --threads 1 --json)
best="" stopped="" saved=0 asked=0
printf '%4s %12s %10s %14s %10s %10s %8s\n' seed 'kept after' 'test, %' 'with patience' 'kept after' 'test, %' saved
for seed in $seeds; do
    out=$work/seed$seed
    show "$GNNSTREAM" train "$work/cora" "${settings[@]}" --seed "$seed" --epochs 200 \
        --save "$out.safetensors" >"$out.json"
    "$GNNSTREAM" predict "$work/cora" --weights "$out.safetensors" --argmax "$out.npy" --json >"$out.again.json"
    a=$(field test_acc "$out.json") kept=$(field kept_epochs "$out.json")
    [ "$a" = "$(field test_acc "$out.again.json")" ] || die "seed $seed: the saved weights have another accuracy"
    show "$GNNSTREAM" train "$work/cora" "${settings[@]}" --seed "$seed" --epochs 1000 --patience 100 \
        --metrics "$out.jsonl" >"$out.early.json"
    run=$(wc -l <"$out.jsonl") says=$(field saved_epochs "$out.early.json") b=$(field test_acc "$out.early.json")
    early=$(field kept_epochs "$out.early.json")
    [ $((run + says)) = 1000 ] || die "seed $seed: $run epochs were run, and $says of 1000 are said to be saved"
    # its weights are those before the epoch that judged them best, 100 epochs before the last
    [ "$says" = 0 ] || [ "$early" = $((run - 101)) ] || [ "$early" = "$run" ] ||
        die "seed $seed: kept the weights after $early of $run epochs"
    printf '%4s %12s %10s %14s %10s %10s %8s\n' "$seed" "$kept" "$a" "$run" "$early" "$b" "$says"
    best="$best $a" stopped="$stopped $b" saved=$((saved + says)) asked=$((asked + 1000))
done
mean() { echo "$1" | awk '{ for (i = 1; i <= NF; i++) s += $i; printf "%.2f", 100 * s / NF }'; }
echo "mean test accuracy: $(mean "$best") % of 200 epochs, $(mean "$stopped") % with patience, which saved $saved of" \
    "$asked epochs"
awk -v mean="$(mean "$best")" -v floor="$floor" 'BEGIN { exit !(mean >= floor) }' || die "below $floor %"
