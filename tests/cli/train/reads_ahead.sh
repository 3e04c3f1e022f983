# Where features do not fit, reads of the next batch are under way while one is trained, as far as the budget goes: with
# a ring, with the least memory that is named, where nothing goes ahead, and on two devices weights are the same as with
# all features in memory, and a run that was stopped in between goes on to them.
[ -z "${GS_SANITIZED:-}" ] || exit 0 # whose memory is the program's: batches/read_ring and rows run with it
gnnstream generate sbm graph --vertices 20000 --edges 200000 --features 512 --classes 4 >made
gnnstream partition graph store --parts 4 --method natural >made
options=(store --model sage --hidden 4 --sampler neighbor --batch-size 300 --fanout 4,3 --epochs 3 --eval-every 0)
# least OPTIONS: the host memory that a refusal names, in MiB
least()
{
    gnnstream plan "$@" --host-memory 4K >out 2>err && die 'nothing is too little'
    sed -n 's/.*needs at least \([0-9]*\)M.*/\1/p' err
}
ring() { gnnstream plan "$@" | sed -n 's/^ring of reads ahead *//p'; }
little=$(least "${options[@]}")
enough=$((little + 28))M
little=${little}M
[ -z "$(ring "${options[@]}" --host-memory "$little")" ] || die "a ring with $little"
[ -n "$(ring "${options[@]}" --host-memory "$enough")" ] || die "no ring with $enough"
gnnstream train "${options[@]}" --save memory.safetensors >out 2>err || die "$(<err)"
grep -q ' read 0 B' out || die "something was read: $(<out)"
same() { cmp <(tensors memory.safetensors) <(tensors w.safetensors) || die "other weights: $1"; }
for host in "$little" "$enough"; do
    gnnstream train "${options[@]}" --save w.safetensors --host-memory "$host" >out 2>err || die "$host: $(<err)"
    grep -q ' read 0 B' out && die "nothing was read with $host: $(<out)"
    same "$host"
done
long=("${options[@]}" --epochs 20)
gnnstream train "${long[@]}" --save memory.safetensors >out 2>err || die "$(<err)"
gnnstream train "${long[@]}" --checkpoint c --host-memory "$enough" --metrics m.jsonl >out 2>err &
pid=$!
for _ in $(seq 600); do
    [ -s m.jsonl ] && break
    sleep 0.01
done
kill -TERM $pid
status=0
wait $pid || status=$?
[ $status = 0 ] || [[ $(<err) == *interrupted* ]] || die "status $status: $(<err)"
gnnstream train "${long[@]}" --resume c --save w.safetensors --host-memory "$enough" >out 2>err || die "$(<err)"
same 'stopped'
two=("${options[@]}" --device cpu:2 --batches-per-step 2)
gnnstream train "${two[@]}" --save memory.safetensors >out 2>err || die "$(<err)"
enough=$(($(least "${two[@]}") + 28))M
[ -n "$(ring "${two[@]}" --host-memory "$enough")" ] || die "no ring with $enough on two devices"
gnnstream train "${two[@]}" --save w.safetensors --host-memory "$enough" >out 2>err || die "$(<err)"
grep -q ' read 0 B' out && die "nothing was read on two devices: $(<out)"
same 'two devices'
