# Help of every command exits 0, and names every option of the contract.
has()
{
    local command=$1 option
    shift
    # shellcheck disable=SC2086 # a command may be two words
    gnnstream help --all $command >help
    # shellcheck disable=SC2086
    gnnstream $command --help-all >help2
    cmp help help2 || die "help --all $command and $command --help-all differ"
    # shellcheck disable=SC2086
    gnnstream $command --help >short
    # shellcheck disable=SC2086
    gnnstream help $command | cmp - short || die "help $command and $command --help differ"
    # the short help is of lines of the long one, and says how many it leaves out
    ! grep -vxF -f help short | grep -Evq "^[0-9]+ more options: gnnstream $command --help-all\$" ||
        die "the short help of $command is not of the long one"
    local left=$(($(grep -c '^  --' help) - $(grep -c '^  --' short)))
    if [ $left -ne 0 ]; then
        grep -qx "$left more options: .*" short || die "the short help of $command leaves out $left options"
    fi
    grep -q "^Usage: gnnstream $command" help || die "no usage in the help of $command"
    for option; do
        grep -Eq -e "(^| )$option( |\$)" help || die "no $option in the help of $command"
    done
    # options, what continues their lines, and titles; what stands above the first title is free
    ! sed '1,/:$/d' help | grep -Eqv '^(  -.*|  {20}.*|[A-Z].*:|)$' ||
        die "a line of the help of $command is out of place"
    ! grep -Eq '.{130}' help || die "a line of the help of $command is too long"
}
gnnstream help >overview
for command in generate partition info verify plan train predict report 'bench limits' 'bench train'; do
    grep -q "^  $command " overview || die "no $command in the overview"
done
! grep -Eq ' (and|or|of|the|a)$' overview || die "a summary of the overview is cut off"
model='--model --layers --hidden --heads --act --dropout --input-dropout'
machine='--device --matmul --device-memory --host-memory --threads --spill --spill-type --gather-type
--disk-to-device --no-cache --no-selective --no-swap --no-prune --no-pipeline --no-verify --no-move
--no-fuse --no-batch --no-hoist --products --topology --no-chain --no-pack --no-spread --no-draw --no-width
--io-timeout'
learning='--epochs --optimizer --lr --weight-decay --momentum --clip-norm --schedule --schedule-every --schedule-by
--warmup --keep --patience --seed --init --eval-every'
results='--save --logits --metrics --trace'
checkpoints='--checkpoint --checkpoint-every --resume'
has generate --vertices --edges --features --classes --seed
has partition --format --parts --method --memory --feature-type --random-features --undirected --seed --force
has info --json
has verify
has model --dot --layers --hidden --heads --features --edge-types --no-move --no-fuse
# shellcheck disable=SC2086 # lists of words
{
    has plan --json --cluster --shape $model $machine $learning $results $checkpoints
    has train --json $model $machine $learning $results $checkpoints
    has predict --weights --logits --json $model $machine
    has 'bench train' --json $model $machine $learning $results
}
has report -o
has 'bench limits' --dir --json
gnnstream help bench >help
gnnstream bench --help | cmp - help || die 'bench --help is not help bench'
# The defaults are the contract's.
gnnstream help --all train >help
for default in 'layers N .*(default: 2)' 'hidden N .*(default: 64)' 'heads N .*(default: 1)' \
    'act NAME .*(default: relu)' \
    'epochs N .*(default: 100)' 'optimizer adam.adamw.sgd .*(default: adam)' 'lr X .*(default: 0.01)' \
    'weight-decay X .*(default: 0)' 'dropout P .*(default: 0)' 'seed S .*(default: 0)' \
    'device cpu.*cuda.* (default: cpu)'; do
    grep -q -e "--$default" help || die "no such default in the help of train: $default"
done
[ "$(gnnstream --version)" = "$(gnnstream help | sed -n '1s/^\(gnnstream [0-9.]*\):.*/\1/p')" ] || die 'two versions'
# What most runs need is short, and all of it is there.
gnnstream help train >short
[ "$(wc -l <short)" -le 45 ] || die 'the short help of train is longer than a screen'
for option in --model --epochs --lr --host-memory --save --resume; do
    grep -q -e "^  $option " short || die "no $option in the short help of train"
done
# Scripts of the folder tools say what they are, and begin nothing.
root=${BASH_SOURCE[0]%/tests/*}
for script in check fuzz lint package quickstart setup site tsan; do
    timeout 5 "$root/tools/$script" --help >help || die "tools/$script --help does something else"
    grep -q "[a-z] [a-z]" help || die "tools/$script --help says nothing"
done
refuses() { ! timeout 5 "$root/tools/$1" --hepl 2>stderr && grep -q "takes no arguments.*: --hepl" stderr; }
refuses setup && refuses quickstart || die "an argument that nothing reads is taken"
