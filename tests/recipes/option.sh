# The new option is in help, manual and completions, has its default and its range, takes a value from the command line
# and from a file, and is one that a checkpoint's run goes on with alone.
gnnstream generate sbm graph --vertices 60 --edges 300 --features 4 --classes 2 --seed 1 >made
gnnstream partition graph store --parts 2 --method random --seed 1 >made
train() { gnnstream train store --model gcn --hidden 4 --epochs 3 "$@"; }
loss() { sed -n 's/.*"loss": \([^,]*\),.*/\1/p' "$1"; }
train --lr 0.1 --metrics one.jsonl >out
train --lr 0.2 --lr-scale 0.5 --metrics two.jsonl --checkpoint state --checkpoint-every 1 >out
printf 'lr: 0.2\nlr-scale: 0.5\n' >run.yaml
train --config run.yaml --metrics three.jsonl >out
[ -n "$(loss one.jsonl)" ]
[ "$(loss one.jsonl)" = "$(loss two.jsonl)" ]
[ "$(loss one.jsonl)" = "$(loss three.jsonl)" ]
train --lr 0.2 --metrics four.jsonl >out
[ "$(loss one.jsonl)" != "$(loss four.jsonl)" ]
if train --lr-scale 0 2>refused; then exit 1; fi
grep -q -e '--lr-scale 0: must be a number above 0' refused
if train --lr 0.2 --lr-scale 2 --resume state 2>refused; then exit 1; fi
grep -q -e '--lr-scale 2: the checkpoint .* is of a run with 0.5' refused
gnnstream help --all train | grep -e '--lr-scale X  *what --lr is multiplied by (default: 1)' >found
gnnstream help --man train | grep 'lr.-scale' >found
gnnstream help --completion bash | grep "'train --lr-scale'" >found
