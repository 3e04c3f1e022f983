# Rows of vertices are learned from pairs: the same bits for any number of threads and any budget, and when killed
# and gone on with; figures in --metrics; weights predict; what does not go together is refused.
graph_of_pairs
gnnstream partition graph store --parts 3 --method natural >made
train=(gnnstream train store --task link --model embedding --hidden 8 --decoder complex --negatives 5 --batch-size 40
    --epochs 4 --lr 0.05)
"${train[@]}" --threads 1 --save whole.safetensors --metrics m.jsonl --checkpoint c >out
grep -q '"valid_mrr": 0\.[0-9]*, "test_mrr": null, "valid_hits@1": .*"valid_hits@10": 0' m.jsonl || die "$(<m.jsonl)"
grep -q '^valid  MRR 0\.' out || die "$(<out)"
memory=32M
[ -z "${GS_SANITIZED:-}" ] || memory=56M # what a sanitizer holds itself is of the budget
for how in '--threads 2' "--no-cache --host-memory $memory --spill ."; do
    # shellcheck disable=SC2086 # words
    "${train[@]}" $how --save other.safetensors >out
    [ "$(tensors whole.safetensors | cksum)" = "$(tensors other.safetensors | cksum)" ] || die "other bits: $how"
done
# Ended by a signal, and gone on with.
"${train[@]}" --epochs 2000 --eval-every 0 --keep last --checkpoint killed --checkpoint-every 1 >out 2>err &
pid=$!
for ((i = 0; i < 200; i++)); do
    [ -n "$(find killed -name 'epoch-*' 2>/dev/null)" ] && break
    sleep 0.05
done
kill_it $pid
last=$(wc -l <killed/metrics.jsonl)
"${train[@]}" --epochs $((last + 2)) --eval-every 0 --keep last --resume killed --save on.safetensors >out 2>err
"${train[@]}" --epochs $((last + 2)) --eval-every 0 --keep last --save one.safetensors >out
[ "$(tensors on.safetensors | cksum)" = "$(tensors one.safetensors | cksum)" ] || die 'other bits when gone on with'
# The same within an epoch, of long batches; the line on stderr says how far it is.
within=("${train[@]}" --negatives 8192 --batch-size 4 --epochs 1 --eval-every 0 --keep last)
"${within[@]}" --checkpoint within --checkpoint-every 0.01s >out 2>err &
pid=$!
for ((i = 0; i < 500; i++)); do
    [ -d within/epoch-0000000001 ] && break
    sleep 0.01
done
kill_it $pid
"${within[@]}" --resume within --save on.safetensors >out 2>err
GS_LOG_EVERY=0.05 "${within[@]}" --save one.safetensors >out 2>log
[ "$(tensors on.safetensors | cksum)" = "$(tensors one.safetensors | cksum)" ] || die "other bits: $(<err)"
grep -q 'epoch 1 of 1: train [0-9]* %' log || die "$(<log)"
gnnstream predict store --weights whole.safetensors --logits rows.npy >out
[ "$(wc -c <rows.npy)" = $((128 + 101 * 8 * 4)) ] || die "rows: $(wc -c <rows.npy)"
# Scores of pairs are what the rows say.
"${train[@]}" --decoder dot --save dot.safetensors --logits rows.npy >out
array ends.npy '2, 2' 3 9 100 3
refused 1 'ends.npy: is i16 [2, 2]; pairs to score are int64 or int32 [M, 2]' \
    gnnstream predict store --weights dot.safetensors --edges ends.npy --scores s.npy
[ ! -e s.npy ] || die 'scores of no pairs'
{
    printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 2), }"
    printf '\x03\0\0\0\x09\0\0\0\x64\0\0\0\x03\0\0\0'
} >ends.npy
gnnstream predict store --weights dot.safetensors --edges ends.npy --scores s.npy >out
row() { od -An -v -tf4 -w32 -j $((128 + 32 * $1)) -N 32 rows.npy; }
echo "$(row 3) $(row 9) $(row 100) $(row 3) $(od -An -tf4 -j 128 s.npy)" | awk '{
    for (k = 0; k < 2; k++) {
        sum = 0
        for (i = 1; i <= 8; i++) sum += $(16 * k + i) * $(16 * k + 8 + i)
        if ((sum - $(33 + k)) ^ 2 > 1e-10) { print sum, $(33 + k); exit 1 }
    }
}' || die 'another score'
# Every decoder and loss learns something.
for way in 'dot logistic' 'distmult softmax' 'transe margin' 'complex logistic' 'mlp logistic'; do
    set -- $way
    gnnstream train store --task link --model embedding --hidden 8 --decoder "$1" --loss "$2" --negatives 8 \
        --negatives-by degree --epochs 12 --keep last --batch-size 64 --lr 0.03 --metrics m.jsonl >out
    first=$(sed -n '1s/.*"epoch": 1, "loss": \([0-9.]*\),.*/\1/p' m.jsonl)
    last=$(sed -n '12s/.*"epoch": 12, "loss": \([0-9.]*\),.*/\1/p' m.jsonl)
    awk -v a="$first" -v b="$last" 'BEGIN { exit !(b < a) }' || die "$way: $first to $last"
done
# What does not go with labels of edges.
labelled=(gnnstream train store --model embedding --task edge-classify)
refused 1 'the store has no labels of edges to train on' "${labelled[@]}"
refused 2 '--negatives: is of --task link' "${labelled[@]}" --negatives 3
refused 2 '--decoder complex: scores a pair, and has no classes' "${labelled[@]}" --decoder complex
refused 2 '--loss mse: is not of --task edge-classify, which has xent' "${labelled[@]}" --loss mse
refused 2 '--sampler: does not go with --task edge-classify without --seeds edges' "${labelled[@]}" \
    --sampler cluster --batch-size 1
refused 2 '--decoder product: is of labels of edges' "${train[@]}" --decoder product
refused 2 '--decoder: is of --task link' gnnstream train store --model gcn --decoder dot
refused 1 "the store has no features" gnnstream train store --task link --model gcn
refused 2 '--hidden 7: rows of complex are complex numbers' "${train[@]}" --hidden 7
refused 2 '--loss bce: is of labels' "${train[@]}" --loss bce
refused 2 '--margin 2: is of --loss margin' "${train[@]}" --margin 2
refused 2 '--sampler: does not go with --task link' "${train[@]}" --sampler cluster --batch-size 1
refused 2 '--keep-by loss: is no figure of the task link, which has auc|mrr' "${train[@]}" --keep-by loss
refused 2 '--edges: needs --scores beside it' gnnstream predict store --weights dot.safetensors --edges ends.npy \
    --logits l.npy
