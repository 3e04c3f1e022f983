# The new sampler is a choice of the command line, trains, refuses options that it has no use for, and is named among
# those that read the ones that it has.
gnnstream generate sbm graph --vertices 3000 --edges 60000 --features 4 --classes 2 --seed 1 >made
gnnstream partition graph store --parts 4 --method random --seed 1 >made
train() { gnnstream train store --model gcn --hidden 4 --epochs 2 --sampler saint-even --batch-size 200 "$@"; }
loss() { sed -n 's/.*"loss": \([^,]*\),.*/\1/p' "$1"; }
train --metrics one.jsonl >out
train --coverage 1 --metrics two.jsonl >out
[ "$(loss one.jsonl | wc -l)" = 2 ]
[ "$(loss one.jsonl)" != "$(loss two.jsonl)" ]
if train --fanout 3 2>refused; then exit 1; fi
grep -q 'fanout: is of --sampler neighbor; leave it out with saint-even' refused
if gnnstream train store --model gcn --sampler cluster --coverage 1 2>refused; then exit 1; fi
grep -q 'coverage: is of --sampler saint-node, saint-edge, saint-walk and saint-even' refused
gnnstream help --all train | grep -e 'saint-walk|saint-even' >found
