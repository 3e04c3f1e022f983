#!/usr/bin/env bash
# killed_training.sh [KILLS] [KIND...] - training runs that are killed KILLS times (default: 2) at random moments and go
# on from their checkpoints have the weights and metrics of one that was never interrupted, to the bit. Kinds: "whole"
# (the whole graph, arrays that spill), and on batches neighbor, cluster, saint, link (pairs of vertices) and tables
# (learned rows of vertices); default: whole, and one of the others by chance. All but link have dropout, none keeps its
# features in memory; every epoch writes a checkpoint, so many a kill hits one. Says how many were killed, and where.
set -eu
kills=${1:-2}
[ $# -eq 0 ] || shift
: "${GNNSTREAM:?}"
texts=$(cd "$(dirname "$0")/texts" && pwd)
work=$(mktemp -d "$PWD/gs_killed.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
export XDG_CACHE_HOME=$work
RANDOM=${SEED:-$$}

die() { echo "killed_training: $*"; exit 1; }

"$GNNSTREAM" generate sbm graph --vertices 3000 --edges 30000 --features 16 --classes 4 --seed 1 >made
"$GNNSTREAM" partition graph store --parts 4 --method random --seed 1 >made

# options KIND: what it is trained with, in `train`
options()
{
    local -a of
    case $1 in
    whole) of=(--model gin --epochs 60 --dropout 0.4 --host-memory 256M) ;;
    neighbor) of=(--model sage --epochs 40 --dropout 0.4 --sampler neighbor --batch-size 300 --fanout 5,5) ;;
    cluster) of=(--model gcn --epochs 40 --dropout 0.4 --sampler cluster --batch-size 1) ;;
    saint) of=(--model gin --epochs 15 --dropout 0.4 --sampler saint-walk --batch-size 300) ;;
    link) of=(--model sage --epochs 10 --task link --hidden 8 --negatives 4 --sampler neighbor --seeds edges
        --batch-size 5000 --fanout 5,5) ;;
    tables) of=(--model "$texts/tables.gnn" --layers 1 --epochs 40 --sampler neighbor --batch-size 300 --fanout 5) ;;
    *) die "no such kind: $1" ;;
    esac
    train=("$GNNSTREAM" train store --no-cache --threads 1 "${of[@]}")
}

numbers() { sed 's/, "seconds".*//' "$1"; } # of a line, what does not depend on the clock

# try KIND: KILLS kills of it
try()
{
    local killed=0 runs=0 damaged=0 writing=0 how pid status began took
    options "$1"
    began=$(date +%s%N)
    rm -f whole.jsonl
    "${train[@]}" --save whole.safetensors --metrics whole.jsonl >whole.out 2>whole.err ||
        die "$1: $(<whole.err)"
    took=$((($(date +%s%N) - began) / 1000000)) # milliseconds
    while [ $killed -lt "$kills" ]; do
        rm -rf kept parts.jsonl parts.safetensors
        while true; do
            how='--checkpoint kept'
            ! ls -d kept/epoch-* >list 2>&1 || how='--resume kept'
            # shellcheck disable=SC2086 # an option and its value
            "${train[@]}" $how --checkpoint-every 1 --save parts.safetensors --metrics parts.jsonl >out 2>err &
            pid=$!
            if [ $killed -lt "$kills" ]; then
                sleep "$(printf '0.%03d' $((RANDOM % (took < 900 ? took + 50 : 950))))"
                if kill -KILL $pid 2>kill.err; then
                    killed=$((killed + 1))
                fi
            fi
            status=0
            wait $pid 2>wait.err || status=$?
            ! grep -q 'damaged' err || damaged=$((damaged + 1))
            ! ls -d kept/.making-* >list 2>&1 || writing=$((writing + 1))
            [ $status = 137 ] && continue
            [ $status = 0 ] || die "$1: exit status $status after $killed kills: $(<err)"
            break
        done
        runs=$((runs + 1))
        ! grep -q 'rounding' err || die "$1: not the same plan: $(<err)"
        cmp whole.safetensors parts.safetensors || die "$1: other weights after $killed kills"
        [ "$(numbers whole.jsonl)" = "$(numbers parts.jsonl)" ] || die "$1: other metrics after $killed kills"
    done
    echo "$1: $killed kills, $writing in the midst of a checkpoint, $damaged damaged checkpoints; $runs runs ended," \
        "each with the weights and metrics of the run that was not interrupted"
}

batches=(neighbor cluster saint link tables)
kinds=("$@")
[ $# -gt 0 ] || kinds=("${batches[RANDOM % 5]}" whole)
for kind in "${kinds[@]}"; do
    try "$kind"
done
[ "$kind" = whole ] || exit 0

# A store that is removed while a run trains on it costs the run nothing: all that it reads is open.
cp -r store aside
for try in 1 2 3 4 5; do
    rm -rf parts.jsonl store
    cp -r aside store
    "${train[@]}" --save parts.safetensors --metrics parts.jsonl >out 2>err &
    pid=$!
    until [ -s parts.jsonl ]; do kill -0 $pid 2>kill.err || break; sleep 0.01; done
    rm -r store
    then=$(wc -l <parts.jsonl)
    wait $pid || die "exit status $? without its store after $then epochs: $(<err)"
    cmp whole.safetensors parts.safetensors || die "other weights where the store was removed"
    [ "$then" -ge 60 ] || break # else it had ended before
    [ $try -lt 5 ] || die "no run was under way when its store was removed"
done
echo "a store was removed after $then epochs"
