# Pairs are seeds of batches of neighbours: the same bits for any number of threads, any budget and any group, and when
# killed within an epoch and gone on with; a table below the layers learns, too; what does not go together is refused.
graph_of_pairs
gnnstream partition graph store --parts 3 --method natural --random-features 5 >made
cat >learned.gnn <<'TEXT'
layer near(h[in]) -> [out]:
    param W[out, in] ~ glorot, b[out] ~ zeros
    return (h + mean(u.h)) @ W' + b

network(x[in]) -> [out]:
    param emb[vertices, 6] ~ normal(0.3)
    return near(relu(near(emb, hidden)), out)
TEXT
train=(gnnstream train store --task link --seeds edges --sampler neighbor --fanout '4,0' --hidden 8 --negatives 5
    --batch-size 40 --epochs 3 --lr 0.05)
memory=44M
[ -z "${GS_SANITIZED:-}" ] || memory=90M # what a sanitizer holds itself is of the budget
bits() { tensors "$1" | cksum; }
for model in '--model rgcn --decoder distmult' '--model sage --decoder mlp --dropout 0.3 --norm batch --loss logistic' \
    '--model learned.gnn --decoder transe --loss margin --batches-per-step 3'; do
    # shellcheck disable=SC2086 # words
    "${train[@]}" $model --threads 1 --save whole.safetensors --metrics m.jsonl >out
    grep -q '"valid_mrr": 0\.[0-9]*, "test_mrr": null, .*"valid_hits@10": 0' m.jsonl || die "$(<m.jsonl)"
    grep -q '"pick_seconds": [0-9]' m.jsonl || die "no batches: $(<m.jsonl)"
    for how in '--threads 2' "--no-cache --host-memory $memory --spill ."; do
        # shellcheck disable=SC2086 # words
        "${train[@]}" $model $how --save other.safetensors >out
        [ "$(bits whole.safetensors)" = "$(bits other.safetensors)" ] || die "bits: $model $how"
    done
done
# Killed within an epoch, and gone on with.
within=("${train[@]}" --model gcn --batch-size 1 --epochs 2 --keep last --eval-every 0)
"${within[@]}" --checkpoint c --checkpoint-every 0.05s >out 2>err &
pid=$!
for ((i = 0; i < 500; i++)); do
    [ -d c/epoch-0000000001 ] && break
    sleep 0.01
done
kill_it $pid
"${within[@]}" --resume c --save on.safetensors >out 2>err
"${within[@]}" --save one.safetensors >out
[ "$(bits on.safetensors)" = "$(bits one.safetensors)" ] || die "other bits: $(<err)"
gnnstream predict store --weights one.safetensors --logits rows.npy >out
gnnstream plan store --task link --model gcn --hidden 8 --seeds edges --sampler neighbor --fanout 3,3 >out
grep -q '^batch ' out || die "$(<out)"
grep -q '^predict ' out || die "$(<out)"
refused 2 '--seeds edges: of which batches? Give --sampler neighbor' gnnstream train store --task link --model gcn \
    --seeds edges
refused 2 '--sampler cluster: draws no neighbours of pairs' gnnstream train store --task link --model gcn \
    --seeds edges --sampler cluster
refused 2 '--sampler: does not go with --task link without --seeds edges' gnnstream train store --task link \
    --model gcn --sampler neighbor --fanout 3,3
refused 2 '--seeds: is of --task link' gnnstream train store --model gcn --seeds edges --sampler neighbor --fanout 3
refused 2 '--seeds edges: the model has no layer' gnnstream train store --task link --model embedding \
    --seeds edges --sampler neighbor --fanout 3
refused 1 '--device cpu:2: rows without a layer are learned' gnnstream train store --task link --model embedding \
    --device cpu:2
