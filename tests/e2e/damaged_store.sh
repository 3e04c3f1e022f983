#!/usr/bin/env bash
# damaged_store.sh - a store that lost bytes, or whose bytes changed. Every file is
# cut short and has bits flipped in several places; verify must see each, and
# training must either refuse or, where it does not read that byte, be as exact as before.
. "$(dirname "$0")/lib.sh"

input_of rough
whole=$work/whole store=$work/store
run partition "$GNNSTREAM" partition "$input" "$whole" --parts 3 --method random || finish
run verify "$GNNSTREAM" verify "$whole"
train=("$GNNSTREAM" train "$store" --model gcn --epochs 1 --no-cache --seed 1 --logits "$work/out.npy")
cp -r "$whole" "$store"
run train "${train[@]}" || finish
mv "$work/out.npy" "$work/good.npy"

# damaged WHAT USED: verify must refuse the store; training may only succeed with the same result, and must not where
# USED is "used". Sanitized, every fourth is looked at.
number=0
damaged()
{
    number=$((number + 1))
    [ -z "${GS_SANITIZED:-}" ] || [ -n "${GS_TEST_ALL:-}" ] || [ $((number % 4)) -eq 1 ] || return
    refuse 1 . "$GNNSTREAM" verify "$store" || note "that was verify after: $1"
    rm -f "$work/out.npy"
    timeout 60 "${train[@]}" >"$work/stdout" 2>"$work/stderr"
    case $? in
    0)
        if [ "$2" = used ]; then
            fail "train accepted a store after: $1"
        else
            compare "train after: $1" "$work/out.npy" "$work/good.npy" 0
        fi
        ;;
    1) [ "$(wc -l <"$work/stderr")" -eq 1 ] && pass || fail "train said not one line after: $1" "$work/stderr" ;;
    *) fail "train: unexpected exit status after: $1" "$work/stderr" ;;
    esac
}

fresh()
{
    rm -rf "$store"
    cp -r "$whole" "$store"
}

# flip FILE OFFSET: turns over one bit.
flip()
{
    local byte
    byte=$(od -An -tu1 -j "$2" -N 1 "$1")
    printf "$(printf '\\x%x' $((byte ^ 16)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

for path in "$whole"/*; do
    file=${path##*/}
    size=$(stat -c %s "$path")
    [ "$size" -gt 0 ] || continue
    fresh; truncate -s -1 "$store/$file"; damaged "$file one byte short" used
    fresh; truncate -s $((size / 2)) "$store/$file"; damaged "$file cut in half" used
    fresh; : >"$store/$file"; damaged "$file emptied" used
    fresh; rm "$store/$file"; damaged "$file removed" used
    offsets="0 $((size / 3)) $((size - 1))"
    [ -z "${GS_TEST_ALL:-}" ] || offsets+=" 33 $((size / 2))"
    for offset in $offsets; do
        [ "$offset" -lt "$size" ] || continue
        fresh; flip "$store/$file" "$offset"; damaged "$file: a bit of byte $offset turned over" maybe
    done
done

# Files that changed places, and a manifest that claims too much.
fresh; cp "$whole/edges.dest.bin" "$store/edges.source.bin" 2>/dev/null && damaged 'both directions the same file' maybe
for claim in '"vertices": *[0-9]*/"vertices": 99999999999' '"parts": *[0-9]*/"parts": 4294967295' \
    '"edges": *[0-9]*/"edges": 18446744073709551615'; do
    fresh
    sed -i "s/$claim/" "$store/manifest.json"
    cmp -s "$store/manifest.json" "$whole/manifest.json" && { note "no ${claim%%:*} in the manifest"; continue; }
    damaged "a manifest with ${claim##*/}" used
done
finish
