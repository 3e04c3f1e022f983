#!/usr/bin/env bash
# full_disk.sh - partition, spill and results onto a file system that fills up, and
# a partition that is interrupted: one line, status 1, and nothing that looks like a
# store. Needs to mount a small tmpfs (root); skipped, saying so, where it cannot.
. "$(dirname "$0")/lib.sh"

disk=$work/disk
mkdir "$disk"
unmount() { mountpoint -q "$disk" && umount -l "$disk"; cleanup; }
trap unmount EXIT
if ! mount -t tmpfs -o size=256k tmpfs "$disk" 2>/dev/null; then
    echo 'SKIP a small file system cannot be mounted here (needs root)'
    exit 77
fi

# remount OPTIONS. The kernel gives back what an io_uring held a moment after its process has ended, and refuses a size
# below what is in use.
remount()
{
    for _ in $(seq 100); do
        mount -o "remount,$1" "$disk" 2>/dev/null && return
        sleep 0.05
    done
    fail "the small file system cannot be made $1"
}

# What to do is said once.
one_hint() { [ "$(grep -o 'choose' "$work/stderr" | wc -l)" -eq 1 ] && pass || fail 'not one hint' "$work/stderr"; }

# The input's store needs more than 256 KiB, so there are several places to run out at.
run generate "$GNNSTREAM" generate sbm "$work/input" --vertices 20000 --edges 100000 --features 16 --classes 4 \
    --seed 1 || finish
for size in 16k 64k 256k 1m 2m; do
    remount size=$size
    refuse 1 'space' "$GNNSTREAM" partition "$work/input" "$disk/store" --parts 4 --method random --memory 64M
    [ -e "$disk/store/manifest.json" ] && fail "a manifest on a full disk of $size" || pass
    rm -rf "${disk:?}"/*
done
# Tables are unpacked beside the store: it is that disk that is full, not the input's.
mkdir -p "$work/tables/raw"
seq 20000 | awk '{ print $1 - 1 "," $1 % 500 }' >"$work/tables/raw/edge.csv"
echo 20000 >"$work/tables/raw/num-node-list.csv"
remount size=256k
refuse 1 "^gnnstream partition: $disk/.*, made of .*edge.csv: .*space" "$GNNSTREAM" partition "$work/tables" \
    "$disk/store" --memory 64M
[ -z "$(ls -A "$disk")" ] && pass || fail "left on a disk that was too small for tables: $(ls -A "$disk")"
# A store that is there stays, and so does a generated graph, when there is no room for the one that is to replace it.
remount size=4m
run 'a small graph' "$GNNSTREAM" generate sbm "$disk/graph" --vertices 300 --edges 2000 --features 4 --classes 2 ||
    finish
run 'its store' "$GNNSTREAM" partition "$disk/graph" "$disk/store" --parts 2 --method random || finish
cp -r "$disk" "$work/before"
for size in 500k 800k 1200k; do
    remount size=$size
    refuse 1 'space' "$GNNSTREAM" partition "$work/input" "$disk/store" --parts 4 --method random --memory 64M --force
    refuse 1 'space' "$GNNSTREAM" generate sbm "$disk/graph" --vertices 30000 --edges 200000 --force
    diff -r "$work/before" "$disk" >"$work/differ" && pass ||
        fail "a full disk of $size cost an old store" "$work/differ"
done
rm -rf "${disk:?}"/*
remount size=256k
run partition "$GNNSTREAM" partition "$work/input" "$work/store" --parts 4 --method random || finish
train=("$GNNSTREAM" train "$work/store" --model gcn --epochs 1)
refuse 1 'space' "${train[@]}" --no-cache --spill "$disk"
refuse 1 'space' "${train[@]}" --logits "$disk/logits.npy"
one_hint
# Of two folders the one that is full is named, and what its part is; two on one disk have the parts of both.
deep=("${train[@]}" --hidden 64 --layers 3 --no-cache --no-prune --spill)
refuse 1 "^gnnstream train: $disk: no space: the run spills 6.0 MiB there, and the disk has 2[0-9.]+ KiB left" \
    "${deep[@]}" "$work/roomy,$disk"
[ ! -e "$work/roomy" ] && pass || fail 'a folder that was made for a refused run is left'
remount size=8m
run 'a part on each disk' "${deep[@]}" "$work/roomy,$disk"
refuse 1 "^gnnstream train: $disk/a: no space: the run spills 12.0 MiB there" "${deep[@]}" "$disk/a,$disk/b"
remount ro
refuse 1 "^gnnstream train: $disk: cannot make a folder in it: Read-only.*--spill" "${deep[@]}" "$work,$disk"
remount rw,size=256k
# No folder can be made there, either.
remount nr_inodes=1
refuse 1 'space.*--spill' "${train[@]}" --no-cache --spill "$disk"
one_hint
remount nr_inodes=0
# All that the results take is taken before the first epoch.
head -c 1m /dev/zero >"$disk/filler" 2>/dev/null
refuse 1 'space' "${train[@]}" --save "$disk/weights.safetensors" --metrics "$work/metrics.jsonl"
[ -e "$work/metrics.jsonl" ] && fail 'a full disk was found after the epochs' || pass
rm -f "$disk/filler"
# Lines of metrics come epoch by epoch; one that does not fit is not there in part.
remount size=12k
refuse 1 'cannot write the line of epoch [0-9]+: .*metrics.jsonl: .*space' \
    "$GNNSTREAM" train "$work/store" --model gcn --epochs 100 --metrics "$disk/metrics.jsonl"
if [ -n "$(tail -c 1 "$disk/metrics.jsonl")" ] || grep -vq '^{.*}$' "$disk/metrics.jsonl"; then
    fail 'half a line of metrics was left' "$disk/metrics.jsonl"
else
    pass
fi
rm -f "$disk/metrics.jsonl"
remount size=256k
[ -e "$disk/logits.npy" ] && fail 'half of the logits was left on the full disk' || pass
[ -z "$(ls -A "$disk")" ] && pass || fail "left on the full disk: $(ls -A "$disk" | tr '\n' ' ')"
rm -rf "${disk:?}"/*

# ---- interrupted: SIGINT and SIGTERM at several moments ----
for signal in INT TERM; do
    for delay in 0.02 0.08 0.2 0.5; do
        rm -rf "$work/out"
        # The second time with a store in place, which stays.
        [ $signal = INT ] || cp -r "$work/store" "$work/out"
        # With job control on, a background child keeps the default SIGINT.
        (set -m; "$GNNSTREAM" partition "$work/input" "$work/out" --parts 16 --method fennel --force \
            >"$work/stdout" 2>"$work/stderr" &
            pid=$!; sleep $delay; kill -$signal $pid 2>/dev/null; wait $pid)
        status=$?
        if [ $status -eq 0 ]; then
            run "verify after a late $signal" "$GNNSTREAM" verify "$work/out"
        elif [ $signal = TERM ]; then
            diff -r "$work/store" "$work/out" >"$work/differ" && pass ||
                fail "$signal cost the old store" "$work/differ"
        elif [ -e "$work/out/manifest.json" ]; then
            fail "a manifest was left by $signal after $delay s"
        elif [ -d "$work/out" ] && [ -n "$(ls -A "$work/out")" ]; then
            fail "$signal after $delay s (status $status) left: $(ls -A "$work/out" | tr '\n' ' ')"
        else
            pass
        fi
        compgen -G "$work/out.unfinished*" >/dev/null && fail "$signal after $delay s left a draft" || pass
    done
done
finish
