# Ctrl-C in the midst of an epoch on batches: what was asked for is written of the weights after the last step, and a
# run that goes on from the checkpoint ends with the bits of one that was not stopped, metrics included.
small_store

# figures FILE: of each line what does not depend on time.
figures() { sed 's/"seconds".*//' "$1"; }

# stop_within OPTION...: until a run was stopped within its second epoch.
stop_within()
{
    local status
    for more in 0 02 04 06 08 1 12 15 2 3 4 5; do
        rm -rf checkpoints m.jsonl w.safetensors
        set -m
        gnnstream train "$@" --checkpoint checkpoints --save w.safetensors --metrics m.jsonl >out 2>err &
        pid=$!
        set +m
        for _ in $(seq 3000); do
            [ -s m.jsonl ] && break
            sleep 0.01
        done
        sleep 0.$more
        kill -INT $pid 2>/dev/null || true # it may be done
        status=0
        wait $pid || status=$?
        [ "$status" = 1 ] && grep -q 'batches of the next; wrote' err && return
    done
    die "never stopped within an epoch: $(<err)"
}

tables=$(dirname "${BASH_SOURCE[0]}")/../../e2e/texts/tables.gnn
ways=('--model sage --keep last --eval-every 0 --dropout 0.3 --shuffle adaptive'
    '--model sage --schedule plateau --schedule-every 1 --norm batch'
    "--model $tables --batches-per-step 3 --device cpu:2 --no-cache")
[ -n "${GS_TEST_ALL:-}" ] || unset 'ways[1]' 'ways[2]' # e2e/tables goes on with rows, devices and steps of batches
for options in "${ways[@]}"; do
    # shellcheck disable=SC2206 # several words
    train=(store --sampler neighbor --batch-size 4 --fanout 0,0,0 --layers 3 --epochs 2
        --hidden 400 $options) # an epoch that a fast machine takes a tenth of a second for
    gnnstream train "${train[@]}" --save whole.safetensors --metrics whole.jsonl >out 2>err
    stop_within "${train[@]}"
    how_far='after epoch 1 and [0-9]+ of 38 batches of the next$'
    [ "${options#*--keep last}" = "$options" ] ||
        grep -Eq "wrote w.safetensors of the last weights, $how_far" err || die "$(<err)"
    [ -s w.safetensors ] || die 'no weights'
    command=$(sed -n 's/^go on with: //p' err)
    # shellcheck disable=SC2086 # the words of a command
    $command >out 2>err || die "$command: $(<err)"
    grep -Eq 'goes on after epoch 1 and [0-9]+ batches of the next$' err || die "$(<err)"
    cmp w.safetensors whole.safetensors || die 'other weights'
    figures m.jsonl | cmp - <(figures whole.jsonl) || die "$(diff <(figures m.jsonl) <(figures whole.jsonl))"
    nothing_left
done
