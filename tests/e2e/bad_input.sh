#!/usr/bin/env bash
# bad_input.sh - what partition, verify and train say to input that is not right:
# one line that names the place, exit status 1 (or 2: wrong usage), and never a
# folder left behind that looks like a store.
. "$(dirname "$0")/lib.sh"

input_of rough
good=$input
n=0

# poke FILE OFFSET HEX...: overwrites bytes. Array data of these files starts at 128.
poke()
{
    local file=$1 offset=$2
    shift 2
    printf "$(printf '\\x%s' "$@")" | dd of="$file" bs=1 seek="$offset" conv=notrunc status=none
}

# spoiled: a fresh copy of the good input in $bad.
spoiled()
{
    n=$((n + 1))
    bad=$work/bad$n
    cp -r "$good" "$bad"
}

# no_store: what must hold after a failed partition.
no_store()
{
    if [ -e "$work/out/manifest.json" ]; then
        fail "a manifest was left after: $1"
    elif [ -e "$work/out" ] && [ -n "$(ls -A "$work/out")" ]; then
        fail "files were left after: $1: $(ls "$work/out" | tr '\n' ' ')"
    else
        pass
    fi
    rm -rf "$work/out"
}

# refuse_input PATTERN [OPTIONS...]: partition of $bad.
refuse_input()
{
    local pattern=$1
    shift
    refuse 1 "$pattern" "$GNNSTREAM" partition "$bad" "$work/out" --parts 3 --method fennel "$@"
    no_store "partition of $bad ($pattern)"
}

# ---- files that are missing, empty or of the wrong kind ----
bad=$work/nowhere refuse_input 'nowhere'
spoiled; rm "$bad/edges.npy"; refuse_input 'edges\.npy'
for file in edges features labels train_idx; do
    spoiled; : >"$bad/$file.npy"; refuse_input "$file\.npy"
    spoiled; truncate -s -8 "$bad/$file.npy"; refuse_input "$file\.npy"
    spoiled; poke "$bad/$file.npy" 0 00; refuse_input "$file\.npy"
done
# "'<i8'" becomes "'<f8'", "'<c8'", big-endian; "(613, 23)" another shape
spoiled; sed -i '1s/<i8/<f8/' "$bad/edges.npy"; refuse_input 'edges\.npy.*f(loat)?64|edges\.npy.*(type|integer)'
spoiled; sed -i '1s/<f4/<c8/' "$bad/features.npy"; refuse_input 'features\.npy'
spoiled; sed -i '1s/<i8/>i8/' "$bad/labels.npy"; refuse_input 'labels\.npy'
spoiled; sed -i '1s/(\([0-9]*\), 2)/(\1, 3)/' "$bad/edges.npy"; refuse_input 'edges\.npy'
spoiled; sed -i '1s/False/True /' "$bad/features.npy"; refuse_input 'features\.npy.*fortran'
spoiled; "$REFERENCE" graph symmetric "$work/other"; cp "$work/other/features.npy" "$bad"; rm "$bad/meta.json"
refuse_input '(features|labels)\.npy.*(500|613)'
spoiled; cp "$work/other/labels.npy" "$bad"; refuse_input '(features|labels)\.npy.*(500|613)'

# ---- values ----
edge_at() { echo $((128 + 16 * $1 + 8 * $2)); }
# id 613 = N
spoiled; poke "$bad/edges.npy" "$(edge_at 1000 0)" 65 02 00 00 00 00 00 00; refuse_input 'edges\.npy.*1000.*613'
spoiled; poke "$bad/edges.npy" "$(edge_at 17 1)" ff ff ff ff ff ff ff ff; refuse_input 'edges\.npy.*17.*-1'
spoiled; poke "$bad/edges.npy" "$(edge_at 4 1)" 00 00 00 00 01 00 00 00; refuse_input 'edges\.npy.*4294967296'
spoiled; poke "$bad/labels.npy" $((128 + 8 * 33)) 63 00 00 00 00 00 00 00; refuse_input 'labels\.npy.*33.*99'
spoiled; poke "$bad/labels.npy" $((128 + 8 * 33)) 00 00 00 00 00 00 00 10; refuse_input 'labels\.npy.*33'
spoiled; poke "$bad/labels.npy" $((128 + 8 * 33)) f9 ff ff ff ff ff ff ff; refuse_input 'labels\.npy.*33.*-7'
spoiled; poke "$bad/features.npy" $((128 + 4 * (23 * 40 + 5))) 00 00 c0 7f
refuse_input 'features\.npy.*row 40, column 5.*finite'
spoiled; poke "$bad/features.npy" $((128 + 4 * (23 * 40 + 5))) 00 00 80 ff
refuse_input 'features\.npy.*row 40, column 5.*finite'
spoiled; cp "$bad/train_idx.npy" "$bad/valid_idx.npy"; refuse_input '(train|valid)'
spoiled; poke "$bad/test_idx.npy" 128 65 02 00 00 00 00 00 00; refuse_input 'test_idx\.npy.*613'
spoiled; poke "$bad/test_idx.npy" 128 ff ff ff ff ff ff ff ff; refuse_input 'test_idx\.npy.*-1'
# bfloat16 has float32's range, float16 has not: 1e6 cannot be kept
spoiled; poke "$bad/features.npy" 128 00 24 74 49; refuse_input 'features\.npy.*f16' --feature-type f16

# ---- sparse features ----
input_of csr
good=$input
spoiled; rm "$bad/features_indices.npy"; refuse_input 'features_indices'
spoiled; poke "$bad/features_indptr.npy" $((128 + 8 * 3)) ff ff ff 7f 00 00 00 00; refuse_input 'features_indptr'
spoiled; poke "$bad/features_indices.npy" 128 ff ff ff ff; refuse_input 'features_indices'
spoiled; poke "$bad/features_data.npy" 128 00 00 c0 7f; refuse_input 'features_data.*finite'
input_of rough
good=$input

# ---- text formats ----
bad=$work/bad.txt
printf '# c\n0\t1\n1\tx\n' >"$bad"; refuse_input 'bad\.txt.*line 3'
printf '0\t1\n1\n' >"$bad"; refuse_input 'bad\.txt.*line 2'
printf '0\t1\n-1\t0\n' >"$bad"; refuse_input 'bad\.txt.*line 2'
printf '0 99999999999999999999\n' >"$bad"; refuse_input 'bad\.txt.*line 1'
printf '# only words\n' >"$bad"; refuse_input 'bad\.txt'
: >"$bad"; refuse_input 'bad\.txt'
bad=$work/bad.mtx
printf '%%%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 2\n4 1\n' >"$bad"; refuse_input 'bad\.mtx.*line 4'
printf '%%%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 2\n' >"$bad"; refuse_input 'bad\.mtx'
printf '%%%%MatrixMarket matrix coordinate pattern general\n3 3 1\n1 2\n2 3\n' >"$bad"; refuse_input 'bad\.mtx'
printf '%%%%MatrixMarket matrix array real general\n3 3\n1\n' >"$bad"; refuse_input 'bad\.mtx'
printf '%%%%MatrixMarket matrix coordinate pattern general\n3 4 1\n1 2\n' >"$bad"; refuse_input 'bad\.mtx'
printf '%%%%MatrixMarket matrix coordinate pattern general\n3 3 0x\n1 2\n' >"$bad"; refuse_input 'bad\.mtx.*line 2'

# ---- where the store cannot go ----
store_at() { refuse 1 "$1" "$GNNSTREAM" partition "$good" "$2" --parts 2 --method natural "${@:3}"; }
store_at 'no/such' "$work/no/such/store"
store_at '/proc' /proc/gs_store
: >"$work/file"
store_at 'file' "$work/file"
[ -f "$work/file" ] && pass || fail 'a file in the way was removed'
mkdir "$work/full_of_mine" && echo precious >"$work/full_of_mine/mine"
store_at 'full_of_mine' "$work/full_of_mine"
store_at 'full_of_mine' "$work/full_of_mine" --force
[ "$(cat "$work/full_of_mine/mine")" = precious ] && pass || fail "a user's file was touched"
store=$work/store
run 'partition' "$GNNSTREAM" partition "$good" "$store" --parts 3 --method fennel
sum_of() { (cd "$store" && cat -- * | cksum); }
before=$(sum_of)
store_at 'store.*--force' "$store"
[ "$(sum_of)" = "$before" ] && pass || fail 'an existing store was changed without --force'
run 'partition --force' "$GNNSTREAM" partition "$good" "$store" --parts 3 --method fennel --force
[ "$(sum_of)" = "$before" ] && pass || note 'the same partition twice gives other bytes'

# ---- usage ----
usage() { refuse 2 "$1" "$GNNSTREAM" "${@:2}"; }
usage 'command|usage' frobnicate
usage 'partition' partition
usage 'store' partition "$good"
usage 'fnord' partition "$good" "$work/out" --fnord
usage 'method.*zigzag' partition "$good" "$work/out" --method zigzag
usage 'parts' partition "$good" "$work/out" --parts 0
usage 'parts' partition "$good" "$work/out" --parts -3
usage 'parts' partition "$good" "$work/out" --parts 3x
usage 'memory' partition "$good" "$work/out" --memory 12Q
usage 'memory' partition "$good" "$work/out" --memory -1G
usage 'feature-type' partition "$good" "$work/out" --feature-type f8
usage 'format' partition "$good" "$work/out" --format csv
usage 'seed' partition "$good" "$work/out" --seed
no_store 'wrong usage'
train_usage() { usage "$1" train "$store" --model gcn --epochs 1 "${@:2}"; }
usage 'model' train "$store"
train_usage 'fnord' --fnord
train_usage 'epochs' --epochs many
train_usage 'epochs' --epochs -1
train_usage 'layers' --layers 0
train_usage 'hidden' --hidden 0
train_usage 'dropout' --dropout 1.5
train_usage 'dropout' --dropout nan
train_usage 'input-dropout' --input-dropout -0.1
train_usage 'lr' --lr fast
train_usage 'lr' --lr nan
train_usage 'weight-decay' --weight-decay -1
train_usage 'optimizer.*lion' --optimizer lion
train_usage 'act.*wobble' --act wobble
train_usage 'device.*tpu' --device tpu
train_usage 'threads' --threads -2
train_usage 'host-memory' --host-memory lots
refuse 1 'device cuda' "$GNNSTREAM" train "$store" --model gcn --epochs 1 --device cuda:77
refuse 1 'gnc.*gcn' "$GNNSTREAM" train "$store" --model gnc --epochs 1
refuse 1 'nowhere' "$GNNSTREAM" train "$work/nowhere" --model gcn --epochs 1
refuse 1 'nowhere' "$GNNSTREAM" info "$work/nowhere"
refuse 1 'manifest' "$GNNSTREAM" verify "$good"
printf 'layer x(h[in]) -> [out]:\n    param W[out, in]\n    return sum(u.h @ )\n' >"$work/bad.gnn"
refuse 1 'bad\.gnn:3' "$GNNSTREAM" train "$store" --model "$work/bad.gnn" --epochs 1
printf 'layer x(h[in]) -> [out]:\n    param W[in, out]\n    return sum(u.h) @ W'"'"'\n' >"$work/bad.gnn"
refuse 1 'bad\.gnn:3' "$GNNSTREAM" train "$store" --model "$work/bad.gnn" --epochs 1 --hidden 9
: >"$work/empty.gnn"
refuse 1 'empty\.gnn' "$GNNSTREAM" train "$store" --model "$work/empty.gnn" --epochs 1

# ---- weights that do not fit, files that cannot be written ----
bad_weights() { refuse 1 "$1" "$GNNSTREAM" train "$store" --model gcn --hidden 16 --epochs 1 --init "$2"; }
"$REFERENCE" init "$good" "$work/w.safetensors"
"$REFERENCE" init "$good" "$work/sage.safetensors" --model sage
"$REFERENCE" init "$good" "$work/wide.safetensors" --hidden 17
bad_weights 'none\.safetensors' "$work/none.safetensors"
bad_weights 'sage\.safetensors.*convs\.0' "$work/sage.safetensors"
bad_weights 'wide\.safetensors.*convs\.0' "$work/wide.safetensors"
cp "$work/w.safetensors" "$work/x.safetensors"; truncate -s -4 "$work/x.safetensors"
bad_weights 'x\.safetensors' "$work/x.safetensors"
cp "$work/w.safetensors" "$work/x.safetensors"; poke "$work/x.safetensors" 0 ff ff ff ff ff ff ff 7f
bad_weights 'x\.safetensors' "$work/x.safetensors"
cp "$work/w.safetensors" "$work/x.safetensors"; poke "$work/x.safetensors" 8 5b
bad_weights 'x\.safetensors' "$work/x.safetensors"
: >"$work/x.safetensors"
bad_weights 'x\.safetensors' "$work/x.safetensors"
one() { refuse 1 "$1" "$GNNSTREAM" train "$store" --model gcn --epochs 1 "${@:2}"; }
one 'no/such' --save "$work/no/such/w.safetensors"
one 'no/such' --logits "$work/no/such/x.npy"
one 'no/such' --metrics "$work/no/such/m.jsonl"
one '/proc' --spill /proc/gs_spill --no-cache
one '/dev/full|space' --metrics /dev/full
one 'smallest|at least|need' --host-memory 64K
one 'smallest|at least|need' --device-memory 4K
# Warnings name options, too, and not the library's fields.
printf 'a b\nb c\n' >"$work/names"
"$GNNSTREAM" partition "$work/names" "$work/names.store" >"$work/stdout" 2>"$work/stderr" &&
    grep -q 'warning: .*(--ids keep refuses them)$' "$work/stderr" && pass ||
    fail 'a warning names no option' "$work/stderr"
# What is there and out of reach is not said to be missing.
ln -s loop "$work/loop"
refuse 1 'loop/manifest.json: is a link' "$GNNSTREAM" info "$work/loop"
refuse 1 'name too long' "$GNNSTREAM" info "$work/$(printf 'y%.0s' {1..300})"
refuse 1 'loop.*levels of symbolic links' "$GNNSTREAM" partition "$work/loop" "$work/loop.store"
finish
