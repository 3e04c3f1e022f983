#!/usr/bin/env bash
# partition_ranks.sh - mpirun -n N gnnstream partition --shards N makes, byte for byte, the shards that `partition` and
# then `shard` make; on folders that have no room for the store, within a budget; what is refused, and how it ends.
. "$(dirname "$0")/lib.sh"

if ! command -v mpirun >"$work/which" || [ ! -e "$RANKS_MODULE" ]; then
    echo "SKIP no mpirun, or built without MPI"
    exit 77
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1

# A graph with loops, types, weights; one with features of edges; one of an odd width, without features.
run "a graph" "$GNNSTREAM" generate rmat "$work/plain" --vertices 6000 --edges 40000 --features 40 --classes 4 || finish
for kind in typed edged bare; do
    cp -r "$work/plain" "$work/$kind"
done
rm "$work/bare/features.npy" "$work/bare/"*_idx.npy
python3 - "$work" <<'END'
import array, struct, sys
def save(path, kind, code, shape, values):
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    head += " " * (63 - (10 + len(head)) % 64) + "\n"
    data = array.array(code, values).tobytes()
    open(path, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data)
e = 40000
save(f"{sys.argv[1]}/typed/edge_types.npy", "<i4", "i", f"({e},)", [k * 7919 % 5 for k in range(e)])
save(f"{sys.argv[1]}/typed/edge_weights.npy", "<f4", "f", f"({e},)", [k * 7919 % 1000 / 500 for k in range(e)])
save(f"{sys.argv[1]}/edged/edge_features.npy", "<f4", "f", f"({e}, 3)", [k * 7919 % 1000 / 500 for k in range(3 * e)])
END

# alike N INPUT OPTIONS...: shards of the same name made both ways; the store is ordered for as many ranks.
alike()
{
    local n=$1 input=$2
    shift 2
    rm -rf "$work/one" "$work/cut" "$work/ranks"
    mkdir "$work/one" "$work/cut" "$work/ranks"
    local for=()
    [[ " $* " != *" lp "* ]] || for=(--ranks "$n") # other orders are the same for any
    run "a store" "$GNNSTREAM" partition "$work/$input" "$work/one/out" "$@" ${for[@]+"${for[@]}"} &&
        run "its shards" "$GNNSTREAM" shard "$work/one/out" "$n" "$work/cut/out" &&
        run "$n ranks: $input $*" timeout 100 mpirun -n "$n" "$GNNSTREAM" partition "$work/$input" "$work/ranks/out" \
            --shards "$n" "$@" || return
    diff -r "$work/cut/out" "$work/ranks/out" >"$work/diff" && pass || fail "other shards: $n, $input $*" "$work/diff"
}
# Each start of a rank takes most of what it does here, so cases have several options each.
alike 3 plain --parts 5 --method random --seed 3 --memory 30M --feature-type bf16
alike 2 typed --parts 5 --method random --memory 100M
alike 2 edged --parts 5 --method natural --undirected --memory 100M
alike 3 bare --parts 4 --method random --random-features 33 --split 0.5,0.2,0.3 --memory 100M
if [ -n "${GS_TEST_ALL:-}" ]; then
    alike 2 plain --parts 7 --method random --seed 3 --memory 100M
    alike 3 plain --parts 7 --method natural --undirected --memory 100M
    alike 3 typed --parts 4 --method random --undirected --memory 100M
    alike 2 edged --parts 5 --method natural --memory 100M
    alike 2 bare --parts 4 --method random --split 0.5,0.2,0.3 --memory 100M
fi
# By label propagation: over METIS, with more intervals than it takes, with labels that few vertices have.
alike 3 typed --parts 40 --method lp --undirected --memory 100M
alike 4 bare --parts 5 --method lp --split 0.03,0.02,0.03 --memory 100M
alike 2 plain --parts 7 --method lp --seed 3 --memory 100M

run "a graph" "$GNNSTREAM" generate rmat "$work/large" --vertices 40000 --edges 200000 --features 100 --classes 4

# Ranks of unlike machines read shares that fit each other: the least memory of any counts for all.
mkdir "$work/unlike" "$work/alone" "$work/cuts"
unlike=("$GNNSTREAM" partition "$work/large" "$work/unlike/out" --shards 2 --parts 8 --method random)
if run "little and much memory" timeout 100 mpirun -n 1 "${unlike[@]}" --memory 40M : -n 1 "${unlike[@]}" --memory 400M
then
    "$GNNSTREAM" partition "$work/large" "$work/alone/out" --parts 8 --method random >"$work/stdout" &&
        "$GNNSTREAM" shard "$work/alone/out" 2 "$work/cuts/out" >"$work/stdout"
    diff -r "$work/cuts/out" "$work/unlike/out" >"$work/diff" && pass || fail "shards of unlike ranks" "$work/diff"
fi

# Each rank's folder has less room than the store takes, and what it does not need of it is never there.
cat >"$work/quota" <<'END'
set -e
mkdir -p "$work/a" "$work/b" && mount -t tmpfs -o size=$2 none "$work/a" && mount -t tmpfs -o size=$3 none "$work/b"
made=0
options=(--shards 2 --method random --parts 8 --memory 60M)
mpirun -n 1 "$GNNSTREAM" partition "$work/large" "$work/a/out" "${options[@]}" : \
    -n 1 "$GNNSTREAM" partition "$work/large" "$work/b/out" "${options[@]}" || made=$?
[ $made -eq 0 ] || { find "$work/a" "$work/b" -mindepth 1 && exit $made; }
"$GNNSTREAM" verify "$work/a/out/0" && "$GNNSTREAM" verify "$work/b/out/1"
mpirun -n 1 "$GNNSTREAM" train "$work/a/out" --model gcn --epochs 2 --threads 1 --host-memory 120M : \
    -n 1 "$GNNSTREAM" train "$work/b/out" --model gcn --epochs 2 --threads 1 --host-memory 120M
END
apart=(unshare -m)
"${apart[@]}" mount -t tmpfs none "$work/one" 2>"$work/stderr" || apart=(unshare -rm)
if "${apart[@]}" mount -t tmpfs none "$work/one" 2>"$work/stderr"; then
    export work GNNSTREAM
    "$GNNSTREAM" partition "$work/large" "$work/whole" --method random --parts 8 >"$work/stdout" &&
        bytes=$(du -sB1 "$work/whole" | cut -f1) && quota=$((bytes * 85 / 100))
    "${apart[@]}" bash "$work/quota" quota $quota $quota >"$work/stdout" 2>"$work/stderr" && pass ||
        fail "quotas of $quota for a store of $bytes" "$work/stderr"
    resident=$(sed -n 's/.*at most \([0-9]*\)[.0-9]* MiB resident/\1/p' "$work/stdout" | head -n 1)
    [ "${resident:-99}" -le 60 ] && pass || fail "$resident MiB resident of 60" "$work/stdout"
    # a disk that is full is one rank's, and nothing is left of it anywhere
    "${apart[@]}" bash "$work/quota" quota $quota $((bytes / 5)) >"$work/stdout" 2>"$work/stderr" &&
        fail "a full disk is not said" || pass
    grep -q 'rank 1: .*space' "$work/stderr" && [ "$(grep -c '^gnnstream' "$work/stderr")" -eq 1 ] &&
        [ ! -s "$work/stdout" ] && pass || fail "a full disk" "$work/stderr"
else
    note "no file systems of a limited size here: $(cat "$work/stderr")"
fi

# What is refused, in one line, and leaves nothing.
p=("$GNNSTREAM" partition "$work/plain" "$work/none" --method random --parts 4)
refuse 2 'done by one process' mpirun -n 2 "${p[@]}"
refuse 2 'shards 2: are made by as many ranks.* is 1' "${p[@]}" --shards 2
refuse 2 'shards 3: are made by as many ranks.* are 2' mpirun -n 2 "${p[@]}" --shards 3
refuse 1 'give --method lp, random or natural' mpirun -n 2 "${p[@]}" --shards 2 --method fennel
printf '0 1\n1 2\n2 3\n' >"$work/list.txt"
refuse 1 'plain arrays' mpirun -n 2 "$GNNSTREAM" partition "$work/list.txt" "$work/none" --shards 2 --method random
refuse 2 '1 interval.* cannot be dealt to 2 ranks' mpirun -n 2 "$GNNSTREAM" partition "$work/plain" "$work/none" \
    --shards 2 --method random --parts 1
refuse 2 'rank 1 has another input or other options' mpirun -n 1 "${p[@]}" --shards 2 : -n 1 "${p[@]}" --shards 2 \
    --seed 4
run "another graph" "$GNNSTREAM" generate rmat "$work/another" --vertices 6000 --edges 40000 --features 40 --classes 4 \
    --seed 1
refuse 2 'rank 1 has another input or other options' mpirun -n 1 "${p[@]}" --shards 2 : -n 1 "$GNNSTREAM" partition \
    "$work/another" "${p[@]:3}" --shards 2
[ ! -e "$work/none" ] && pass || fail "something is left of what was refused"
refuse 1 'use --force' mpirun -n 2 "$GNNSTREAM" partition "$work/plain" "$work/ranks/out" --shards 2 --method random
run "made again" mpirun -n 2 "$GNNSTREAM" partition "$work/plain" "$work/ranks/out" --shards 2 --method random --force

# One that is killed ends the others, and no shard takes its place; the next finds its way clear.
for after in ${GS_TEST_ALL:+0.1} 0.3; do
    timeout 100 mpirun -n 3 "$GNNSTREAM" partition "$work/large" "$work/killed" --shards 3 --method random --parts 9 \
        --memory 100M >"$work/stdout" 2>"$work/stderr" &
    launcher=$!
    sleep $after
    victim=$(pgrep -f "^$GNNSTREAM partition $work/large $work/killed" | tail -n 1)
    [ -z "$victim" ] || kill -KILL "$victim"
    wait $launcher && { rm -rf "$work/killed"; continue; } # it was over
    [ ! -e "$work/killed/0" ] && [ ! -e "$work/killed/1" ] && [ ! -e "$work/killed/2" ] && pass ||
        fail "a killed rank leaves shards"
    pgrep -f "^$GNNSTREAM partition $work/large" >"$work/stderr" && fail "a rank is left" "$work/stderr" || pass
    run "after a kill" timeout 100 mpirun -n 3 "$GNNSTREAM" partition "$work/large" "$work/killed" --shards 3 \
        --method random --parts 9 --memory 100M
    [ "$(ls "$work/killed")" = $'0\n1\n2' ] && pass || fail "left behind: $(ls "$work/killed")"
    rm -rf "$work/killed"
done
finish
