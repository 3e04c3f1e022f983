# A small stack (ulimit -s): what the program may raise it raises, threads have what they need whatever the limit, and a
# limit that is too small for the first one is refused in a line.
small_store
train=(gnnstream train store --model gat --hidden 16 --epochs 1)
if [ -z "${GS_SANITIZED:-}" ]; then # a sanitizer's frames are larger
    (
        ulimit -s 100
        refused 1 'the stack is limited to 100 KiB, and 256 are needed; raise it: ulimit -s 2048' "${train[@]}"
        OMP_WAIT_POLICY=passive refused 1 'the stack is limited to 100 KiB' "${train[@]}"
    )
    for cores in cpu cpu:2; do
        (
            ulimit -s 256
            "${train[@]}" --device $cores --threads 2 >out
            OMP_WAIT_POLICY=passive "${train[@]}" --device $cores --threads 2 >out
        )
    done
fi
(
    ulimit -S -s 100
    "${train[@]}" --threads 2 >out
)
nothing_left

# SIGABRT ends a run as it ends any program, with a line.
set -m
gnnstream train store --model gcn --epochs 1000000 --metrics m.jsonl >out 2>err &
pid=$!
set +m
for _ in $(seq 600); do
    [ -s m.jsonl ] && break
    sleep 0.1
done
kill -ABRT $pid
status=0
{ wait $pid || status=$?; } 2>said # the shell says so, too
[ $status = 134 ] || die "exit status $status: $(<err)"
grep -q '^gnnstream: aborted (SIGABRT)' err || die "$(<err)"
