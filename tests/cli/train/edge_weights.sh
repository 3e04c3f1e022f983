# Edge weights: GCN takes them, and is what it was where there are none; a model that does not look at them says so.
small_store
mkdir weighted
cp graph/* weighted/
python3 - <<'PY'
import os, struct
with open("graph/edges.npy", "rb") as file:
    head = file.read(128)
size = 8 if b"<i8" in head or b"<u8" in head else 4
count = (os.path.getsize("graph/edges.npy") - 128) // (2 * size)
header = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d,), }" % count
header += " " * (128 - 11 - len(header)) + "\n"
with open("weighted/edge_weights.npy", "wb") as file:
    file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
    file.write(struct.pack("<%df" % count, *[0.25 * (1 + i % 7) for i in range(count)]))
PY
gnnstream partition weighted heavy --parts 3 --method random --seed 1 >made
gnnstream train store --model gcn --epochs 3 --save plain.st >result

# what another file says is trained, weights counting or not
gnnstream train heavy --model gcn --epochs 3 --save heavy.st >result 2>err
[ ! -s err ] || die "$(<err)"
gnnstream train heavy --model gcn --epochs 3 --ignore-edge-weights --save ignored.st >result 2>err
[ ! -s err ] || die "$(<err)"
tensors plain.st >plain
tensors ignored.st >ignored
tensors heavy.st >heavy.numbers
cmp plain ignored || die 'weights that are left out count'
! cmp -s plain heavy.numbers || die 'weights do not count'

# a prediction goes by the weights'
gnnstream predict heavy --weights ignored.st --logits a.npy >result
gnnstream predict heavy --weights ignored.st --logits b.npy --ignore-edge-weights >result
gnnstream predict heavy --weights heavy.st --logits c.npy >result
cmp a.npy b.npy || die 'weights were trained without edge weights, and are used with them'
! cmp -s a.npy c.npy || die 'the same logits of other weights'

words='does not look at the edge weights of heavy: each edge counts 1; --ignore-edge-weights'
for command in 'train' 'plan' 'bench train'; do
    # shellcheck disable=SC2086 # two words
    gnnstream $command heavy --model sage --epochs 1 >result 2>err
    [ "$(grep -Fc "gnnstream: warning: sage: $words" err)" = 1 ] || die "$command: $(<err)"
    [ "$command" != plan ] || gnnstream plan heavy --model sage --ignore-edge-weights >result 2>err
    [ "$command" != plan ] || [ ! -s err ] || die "$(<err)"
done

# without weights, the program is that of the text without them
cat >old.gnn <<'TEXT'
layer gcn(h[in]) -> [out]:
    param lin.weight[out, in], bias[out]
    norm = rsqrt(in_degree - loops + 1)
    x = norm * (h @ lin.weight')
    return norm * (sum(u.x) + (1 - loops) * x) + bias
TEXT
for options in '' '--self-loops' '--features 8'; do
    # shellcheck disable=SC2086
    gnnstream model old.gnn $options | sed -n '/^== the compiled/,$p' >old
    # shellcheck disable=SC2086
    gnnstream model gcn $options | sed -n '/^== the compiled/,$p' >new
    [ -s new ] && cmp old new || die "another program: $options"
done
# with them, their sums are made once, before the first epoch
gnnstream model gcn --edge-weights --self-loops | sed -n '/^== the compiled/,$p' >new
sed -n '/^pass setup/,/^pass train/p' new | grep -q 'r[0-9]* = sum_in e[0-9]* : \[1\]' || die "$(<new)"
! sed -n '/^pass train/,$p' new | grep -q '= sum_in .* : \[1\]' || die "an epoch sums weights: $(<new)"
