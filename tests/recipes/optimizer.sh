# A run learns with the new optimiser, which help knows and a checkpoint keeps.
gnnstream generate sbm graph --vertices 60 --edges 300 --features 4 --classes 2 --seed 1 >made
gnnstream partition graph store --parts 2 --method random --seed 1 >made
train() { gnnstream train store --model gcn --hidden 4 --epochs 2 --lr 0.1 --weight-decay 0.5 "$@" >out; }
loss() { sed -n 's/.*"loss": \([^,]*\),.*/\1/p' "$1"; }
train --optimizer sgd --momentum 0.5 --metrics one.jsonl
train --optimizer lion --metrics two.jsonl --checkpoint state --checkpoint-every 1
[ -n "$(loss two.jsonl)" ]
[ "$(loss one.jsonl)" != "$(loss two.jsonl)" ]
if train --optimizer sgd --resume state 2>refused; then exit 1; fi
grep -q -e '--optimizer sgd: the checkpoint .* is of a run with lion' refused
if train --optimizer rmsprop 2>refused; then exit 1; fi
grep -q -e '--optimizer rmsprop: must be one of adam|adamw|sgd|lion' refused
