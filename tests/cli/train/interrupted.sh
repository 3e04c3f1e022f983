# Ctrl-C: status 1, one line, no results, no spill folder; the metrics are whole lines. Twice: ended by the signal, with a line.
small_store
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
        [ ! -s out ] && [ ! -e w.safetensors ] && [ ! -e l.npy ] || die 'a result was left'
        [ ! -s m.jsonl ] || [ "$(tail -c 2 m.jsonl)" = '}' ] || die "metrics end in: $(tail -n 1 m.jsonl)"
        nothing_left
    done
done

rm -f m.jsonl
set -m
gnnstream train store --model gcn --epochs 1000000 --no-cache --save w.safetensors --metrics m.jsonl >out 2>err &
pid=$!
set +m
for _ in $(seq 600); do
    [ -s m.jsonl ] && break
    sleep 0.1
done
kill -STOP $pid # so that both are there before it goes on
kill -INT $pid
kill -TERM $pid
kill -CONT $pid
status=0
wait $pid || status=$?
[ $status -gt 128 ] && [ "$(wc -l <err)" = 1 ] && grep -q 'interrupted again' err || die "twice: exit status $status: $(<err)"
[ ! -e w.safetensors ] || die 'a result was left'
