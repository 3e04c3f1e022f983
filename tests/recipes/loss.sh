# A run learns numbers with the new loss, which help knows, a checkpoint keeps, and labels of classes refuse.
gnnstream generate sbm graph --vertices 60 --edges 300 --features 4 --classes 2 --seed 1 >made
gnnstream partition graph store --parts 2 --method random --seed 1 >made
train() { gnnstream train store --model gcn --hidden 4 --epochs 2 --lr 0.1 --task regress "$@"; }
loss() { sed -n 's/.*"loss": \([^,]*\),.*/\1/p' "$1"; }
train --metrics one.jsonl >out
train --loss log_cosh --metrics two.jsonl --checkpoint state --checkpoint-every 1 >out
[ -n "$(loss two.jsonl)" ]
[ "$(loss one.jsonl)" != "$(loss two.jsonl)" ]
if train --loss huber --resume state 2>refused; then exit 1; fi
grep -q -e '--loss huber: the checkpoint .* is of a run with log_cosh' refused
if train --task classify --loss log_cosh 2>refused; then exit 1; fi
grep -q -e '--loss log_cosh: is of the task regress' refused
gnnstream help --all train | grep -e 'huber|log_cosh' >found
