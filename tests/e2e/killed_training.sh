#!/usr/bin/env bash
# killed_training.sh [KILLS] - a training run that is killed KILLS times (default: 4) at random moments and goes on from
# its checkpoints has the weights and metrics of one that was never interrupted, to the bit. Dropout, the whole graph,
# arrays that spill; every epoch writes a checkpoint, so many a kill hits one. Says how many were killed, and where.
set -eu
kills=${1:-4}
: "${GNNSTREAM:?}"
work=$(mktemp -d "$PWD/gs_killed.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
export XDG_CACHE_HOME=$work
RANDOM=${SEED:-$$}

die() { echo "killed_training: $*"; exit 1; }

"$GNNSTREAM" generate sbm graph --vertices 3000 --edges 30000 --features 16 --classes 4 --seed 1 >made
"$GNNSTREAM" partition graph store --parts 4 --method random --seed 1 >made
train=("$GNNSTREAM" train store --model gin --dropout 0.4 --epochs 60 --no-cache --threads 1 --host-memory 256M)

began=$(date +%s%N)
"${train[@]}" --save whole.safetensors --metrics whole.jsonl >whole.out
took=$((($(date +%s%N) - began) / 1000000)) # milliseconds
numbers() { sed 's/, "seconds".*//' "$1"; } # of a line, what does not depend on the clock

killed=0 runs=0 damaged=0 writing=0 before=0
while [ $killed -lt "$kills" ]; do
    rm -rf kept parts.jsonl parts.safetensors
    while true; do
        how='--checkpoint kept'
        ls -d kept/epoch-* >list 2>&1 && how='--resume kept' || before=$((before + 1))
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
        [ $status = 0 ] || die "exit status $status after $killed kills: $(<err)"
        break
    done
    runs=$((runs + 1))
    ! grep -q 'rounding' err || die "not the same plan: $(<err)"
    cmp whole.safetensors parts.safetensors || die "other weights after $killed kills"
    [ "$(numbers whole.jsonl)" = "$(numbers parts.jsonl)" ] || die "other metrics after $killed kills"
done
echo "$killed kills, $writing in the midst of a checkpoint, $damaged damaged checkpoints; $runs runs ended," \
    "each with the weights and metrics of the run that was not interrupted"

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
