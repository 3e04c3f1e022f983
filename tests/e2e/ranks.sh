#!/usr/bin/env bash
# ranks.sh - mpirun -n N trains as cpu:N does on one machine, to the bit; what ranks refuse, and how they end.
. "$(dirname "$0")/lib.sh"

if ! command -v mpirun >"$work/which" || [ ! -e "$RANKS_MODULE" ]; then
    echo "SKIP no mpirun, or built without MPI"
    exit 77
fi
# Open MPI, where it is that one
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
input_of rough
parts=${GS_TEST_ALL:+8} parts=${parts:-5} # each rank plans, which takes longer than its epochs, by the square of these
add_types "$input"
cp -r "$input" "$work/labelled" # with types of edges as labels of pairs
for split in train.900 valid.200; do
    first "${split#*.}" 16 "$work/labelled/${split%.*}_edges.npy" "$input/edges.npy"
    first "${split#*.}" 1 "$work/labelled/${split%.*}_edge_labels.npy" "$input/edge_types.npy"
done
rm "$work/labelled/edge_types.npy"
first 200 16 "$input/valid_edges.npy" "$input/edges.npy"
first 200 1 "$input/valid_edge_types.npy" "$input/edge_types.npy"
run "partition" "$GNNSTREAM" partition "$input" "$work/store" --parts "$parts" --method fennel || finish
store=$work/store

# train NAME OPTIONS...: by the launcher in `ranks`; writes NAME.safetensors, .npy and .jsonl.
train()
{
    local name=$1
    shift
    run "$name: ${ranks[*]} $*" timeout 100 "${ranks[@]}" "$GNNSTREAM" train "$store" --layers 2 --hidden 8 \
        --epochs 2 --host-memory 300M --save "$work/$name.safetensors" --logits "$work/$name.npy" \
        --metrics "$work/$name.jsonl" "$@"
}
# same A B: weights, logits, losses and figures, to the bit.
same()
{
    cmp "$work/$1.safetensors" "$work/$2.safetensors" && cmp "$work/$1.npy" "$work/$2.npy" &&
        cmp <(figures "$1") <(figures "$2") && pass || fail "$1 is not $2"
}
figures()
{
    sed -E 's/"seconds": .*"peak_device_bytes": [0-9]*//; s/"(handed_over|[a-z_]*_[bs][a-z]*)": [-0-9.e]*, //g' \
        "$work/$1.jsonl"
}

# beside N OPTIONS...: N ranks beside cpu:N with the same network; `by` starts them, and `alone` are options of theirs.
by=() alone=()
beside()
{
    local n=$1 switches
    shift
    switches=$(printf ', {"devices": 1}%.0s' $(seq "$n"))
    printf '{"switches": [%s], "network": {"bps": 1e9, "seconds": 2e-5}}' "${switches:2}" >"$work/network"
    ranks=() && train several --device cpu:$n --topology "$work/network" --threads $n "$@" || return
    ranks=("${by[@]}" mpirun -n "$n") && train ranks --topology "$work/network" --threads 1 "$@" "${alone[@]}" &&
        same ranks several
}
# planned N OPTIONS...: bytes over the network of an epoch's passes "forward" and "train", and of its batches of pairs.
planned()
{
    "$GNNSTREAM" plan "$store" --layers 2 --hidden 8 --epochs 2 --host-memory 300M --device cpu:$1 --threads $1 \
        --topology "$work/network" "${@:2}" --json | sed 's/{"from"/\n&/g; s/"pair_bytes"/\n&/' |
        grep '^{"from":"network"\|^"pair_bytes"' | grep -o '"\(forward\|train\)","bytes":[0-9]*\|"pair_bytes":[0-9]*' |
        sed 's/.*://' | total
}
# By a network alone, over which MPICH's UCX now and then waits for ever as it closes
tcp=(env UCX_TLS=tcp UCX_NET_DEVICES=all MPIR_CVAR_NOLOCAL=1) logged=(env LD_PRELOAD="$MPI_LOG_MODULE")
by=("${tcp[@]}")
for round in 1 ${GS_TEST_ALL:+2 3}; do
    beside 2 --model gcn --device-memory 4M --epochs 4
done
by=()
# A sequence goes over the edges in their order, whoever has them.
beside 2 --model sage_lstm --optimizer sgd
ranks=() && train one --model sage_lstm --optimizer sgd &&
    compare "a sequence by ranks" "$work/ranks.npy" "$work/one.npy" 1e-5
# All keep the epoch that is best by an area, which rank 0 finds of all logits. Rows that do not fit on the host go to
# each rank's own file.
beside 2 --model rgcn --dropout 0.5 --norm batch --device-memory 3M --epochs 4 --eval-every 1 --keep-by auc --lr 0.3 \
    --no-cache
for what in written sent; do
    [ "$(column ${what}_bytes "$work/ranks.jsonl" | total)" -gt 0 ] && pass || fail "nothing was $what"
done
# learned rows of vertices, of which each has its own: on the host or in its file
cat >"$work/rows.gnn" <<'END'
layer near(h[in]) -> [out]:
    param W[out, in] ~ glorot, b[out] ~ zeros
    return (h + mean(u.h)) @ W' + b

network(x[in]) -> [out]:
    param emb[vertices, 6] ~ normal(0.3), late[vertices, out]
    return near(relu(near(emb, hidden)), out) + late
END
beside 3 --model "$work/rows.gnn" --no-cache --optimizer sgd --clip-norm 0.1
beside 2 --model "$work/rows.gnn" --epochs 4 --keep last
cp "$work/ranks.safetensors" "$work/whole.safetensors"
# and they predict, from weights of one process
for n in 1 3; do
    launched=(mpirun -n $n) && [ $n -gt 1 ] || launched=()
    "${launched[@]}" "$GNNSTREAM" predict "$work/store" --weights "$work/several.safetensors" \
        --logits "$work/$n.npy" --argmax "$work/argmax$n.npy" --threads 1 --host-memory 300M --device-memory 4M \
        >"$work/stdout" 2>"$work/stderr" &&
        [ ! -s "$work/stderr" ] && pass || fail "predict by $n" "$work/stderr"
done
cmp "$work/argmax1.npy" "$work/argmax3.npy" && compare "a prediction by 3" "$work/3.npy" "$work/1.npy" 1e-5
# Pairs behind layers, by rows of all ranks, and of rows alone: these are learned by one device of one process.
pairs=(--task link --decoder distmult --negatives 5 --batch-size 200)
beside 3 --model "$work/rows.gnn" --clip-norm 0.1 "${pairs[@]}"
store=$work/labelled.store
run "labels of edges" "$GNNSTREAM" partition "$work/labelled" "$store" --parts 3 --method fennel
beside 2 --model sage --norm batch --dropout 0.3 --task edge-classify --batch-size 300 --no-cache --device-memory 3M
beside 4 --model "$work/rows.gnn" --no-cache --epochs 1 # of which one has no rows
of_pairs=(--model gcn --task link --decoder mlp --negatives 6 --batch-size 400 --eval-every 2)
beside 2 "${of_pairs[@]}"
sent=$(column sent_bytes "$work/ranks.jsonl" | head -n 1)
[ "$sent" -eq "$(planned 2 "${of_pairs[@]}")" ] && pass || fail "$sent bytes were sent for pairs, others were planned"
# and they score pairs of a file, and find the best targets of sources
first 90 16 "$work/scored.npy" "$input/edges.npy"
sed "1s/, 2), }/,), }  /" "$work/scored.npy" >"$work/sources.npy" # as many sources: the first half of the numbers
truncate -s $((128 + 90 * 8)) "$work/sources.npy"
for n in 1 2; do
    launched=(mpirun -n $n) && [ $n -gt 1 ] || launched=()
    run "scores by $n" "${launched[@]}" "$GNNSTREAM" predict "$store" --weights "$work/ranks.safetensors" --threads 1 \
        --edges "$work/scored.npy" --scores "$work/scores$n.npy" --host-memory 300M
    run "targets by $n" "${launched[@]}" "$GNNSTREAM" predict "$store" --weights "$work/ranks.safetensors" --threads 1 \
        --edges "$work/sources.npy" --scores "$work/best$n.npy" --top 5 --targets "$work/targets$n.npy" \
        --logits "$work/rows$n.npy" --host-memory 300M
done
sed 's/, 2), }/, 1), }/' "$work/scored.npy" >"$work/wrong.npy"
# other pairs on a machine, of which none would get its own
first 89 16 "$work/others.npy" "$input/edges.npy"
other=("$GNNSTREAM" predict "$store" --weights "$work/ranks.safetensors" --scores "$work/wrong.out" --threads 1 --edges)
refuse 2 'rank 1 has other pairs' mpirun -n 1 "${other[@]}" "$work/scored.npy" : -n 1 "${other[@]}" "$work/others.npy"
refuse 1 'wrong.npy: is i64' mpirun -n 2 "$GNNSTREAM" predict "$store" --weights "$work/ranks.safetensors" \
    --edges "$work/wrong.npy" --scores "$work/wrong.out" --threads 1
compare "scores by 2" "$work/scores2.npy" "$work/scores1.npy" 1e-5
compare "scores of targets by 2" "$work/best2.npy" "$work/best1.npy" 1e-5
cmp "$work/targets1.npy" "$work/targets2.npy" && pass || fail "other targets by 2"
# Batches of neighbours, each of one rank, with an odd one at the end, and of pairs.
drawn=(--sampler neighbor --fanout 4,4)
beside 2 --model gcn --task link --decoder mlp --negatives 6 --batch-size 200 --seeds edges "${drawn[@]}"
store=$work/store
beside 3 --model sage --dropout 0.3 --norm batch --batch-size 43 "${drawn[@]}"
# with learned rows: a batch's come from their ranks, and their gradients go back; checkpoints change nothing
alone=(--checkpoint "$work/often" --checkpoint-every 0.001s)
beside 3 --model "$work/rows.gnn" --clip-norm 0.1 --no-cache --batch-size 43 "${drawn[@]}"
[ "$(column sent_bytes "$work/ranks.jsonl" | total)" -gt 0 ] && pass || fail "no learned rows were sent"
alone=()
ranks=() && train several --model embedding "${pairs[@]}"
for n in 2 3; do
    ranks=(mpirun -n $n) && train ranks --model embedding --threads 1 "${pairs[@]}" && same ranks several
    sent[n]=$(sed '$d' "$work/ranks.jsonl" | column sent_bytes /dev/stdin)
done
[ "${sent[2]}" -gt 0 ] && [ "${sent[3]}" -eq $((2 * ${sent[2]})) ] && pass ||
    fail "a row goes to each other rank: ${sent[2]} bytes of two ranks, ${sent[3]} of three"
[ -z "${GS_TEST_ALL:-}" ] || beside 3 --model sage --dropout 0.3 --device-memory 4M
# as float64 has it
"$REFERENCE" init "$input" "$work/start.safetensors" --model gat --hidden 8
"$REFERENCE" train "$input" --init "$work/start.safetensors" --model gat --hidden 8 --epochs 2 --lr 0.3 \
    --save "$work/exact.safetensors" --logits "$work/exact.npy" --losses "$work/losses"
gat=(--model gat --no-hoist --device-memory 4M)
beside 3 "${gat[@]}" --init "$work/start.safetensors" --optimizer sgd --lr 0.3 --keep last
compare "weights of ranks" "$work/ranks.safetensors" "$work/exact.safetensors" 1e-5
compare "logits of ranks" "$work/ranks.npy" "$work/exact.npy" 1e-5
near "loss of ranks" "$(column loss "$work/ranks.jsonl" | tail -n 1)" "$(tail -n 1 "$work/losses")" 1e-5
# no more goes over the network than is planned
planned=$(planned 3 "${gat[@]}")
sent=$(column sent_bytes "$work/ranks.jsonl" | head -n 1)
[ "$sent" -le "$planned" ] && [ "$sent" -gt $((planned / 2)) ] && pass ||
    fail "$sent bytes were sent, $planned planned"
# and a rank's memory has room for its own device alone
least()
{
    "$GNNSTREAM" plan "$work/store" --model gat --layers 2 --hidden 8 --host-memory 8M --device cpu:3 --threads 3 "$@" \
        2>&1 | sed -n 's/.*at least \([0-9]*\)M.*/\1/p'
}
[ "$(least --topology "$work/network")" -lt "$(least)" ] && pass || fail "a rank has the memory of all"
# Of few rows among many each goes by itself, where blocks would bring all
run "few edges" "$GNNSTREAM" generate rmat "$work/few" --vertices 20000 --edges 40000 --features 4 --classes 4
run "their store" "$GNNSTREAM" partition "$work/few" "$work/sparse" --parts 4 --method random
store=$work/sparse
beside 2 --model sage_max --no-hoist
sent[0]=$(column sent_bytes "$work/ranks.jsonl" | head -n 1)
# and types of messages are made once, whatever the number of epochs
ranks=(mpirun -n 2 "${logged[@]}" MPI_LOG="$work/types")
for epochs in 1 2; do
    train ranks --topology "$work/network" --threads 1 --model sage_max --no-hoist --no-pack --epochs $epochs
done
same ranks several
sent[9]=$(column sent_bytes "$work/ranks.jsonl" | head -n 1)
[ "$(sort -u "$work/types" | wc -l)" -le 2 ] && [ "$(wc -l <"$work/types")" -eq 4 ] && ! grep -q '^0' "$work/types" &&
    pass || fail "types are made in an epoch" "$work/types"
store=$work/store
[ $((2 * ${sent[0]})) -lt "${sent[9]}" ] && pass || fail "rows by themselves: ${sent[0]} bytes, in blocks ${sent[9]}"

# What the store has, each reads for itself, so a model without rows in between sends none.
run "one layer" mpirun -n 2 "$GNNSTREAM" train "$work/store" --model sage --layers 1 --no-hoist --epochs 2 --threads 1 \
    --host-memory 300M --device-memory 4M --metrics "$work/none.jsonl"
[ "$(column sent_bytes "$work/none.jsonl" | total)" -eq 0 ] && pass || fail "rows of the store were sent"

# The network is measured once, though a run opens a session for each program that it compares: one that was planned for
# a network that seemed faster would be taken.
ranks=("${tcp[@]}" mpirun -n 2 "${logged[@]}" MPI_LOG="$work/measured") && train measured --model gat --threads 1
[ "$(cut -d' ' -f2 "$work/measured" | tr '\n' ' ')" = "1 1 " ] && pass ||
    fail "times that ranks measure the network" "$work/measured"

# Which rows and edges count, each finds in its part of the edges: it reads half of what one process reads of them.
run "more edges" "$GNNSTREAM" generate rmat "$work/dense" --vertices 20000 --edges 400000 --features 4 --classes 4
run "their store" "$GNNSTREAM" partition "$work/dense" "$work/edges" --parts 8 --method random
cat >"$work/count" <<'END'
"$@" && sed -n 's/^rchar: //p' /proc/$$/io
END
read_by() # LAUNCHER...: bytes of the process that reads most
{
    "$@" bash "$work/count" "$GNNSTREAM" train "$work/edges" --model gcn --hidden 4 --epochs 1 --threads 1 \
        --host-memory 300M 2>"$work/stderr" | grep -E '^[0-9]+$' | sort -n | tail -n 1
}
alone=$(read_by env) halves=$(read_by mpirun -n 2)
[ "$halves" -gt 0 ] && [ "$halves" -lt $((alone * 7 / 10)) ] && pass || fail "$halves bytes are read, alone $alone"

# A checkpoint of two ranks is gone on from by two, to the bit, and by three.
ranks=(mpirun -n 2)
train first --threads 1 --model "$work/rows.gnn" --keep last --checkpoint "$work/saved" \
    --checkpoint-every 1
for n in 2 3; do
    cp -r "$work/saved" "$work/saved$n"
    mpirun -n $n "$GNNSTREAM" train --checkpoint "$work/saved$n" --resume "$work/saved$n" --epochs 4 \
        --save "$work/on$n.safetensors" >"$work/stdout" 2>"$work/stderr" && pass || fail "resume by $n" "$work/stderr"
    compare "gone on by $n" "$work/on$n.safetensors" "$work/whole.safetensors" 1e-5
done
cmp "$work/on2.safetensors" "$work/whole.safetensors" && pass || fail "gone on from is not the whole"

# begin_long RANKS MODEL OPTIONS...: a run without end, in $launcher, whose last rank is $victim.
begin_long()
{
    rm -f "$work/long.jsonl"
    mpirun -n "$1" "$GNNSTREAM" train "$work/store" --model "$2" --epochs 1000000 --threads 1 "${@:3}" \
        --metrics "$work/long.jsonl" >"$work/stdout" 2>&1 &
    launcher=$!
    for _ in {1..200}; do # until epochs are done
        [ -s "$work/long.jsonl" ] && break
        sleep 0.1
    done
    victim=$(pgrep -f "train $work/store --model .* --epochs 1000000" | tail -n 1)
}
# One that is told to end ends all, and nothing is lost.
begin_long 2 "$work/rows.gnn" --save "$work/ended.safetensors" --checkpoint "$work/ended"
kill -TERM "$victim"
wait $launcher
grep -q 'interrupted in epoch .*; wrote .*ended.safetensors' "$work/stdout" &&
    grep -q '^go on with: mpirun -n 2 .*gnnstream train ' "$work/stdout" && [ -s "$work/ended.safetensors" ] &&
    pass || fail "told to end" "$work/stdout"
# One that is stopped is named (killed_ranks.sh kills some).
begin_long 3 gcn --io-timeout 1
kill -STOP "$victim"
wait $launcher && fail "stopped: the launcher says that all is well" || pass
grep -Eq 'rank [0-2] has not answered for .* set --io-timeout$' "$work/stdout" && pass || fail "stopped" "$work/stdout"
kill -CONT "$victim" 2>"$work/stderr"
pgrep -f "train $work/store" >"$work/stderr" && fail "stopped: a rank is left" "$work/stderr" || pass

# What is refused, in one line.
gcn=("$GNNSTREAM" train "$work/store" --model gcn)
refuse 2 'lr: rank 1 has another than rank 0' mpirun -n 1 "${gcn[@]}" --lr 0.1 : -n 1 "${gcn[@]}" --lr 0.2
refuse 2 'done by one process' mpirun -n 2 "$GNNSTREAM" info "$work/store"
refuse 2 'unknown command nosuch' mpirun -n 2 "$GNNSTREAM" nosuch
# one that is refused by itself holds nobody up, nor does its launcher kill the others before they have spoken
refuse 2 'rank 1: ended with status 2' mpirun -n 1 "${gcn[@]}" : -n 1 "${gcn[@]}" --nosuch
refuse 2 'rank 1 runs another command' mpirun -n 1 "${gcn[@]}" : -n 1 "$GNNSTREAM" partition "$work/graph" \
    "$work/none" --shards 2 --method lp
# a file of weights that is another one on each machine
mkdir "$work/here" "$work/there"
for each in here.1 there.2; do
    run "weights" "${gcn[@]}" --hidden 4 --epochs 1 --seed ${each#*.} --save "$work/${each%.*}/w.safetensors"
done
other=("$GNNSTREAM" predict "$work/store" --weights w.safetensors --logits "$work/none")
refuse 2 'rank 1 begins with other weights' mpirun -wdir "$work/here" -n 1 "${other[@]}" : \
    -wdir "$work/there" -n 1 "${other[@]}"
# so with a model's text, and with what rank 0 alone writes
other=("$GNNSTREAM" train "$work/store" --model m.gnn --hidden 4 --epochs 1)
sed 's/mean/sum/' "$work/rows.gnn" >"$work/there/m.gnn"
cp "$work/rows.gnn" "$work/here/m.gnn"
refuse 2 'model: rank 1 has another' mpirun -wdir "$work/here" -n 1 "${other[@]}" : \
    -wdir "$work/there" -n 1 "${other[@]}"
refuse 2 'save: rank 1 has another' mpirun -n 1 "${gcn[@]}" : -n 1 "${gcn[@]}" --save "$work/none"
# one whose machine has less memory, here a cgroup (where one can be made: version 1, as root), is not killed for it
group=/sys/fs/cgroup/memory/gnnstream.$$
if [ -z "${GS_SANITIZED:-}" ] && mkdir "$group" 2>"$work/stderr"; then
    trap 'rmdir "$group"; cleanup' EXIT
    echo 20M >"$group/memory.limit_in_bytes"
    refuse 1 'host-memory .* is too small' mpirun -n 1 "${gcn[@]}" : \
        -n 1 bash -c "echo \$BASHPID >$group/cgroup.procs; exec ${gcn[*]}"
fi
refuse 2 '17 ranks: 16 are the most' mpirun -n 17 "${gcn[@]}"
# While one never comes a signal ends the one that waits for it: no thread of MPI's takes signals.
mpirun -n 1 "${gcn[@]}" : -n 1 sleep 20 >"$work/stdout" 2>&1 &
launcher=$!
for _ in {1..100}; do # until it waits, and its first thread has SIGTERM blocked
    waiting=$(pgrep -f "^$GNNSTREAM train $work/store --model gcn\$") &&
        grep -q '^SigBlk:.*[4-7c-f]...$' "/proc/$waiting/status" && break
    sleep 0.1
done
kill -TERM "$waiting"
for _ in {1..50}; do
    kill -0 "$waiting" 2>"$work/stderr" || break
    sleep 0.1
done
kill -KILL "$waiting" 2>"$work/stderr" && fail "a signal does not end a rank that waits for another" || pass
kill "$launcher" 2>"$work/stderr"
wait $launcher
batches=(--sampler neighbor --fanout 3,3 --batch-size 30)
refuse 2 'host-memory: is missing' mpirun -n 2 "${gcn[@]}" "${batches[@]}"
batches+=(--host-memory 300M)
# without the module, one line of all
mkdir "$work/tools" "$work/src"
cp "$GNNSTREAM" "$work/tools"
cp "${RANKS_MODULE%/*}/libgnnstream.so.0" "$work/src"
refuse 1 'no MPI .*libgnnstream_mpi.so: cannot open' mpirun -n 2 "$work/tools/gnnstream" train "$work/store" --model gcn
# one that cannot be loaded, as where no MPI is installed
echo none >"$work/src/${RANKS_MODULE##*/}"
refuse 1 'no MPI .*libgnnstream_mpi.so: ' mpirun -n 2 "$work/tools/gnnstream" train "$work/store" --model gcn
finish
