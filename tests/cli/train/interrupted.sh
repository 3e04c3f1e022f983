# Ctrl-C: status 1, one line, no spill folder; the metrics are whole lines, and the weights and logits that were asked
# for are those of the line. Twice: ended by the signal, with a line.
small_store

# The line names both files, and the logits are of the weights.
wrote_what_it_says()
{
    grep -Eq 'interrupted in [^;]*; wrote w.safetensors and l.npy of the (best|last) weights, after epoch [0-9]+$' \
        err ||
        die "$(<err)"
    gnnstream predict store --weights w.safetensors --logits p.npy >predicted
    cmp l.npy p.npy || die "other logits than the weights': $(<err)"
    grep -Fq "trained for $(sed -n 's/.*after epoch //p' err) epochs" predicted || die "$(<err) $(<predicted)"
    rm -f w.safetensors l.npy p.npy
}

for signal in INT TERM; do
    for moment in early epochs; do
        rm -f m.jsonl
        # A background child of a script ignores SIGINT; with job control it does not.
        set -m
        gnnstream train store --model gcn --epochs 1000000 --no-cache --save w.safetensors --logits l.npy \
            --metrics m.jsonl >out 2>err &
        pid=$!
        set +m
        if [ $moment = early ]; then
            sleep 0.1
        else
            for _ in $(seq 600); do
                [ -s m.jsonl ] && break
                sleep 0.1
            done
        fi
        kill -$signal $pid
        status=0
        wait $pid || status=$?
        # so early that no handler stood yet: the signal itself ended it
        [ $status -gt 128 ] && [ $moment = early ] && continue
        [ $status = 1 ] || die "exit status $status: $(<err)"
        [ "$(wc -l <err)" = 1 ] && grep -q 'gnnstream train: interrupted' err || die "$(<err)"
        [ ! -s out ] || die 'words on stdout'
        if [ -s m.jsonl ]; then
            wrote_what_it_says
        else
            [ ! -e w.safetensors ] && [ ! -e l.npy ] || die 'a result of no epoch'
        fi
        [ ! -s m.jsonl ] || [ "$(tail -c 2 m.jsonl)" = '}' ] || die "metrics end in: $(tail -n 1 m.jsonl)"
        nothing_left
    done
done

# start_epochs OPTIONS...: trains in the background ($pid) and has begun its epochs when it returns.
start_epochs()
{
    rm -f m.jsonl
    set -m
    gnnstream train store --model gcn --epochs 1000000 --save w.safetensors --metrics m.jsonl "$@" >out 2>err &
    pid=$!
    set +m
    for _ in $(seq 600); do
        [ -s m.jsonl ] && break
        sleep 0.1
    done
}

# --keep last; and with nothing to write the line ends there
for options in '--keep last --device cpu:2 --dropout 0.5' '--keep best --dropout 0.5 --eval-every 1'; do
    # shellcheck disable=SC2086
    start_epochs --logits l.npy $options
    kill -INT $pid
    status=0
    wait $pid || status=$?
    [ $status = 1 ] && grep -q "of the ${options:7:4} weights" err || [ "${options:7:4}" = best ] ||
        die "exit status $status: $(<err)"
    wrote_what_it_says
    nothing_left
done

start_epochs --no-cache
kill -STOP $pid # so that both are there before it goes on
kill -INT $pid
kill -TERM $pid
kill -CONT $pid
status=0
wait $pid || status=$?
[ $status -gt 128 ] && [ "$(wc -l <err)" = 1 ] && grep -q 'interrupted again' err ||
    die "twice: exit status $status: $(<err)"
[ ! -e w.safetensors ] || die 'a result was left'
# What it could not remove goes with the next run that needs such a folder.
gnnstream train store --model gcn --epochs 1 --no-cache >out 2>err || die "$(<err)"
nothing_left

# timeout(1) sends its signal to the program and to its group: that is one.
start_epochs --no-cache
kill -TERM $pid
kill -TERM $pid
status=0
wait $pid || status=$?
[ $status = 1 ] && [ "$(wc -l <err)" = 1 ] && grep -q 'gnnstream train: interrupted' err ||
    die "the same at once: exit status $status: $(<err)"
nothing_left

# In products the stack pointer may stand in the middle of a heap buffer (oneDNN's generated code): no thread that works
# may take a signal.
start_epochs --hidden 256
for status_file in /proc/$pid/task/*/status; do
    [ "$(sed -n 's/^Name:\t//p' "$status_file")" != signals ] || continue
    blocked=$(sed -n 's/^SigBlk:\t//p' "$status_file")
    [ $((16#$blocked & 16#4002)) = $((16#4002)) ] ||
        die "a thread takes SIGINT or SIGTERM: $(grep -E 'Name|SigBlk' "$status_file")"
done
kill -INT $pid
status=0
wait $pid || status=$?
[ $status = 1 ] || die "exit status $status: $(<err)"
nothing_left
