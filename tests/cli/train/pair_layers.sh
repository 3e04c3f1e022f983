# Layers are trained by pairs: the same bits for any number of threads and any budget, and when killed and gone on
# with; a run without dropout makes its rows once an epoch; a table below the layers learns, too.
graph_of_pairs
gnnstream partition graph store --parts 3 --method natural --random-features 5 >made
cat >learned.gnn <<'TEXT'
layer near(h[in]) -> [out]:
    param W[out, in] ~ glorot, b[out] ~ zeros
    return (h + mean(u.h)) @ W' + b

network(x[in]) -> [out]:
    param emb[vertices, 6] ~ normal(0.3), late[vertices, out] ~ zeros
    return near(relu(near(emb, hidden)), out) + late
TEXT
# Programs depend on budgets, and round otherwise; these are the same for all.
train=(gnnstream train store --task link --hidden 8 --negatives 5 --batch-size 40 --epochs 4 --lr 0.05 --no-move
    --no-fuse)
memory=32M
[ -z "${GS_SANITIZED:-}" ] || memory=60M # what a sanitizer holds itself is of the budget
bits() { tensors "$1" | cksum; }
for model in '--model rgcn --decoder distmult' '--model sage --decoder mlp --dropout 0.3 --norm batch' \
    '--model learned.gnn --decoder transe --loss margin'; do
    # shellcheck disable=SC2086 # words
    "${train[@]}" $model --threads 1 --save whole.safetensors --metrics m.jsonl >out
    grep -q '"valid_mrr": 0\.[0-9]*, "test_mrr": null, .*"valid_hits@10": 0' m.jsonl || die "$(<m.jsonl)"
    grep -q '^valid  MRR 0\.' out || die "$(<out)"
    for how in '--threads 2' "--no-cache --host-memory $memory --spill ."; do
        # shellcheck disable=SC2086 # words
        "${train[@]}" $model $how --save other.safetensors >out
        [ "$(bits whole.safetensors)" = "$(bits other.safetensors)" ] || die "bits: $model $how"
    done
    # Ended after two epochs, and gone on with.
    # shellcheck disable=SC2086 # words
    { "${train[@]}" $model --epochs 2 --checkpoint c --checkpoint-every 1 --keep last && rm -rf d && mv c d &&
        "${train[@]}" $model --resume d --keep last --save on.safetensors 2>err &&
        "${train[@]}" $model --keep last --save whole.safetensors; } >out
    [ "$(bits whole.safetensors)" = "$(bits on.safetensors)" ] || die "other bits when gone on with: $model"
done
"${train[@]}" --model rgcn --decoder distmult --epochs 30 --keep last --metrics m.jsonl >out
awk -F '"loss": |,' '{ loss[NR] = $3 } END { exit !(loss[30] < 0.9 * loss[1]) }' m.jsonl || die "$(cut -c1-50 m.jsonl)"
"${train[@]}" --patience 2 --model rgcn --decoder distmult --epochs 200 --lr 0.3 --metrics m.jsonl >out
[ "$(wc -l <m.jsonl)" -lt 100 ] || die "$(wc -l <m.jsonl) epochs without patience"
# Rows that are added at the very end, and a vector: one step moves the vector by as much as all rows together.
"${train[@]}" --model learned.gnn --optimizer sgd --epochs 1 --keep last --save step.safetensors >out
tensors step.safetensors | od -An -v -tf4 -w4 | awk '
    NR > 120 && NR <= 128 { b[NR % 8] = $1 } # behind W [8, 6], b [8], W [8, 8]; then emb [101, 6] and late [101, 8]
    NR > 128 + 606 { sum[(NR - 606) % 8] += $1; size += $1 ^ 2 }
    END { for (k = 0; k < 8; k++) off += (sum[k] - b[k]) ^ 2
          exit !(NR == 128 + 14 * 101 && size > 0 && off < 1e-8 * size) }' || die 'the sum of rows is not the vector'
gnnstream plan store --task link --model gcn --hidden 8 >out
grep -q '^forward ' out || die "$(<out)"
grep -q '^  batches  ' out || die "$(<out)"
# Scores of pairs are what the last layer's rows say.
"${train[@]}" --model gcn --decoder dot --save dot.safetensors --logits rows.npy >out
{
    printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 2), }"
    printf '\x03\0\0\0\x09\0\0\0\x64\0\0\0\x03\0\0\0'
} >ends.npy
row() { od -An -v -tf4 -w32 -j $((128 + 32 * $1)) -N 32 rows.npy; }
for how in '' "--no-cache --host-memory $memory --spill ."; do
    # shellcheck disable=SC2086 # words
    gnnstream predict store --weights dot.safetensors --edges ends.npy --scores s.npy --logits again.npy $how >out
    grep -q label out && die "$(<out)"
    cmp rows.npy again.npy || die 'other rows when predicted'
    echo "$(row 3) $(row 9) $(row 100) $(row 3) $(od -An -tf4 -j 128 s.npy)" | awk '{
        for (k = 0; k < 2; k++) {
            sum = 0
            for (i = 1; i <= 8; i++) sum += $(16 * k + i) * $(16 * k + 8 + i)
            if ((sum - $(33 + k)) ^ 2 > 1e-10) { print sum, $(33 + k); exit 1 }
        }
    }' || die 'another score'
done
# The best targets of sources 3 and 100, of all 101: those of the largest products.
{
    printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }"
    printf '\x03\0\0\0\x64\0\0\0'
} >sources.npy
gnnstream predict store --weights dot.safetensors --edges sources.npy --top 4 --scores s.npy --targets t.npy >out
row 3 >source
for ((v = 0; v < 101; v++)); do echo "$v $(<source) $(row "$v")"; done | awk '{
    sum = 0
    for (i = 2; i <= 9; i++) sum += $i * $(8 + i)
    printf "%d %.9f\n", $1, sum
}' | sort -k2,2gr | head -n 4 | awk '{ print $1 }' | paste -sd ' ' >best
[ "$(od -An -v -td8 -w32 -j 128 -N 32 t.npy | xargs)" = "$(<best)" ] || die "$(od -An -td8 -j 128 t.npy), not $(<best)"
[ "$(wc -c <s.npy)" = $((128 + 2 * 4 * 4)) ] || die "$(wc -c <s.npy) bytes of scores"
refused 2 '--top: needs --targets beside it' gnnstream predict store --weights dot.safetensors --edges sources.npy \
    --top 4 --scores s.npy
refused 1 'are int64 or int32 [M]' gnnstream predict store --weights dot.safetensors --edges ends.npy --top 4 \
    --scores s.npy --targets t.npy
