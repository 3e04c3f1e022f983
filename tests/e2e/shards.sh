#!/usr/bin/env bash
# shards.sh - gnnstream shard: ranks that have a part of a store each train as those that share it, to the bit; what a
# shard has, what is damaged, and what is refused.
. "$(dirname "$0")/lib.sh"

if ! command -v mpirun >"$work/which" || [ ! -e "$RANKS_MODULE" ]; then
    echo "SKIP no mpirun, or built without MPI"
    exit 77
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
texts=$(dirname "$0")/edge_texts
options=(--layers 2 --epochs 2 --host-memory 300M --device-memory 6M --threads 1)

# A graph of which every part has edges of its own, with features of edges.
run "a graph" "$GNNSTREAM" generate rmat "$work/graph" --vertices 6000 --edges 60000 --features 24 --classes 4 || finish
run "its store" "$GNNSTREAM" partition "$work/graph" "$work/store" --parts 7 --method random || finish
cp -r "$work/graph" "$work/edged"
python3 - "$work/edged/edge_features.npy" <<'END'
import struct, sys
head = "{'descr': '<f4', 'fortran_order': False, 'shape': (60000, 3), }"
head += " " * (63 - (10 + len(head)) % 64) + "\n"
rows = b"".join(struct.pack("<f", (k * 7919 % 1000) / 500 - 1) for k in range(180000))
open(sys.argv[1], "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + rows)
END
for split in train.20000 valid.300; do
    first "${split#*.}" 16 "$work/edged/${split%.*}_edges.npy" "$work/graph/edges.npy"
done
run "a store with features of edges" "$GNNSTREAM" partition "$work/edged" "$work/edges" --parts 5 --method random \
    --feature-type bf16 || finish

# Each has its part of what is dealt, and no more.
for n in 2 3; do
    run "shard $n" "$GNNSTREAM" shard "$work/store" $n "$work/of$n"
    run "shard $n with features of edges" "$GNNSTREAM" shard "$work/edges" $n "$work/edges$n"
    for file in edges.dest.bin edges.source.bin; do
        [ "$(cat "$work/of$n"/*/$file | wc -c)" -eq "$(wc -c <"$work/store/$file")" ] && pass ||
            fail "$file of $n shards is not that of the store"
    done
    for shard in "$work/of$n"/*; do
        run "verify $shard" "$GNNSTREAM" verify "$shard"
        all=$(du -s --apparent-size -B1 "$work/store" | cut -f1) own=$(du -s -B1 "$shard" | cut -f1)
        [ "$own" -lt $((all * 13 / 10 / n + 200000)) ] && pass || fail "$shard has $own bytes, the store $all"
    done
done
"$GNNSTREAM" info "$work/of3/1" | grep -q '^shard  *1 of 3' && "$GNNSTREAM" info "$work/of3" | grep -q '^shards  *3 ' &&
    "$GNNSTREAM" info --json "$work/of3/1" | grep -q '"shards": 3, "shard": 1' && pass || fail "info of shards"

# train N FOLDER NAME OPTIONS...
train()
{
    local n=$1 folder=$2 name=$3
    shift 3
    run "$name: $n ranks, $folder $*" timeout 100 mpirun -n "$n" "$GNNSTREAM" train "$folder" "${options[@]}" \
        --topology "$work/network$n" --save "$work/$name.safetensors" --logits "$work/$name.npy" \
        --metrics "$work/$name.jsonl" "$@"
}
same()
{
    cmp "$work/$1.safetensors" "$work/$2.safetensors" && cmp "$work/$1.npy" "$work/$2.npy" &&
        cmp <(cut -d, -f1-5 "$work/$1.jsonl") <(cut -d, -f1-5 "$work/$2.jsonl") && pass || fail "$1 is not $2: $3"
}
# beside N STORE SHARDS OPTIONS...: ranks with shards, and ranks that share the store.
beside()
{
    local n=$1 store=$2 shards=$3 each
    shift 3
    each=$(printf ', {"devices": 1}%.0s' $(seq "$n"))
    printf '{"switches": [%s], "network": {"bps": 1e9, "seconds": 2e-5}}' "${each:2}" >"$work/network$n"
    train "$n" "$work/$store" shared "$@" && train "$n" "$work/$shards" own "$@" && same own shared "$*"
}
beside 2 store of2 --model gcn --hidden 8
cp "$work/own.safetensors" "$work/gcn.safetensors"
cp "$work/own.npy" "$work/gcn.npy"
[ -z "${GS_TEST_ALL:-}" ] || beside 3 store of3 --model gat --hidden 8 --no-hoist --no-cache
beside 3 store of3 --model gcn --hidden 8 --no-prune --dropout 0.5 --norm batch --class-weights balanced
[ -z "${GS_TEST_ALL:-}" ] || beside 2 edges edges2 --model "$texts/gatv2.gnn" --hidden 8 --no-prune
beside 3 edges edges3 --model "$texts/gatv2.gnn" --hidden 16
# batches of edges of all shards: rows of the store come from whoever has them, in memory or in its file
drawn=(--sampler neighbor --fanout 4,3 --batch-size 190)
beside 3 edges edges3 --model "$texts/gatv2.gnn" --hidden 8 "${drawn[@]}"
beside 2 store of2 --model sage --hidden 8 --sampler saint-walk --batch-size 100 --no-cache --epochs 1
[ "$(column sent_bytes "$work/own.jsonl" | total)" -gt "$(column sent_bytes "$work/shared.jsonl" | total)" ] && pass ||
    fail "no rows of the store were sent for batches"
[ -z "${GS_TEST_ALL:-}" ] || beside 3 store of3 --model gcn --hidden 8 --sampler cluster --batch-size 1
# pairs: edges of the store, whose chunks go to who scores them; and listed ones, which each shard has, also as seeds
pairs=(--task link --negatives 2 --batch-size 3000 --epochs 1)
beside 3 store of3 --model sage --hidden 8 "${pairs[@]}"
beside 2 edges edges2 --model "$texts/gatv2.gnn" --hidden 8 "${drawn[@]}" "${pairs[@]}" --seeds edges
# rows of the store, which are narrower than what becomes of them, go from who has them to who wants them, as many as a
# plan says that is told of shards; with more memory devices keep others' rows, which are sent when the run opens
sage=(--model sage --hidden 64 --no-hoist --device-memory 5M)
beside 2 store of2 "${sage[@]}"
sed 's/2e-5/&, "shards": true/' "$work/network2" >"$work/dealt"
sent() { column sent_bytes "$work/$1.jsonl" | head -n 1; }
planned() # TOPOLOGY
{
    "$GNNSTREAM" plan "$work/store" "${options[@]}" --threads 2 "${sage[@]}" --device cpu:2 --topology "$1" --json |
        sed 's/{"from"/\n&/g' | sed -n '/^{"from":"network"/s/.*"train","bytes":\([0-9]*\).*/\1/p' | total
}
[ "$(sent shared)" -eq "$(planned "$work/network2")" ] && [ "$(sent own)" -eq "$(planned "$work/dealt")" ] &&
    [ "$(sent own)" -gt "$(sent shared)" ] && pass ||
    fail "sent $(sent shared), with shards $(sent own); planned $(planned "$work/network2"), $(planned "$work/dealt")"

# Ranks of two machines see their own shard alone, however it came there: in a folder of its number, or a list.
mkdir -p "$work/here/of2" "$work/there/of2"
tar -C "$work/of2" -c 0 | tar -C "$work/here/of2" -x
tar -C "$work/of2" -c 1 | tar -C "$work/there/of2" -x
mv "$work/of2" "$work/away"
apart=(--model gcn --hidden 8 "${options[@]}" --topology "$work/network2")
run "two machines" mpirun -n 1 "$GNNSTREAM" train "$work/here/of2" "${apart[@]}" --save "$work/apart.safetensors" : \
    -n 1 "$GNNSTREAM" train "$work/there/of2" "${apart[@]}" --save "$work/apart.safetensors"
cmp "$work/apart.safetensors" "$work/gcn.safetensors" && pass || fail "two machines are not one"
run "a list" mpirun -n 2 "$GNNSTREAM" train "$work/here/of2/0,$work/there/of2/1" "${apart[@]}" \
    --save "$work/list.safetensors"
cmp "$work/list.safetensors" "$work/gcn.safetensors" && pass || fail "a list is not a folder"
mv "$work/away" "$work/of2"

# They go on from what ranks of the store have saved, and predict.
train 2 "$work/store" saved --model gcn --hidden 8 --checkpoint "$work/saved" --checkpoint-every 1
for way in store of2; do
    cp -r "$work/saved" "$work/saved.$way"
    mpirun -n 2 "$GNNSTREAM" train "$work/$way" "${apart[@]}" --epochs 4 --resume "$work/saved.$way" \
        --save "$work/on.$way.safetensors" >"$work/stdout" 2>"$work/stderr" && pass || fail "resume" "$work/stderr"
done
cmp "$work/on.store.safetensors" "$work/on.of2.safetensors" && pass || fail "gone on otherwise"
refuse 2 'model is missing: with STORE, --resume wants' mpirun -n 2 "$GNNSTREAM" train "$work/of2" \
    --resume "$work/saved"
run "predict" mpirun -n 2 "$GNNSTREAM" predict "$work/of2" --weights "$work/gcn.safetensors" --threads 1 \
    --logits "$work/predicted.npy"
compare "a prediction" "$work/predicted.npy" "$work/gcn.npy" 1e-5

# What is refused, in one line.
gcn=(--model gcn --epochs 1 --threads 1)
refuse 1 'seeds are edges of all shards' mpirun -n 2 "$GNNSTREAM" train "$work/of2" "${gcn[@]}" "${drawn[@]}" \
    --task link --seeds edges --host-memory 300M
refuse 2 'of2: holds shards of a store' "$GNNSTREAM" train "$work/of2" "${gcn[@]}"
refuse 2 'of2/1: is shard 1 of 2' "$GNNSTREAM" train "$work/of2/1" "${gcn[@]}"
refuse 2 'of2/1: is shard 1 of 2' "$GNNSTREAM" plan "$work/of2/1" "${gcn[@]}"
refuse 2 'of2/0: is shard 0 of 2, and this is rank 0 of 3' mpirun -n 3 "$GNNSTREAM" train "$work/of2" "${gcn[@]}" \
    --resume "$work/saved"
refuse 2 'is shard 1 of 2, and this is rank 0 of 2' mpirun -n 2 "$GNNSTREAM" train "$work/of2/1,$work/of2/0" "${gcn[@]}"
refuse 2 'is a list of 3 folders' mpirun -n 2 "$GNNSTREAM" train "$work/of3/0,$work/of3/1,$work/of3/2" "${gcn[@]}"
refuse 2 'rank 1 has another store than rank 0' mpirun -n 2 "$GNNSTREAM" train "$work/of2/0,$work/edges2/1" "${gcn[@]}"
refuse 2 'rank 1 has another store than rank 0' mpirun -n 2 "$GNNSTREAM" train "$work/of2/0,$work/store" "${gcn[@]}"
refuse 2 'from 2 to 16' "$GNNSTREAM" shard "$work/store" 0 "$work/none"
refuse 2 'its 7 intervals cannot be dealt to 8 ranks' "$GNNSTREAM" shard "$work/store" 8 "$work/none"
refuse 1 'use --force' "$GNNSTREAM" shard "$work/store" 2 "$work/of2"
refuse 1 'holds "2", which is none of 2 shards' "$GNNSTREAM" shard "$work/store" 2 "$work/of3" --force
refuse 2 'of2: holds shards' "$GNNSTREAM" shard "$work/of2" 2 "$work/none"
run "made again" "$GNNSTREAM" shard "$work/store" 2 "$work/of2" --force
[ ! -e "$work/none" ] && pass || fail "something is left of what was refused"

# Half of a shard is none: a disk that takes no more, and one who asks it to stop.
(trap '' XFSZ && ulimit -f 100 && "$GNNSTREAM" shard "$work/store" 2 "$work/none") >"$work/stdout" 2>"$work/stderr" &&
    fail "a full disk is not said" || pass
[ "$(wc -l <"$work/stderr")" -eq 1 ] && [ ! -e "$work/none" ] && pass || fail "a full disk" "$work/stderr"
timeout -s INT 0.02 "$GNNSTREAM" shard "$work/store" 2 "$work/none" >"$work/stdout" 2>"$work/stderr"
[ ! -e "$work/none" ] || run "interrupted too late" "$GNNSTREAM" verify "$work/none/1"

# A damage of any file is found: a byte by verify, what is missing or cut before the first epoch.
number=0
for file in "$work/of2/1"/*; do
    number=$((number + 1)) # every third file: store/corrupt has each byte of each
    [ -n "${GS_TEST_ALL:-}" ] || [ $((number % 3)) -eq 1 ] || continue
    cp "$file" "$work/kept"
    bytes=$(wc -c <"$file")
    [ "$bytes" -gt 0 ] || continue
    byte=$(od -An -tu1 -j $((bytes / 2)) -N 1 "$file")
    printf "\\$(printf %o $((byte ^ 1)))" | dd of="$file" bs=1 seek=$((bytes / 2)) conv=notrunc status=none
    "$GNNSTREAM" verify "$work/of2/1" >"$work/stdout" 2>"$work/stderr" && fail "$file: a byte is not missed" || pass
    [ "${file##*/}" != features.bin ] || # found where the rows are read, which the other rank waits for
        for each in '' --no-hoist; do
            timeout 60 mpirun -n 2 "$GNNSTREAM" train "$work/of2" "${gcn[@]}" $each >"$work/stdout" 2>"$work/stderr"
            [ $? -eq 1 ] && grep -q 'rank 1: .*of2/1/features.bin: .*damaged' "$work/stderr" && pass ||
                fail "what ranks say of damaged rows $each" "$work/stderr"
        done
    head -c $((bytes - 1)) "$work/kept" >"$file"
    refuse 1 'rank 1: .*of2/1' mpirun -n 2 "$GNNSTREAM" train "$work/of2" "${gcn[@]}"
    cp "$work/kept" "$file"
done
# a deal that the tables do not bear out, however well its checksum is made
rm "$work/of2/1/shard.json"
cp "$work/of2/0/shard.json" "$work/of2/1"
refuse 1 'rank 1: .*of2/1' mpirun -n 2 "$GNNSTREAM" train "$work/of2" "${gcn[@]}"
rm "$work/of2/1/shard.json"
refuse 1 'rank 1: .*of2/1: there is no shard for rank 1' mpirun -n 2 "$GNNSTREAM" train "$work/of2" "${gcn[@]}"
finish
