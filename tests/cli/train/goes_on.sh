# --checkpoint, Ctrl-C, and the command line that is printed: it ends with what an uninterrupted run leaves. A hangup
# and SIGTERM do the same; with nohup(1) a hangup does nothing.
small_store
same='--model gcn --dropout 0.3 --epochs 400 --threads 1 --host-memory 256M --no-cache'
# shellcheck disable=SC2086 # a list of words
gnnstream train store $same --save whole.safetensors --metrics whole.jsonl >out

# interrupt SIGNAL: a run that gets it once an epoch is done, also where these tests run under nohup; its exit status
# is in $status
interrupt()
{
    rm -rf "kept here" parts.jsonl parts.safetensors
    set -m
    # shellcheck disable=SC2086
    env --default-signal=HUP gnnstream train store $same --checkpoint "kept here" --checkpoint-every 50 \
        --save parts.safetensors --metrics parts.jsonl >out 2>err &
    pid=$!
    set +m
    for _ in $(seq 3000); do
        [ ! -s parts.jsonl ] || break
        sleep 0.01
    done
    kill -$1 $pid 2>/dev/null || true # it may be done
    status=0
    wait $pid || status=$?
}

signals=HUP # the one of three that a shell may have turned off; all do the same
[ -z "${GS_TEST_ALL:-}" ] || signals='INT HUP TERM'
for signal in $signals; do
    status=0
    for _ in 1 2 3 4 5; do # again where it was done before the signal came
        interrupt $signal
        [ $status = 0 ] || break
    done
    [ $status = 1 ] || die "$signal: exit status $status: $(<err)"
    [ "$(wc -l <err)" = 2 ] && grep -q '^gnnstream train: interrupted .*; kept here has its state after epoch' err ||
        die "$signal: $(<err)"
    grep -q "^go on with: gnnstream train store .* --resume 'kept here'\$" err || die "$signal: $(<err)"
    grep -q '; wrote parts.safetensors of the [a-z]* weights, after epoch' err || die "$signal: $(<err)"
    rm parts.safetensors
    for weights in 'kept here'/epoch-*/{model,best}.safetensors; do # say what they are of
        [ ! -e "$weights" ] || gnnstream predict store --weights "$weights" --argmax "$signal.npy" >predicted
    done
    [ -s "$signal.npy" ] && grep -q 'trained for [0-9]* epochs on store, this store' predicted || die "$(<predicted)"
    bash -c "$(sed -n 's/^go on with: //p' err)" >out 2>err || die "$signal: $(<err)"
    [ "$(wc -l <err)" = 1 ] && grep -q '^gnnstream train: goes on after epoch [0-9]*$' err || die "$signal: $(<err)"
    cmp whole.safetensors parts.safetensors || die "$signal: other weights"
    [ "$(sed 's/, "seconds".*//' whole.jsonl)" = "$(sed 's/, "seconds".*//' parts.jsonl)" ] ||
        die "$signal: other metrics"
    [ "$(ls 'kept here')" = 'epoch-0000000350
epoch-0000000400
metrics.jsonl' ] || die "$signal: $(ls 'kept here')"
done
# A run whose patience is over has no epoch left.
patient='--model gcn --epochs 400 --patience 3 --metrics patient.jsonl'
# shellcheck disable=SC2086
gnnstream train store $patient --checkpoint patient --checkpoint-every 1 >out
epochs=$(wc -l <patient.jsonl)
[ "$epochs" -lt 400 ] || die 'patience was never over'
# shellcheck disable=SC2086
gnnstream train store $patient --resume patient >out 2>err || die "$(<err)"
[ "$(wc -l <patient.jsonl)" = "$epochs" ] || die "$epochs epochs, then $(wc -l <patient.jsonl)"
[ "$(<err)" = "gnnstream train: goes on after epoch $epochs; its --patience was over then, so nothing is trained" ] ||
    die "$(<err)"
# Nor one that is to have fewer epochs than it had; nothing of it is lost.
kept=$(find patient patient.jsonl -type f -exec md5sum {} + | sort)
# shellcheck disable=SC2086
gnnstream train store ${patient/400/2} --resume patient >out 2>err || die "$(<err)"
[ "$(<err)" = "gnnstream train: goes on after epoch $epochs; of --epochs 2 none is left, so nothing is trained" ] ||
    die "$(<err)"
[ "$kept" = "$(find patient patient.jsonl -type f -exec md5sum {} + | sort)" ] || die 'files of fewer epochs'
# Options in the words of the command line.
# shellcheck disable=SC2086
refused 2 '--hidden 32: the checkpoint kept here/epoch-0000000400 is of a run with 64' \
    gnnstream train store $same --hidden 32 --resume 'kept here'
refused 2 '--checkpoint-every 3x: must be a number of epochs' \
    gnnstream train store --model gcn --checkpoint c --checkpoint-every 3x
refused 2 '--checkpoint-every 3: of which checkpoints? Give --checkpoint a folder' \
    gnnstream train store --model gcn --checkpoint-every 3
# shellcheck disable=SC2086
refused 1 '--checkpoint kept here: has a checkpoint of another run, after epoch 400; go on from it with --resume' \
    gnnstream train store $same --checkpoint 'kept here'
# A step over the whole graph is the same on any number of devices: a run goes on with fewer or more, up to rounding.
done=0
for devices in cpu:2 cpu cpu:3; do
    how=--checkpoint
    [ $done = 0 ] || how=--resume
    gnnstream train store --model gcn --threads 3 --device $devices --epochs $((done + 2)) $how spread \
        --checkpoint-every 1 >out 2>err || die "$devices: $(<err)"
    [ $done = 0 ] || grep -q "goes on after epoch $done" err || die "$devices: $(<err)"
    done=$((done + 2))
    [ -d spread/epoch-000000000$done ] || die "$devices: $(ls spread)"
done
