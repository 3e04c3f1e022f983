# plan of a cluster and a graph that are not there, beside the plan of a store of that shape: bytes over the network and
# seconds within 15 %. Ranks beyond those of a run have what each has; what is no cluster, or no shape, is refused.
network='"network": {"bps": 1e8, "seconds": 3e-5}'
cluster() { printf '{"ranks": %s, "memory": 4e9, %s%s}' "$1" "$network" "${2-}" >"ranks$1"; }
number() { sed -n "s/.*\"$1\":\([-0-9.e+]*\).*/\1/p"; }
near() { awk -v a="$2" -v b="$3" 'BEGIN { exit !(a > 0.85 * b && b > 0.85 * a) }' || die "$1: $2 beside $3"; }

gnnstream generate sbm graph --vertices 10000 --edges 100000 --features 32 --classes 4 --seed 1 >made
gnnstream partition graph store --parts 8 --method random --seed 1 >made
plan=(gnnstream plan --model gat --hidden 32 --no-hoist --json --threads 2 --device-memory 32M)
cluster 2
printf '{"switches": [{"devices": 1}, {"devices": 1}], %s}' "$network" >network
"${plan[@]}" store --no-prune --device cpu:2 --threads 4 --host-memory 4000000000 --topology network >there
"${plan[@]}" --cluster ranks2 --shape vertices=10000,edges=100000,features=32,classes=4,parts=8 >described
rows=$(sed 's/{"from"/\n&/g' there | sed -n '/^{"from":"network"/s/.*"train","bytes":\([0-9]*\).*/\1/p' |
    awk '{ n += $1 } END { print n / NR }')
near 'rows over the network' "$(sed 's/{"name"/\n&/g' described | grep '^{"name":"rows from' | number bytes)" "$rows"
near 'seconds' "$(number epoch_seconds <described)" \
    "$(sed 's/{"name"/\n&/g' there | grep '^{"name":"train"' | head -n 1 | number seconds)"

# Of R-MAT most edges are of few vertices, and in a random order these are everywhere; by label propagation others lie
# together, in intervals of their own.
gnnstream generate rmat rmat --vertices 10000 --edges 100000 --features 32 --classes 4 --seed 1 >made
for order in "random" "lp --ranks 2"; do
    read -r -a method <<<"$order"
    order=${method[0]}
    gnnstream partition rmat "rmat-$order" --parts 8 --seed 1 --method "${method[@]}" >made
    "${plan[@]}" "rmat-$order" --no-prune --device cpu:2 --threads 4 --host-memory 4000000000 --topology network >there
    shape=$(python3 "${BASH_SOURCE[0]%/tests/*}/bench/cluster.py" gnnstream "rmat-$order" --shape 2)
    "${plan[@]}" --cluster ranks2 --shape "$shape" >described
    near "seconds of R-MAT, $order" "$(number epoch_seconds <described)" \
        "$(sed 's/{"name"/\n&/g' there | grep '^{"name":"train"' | head -n 1 | number seconds)"
done

# Ranks with shards get rows of the store from each other, too, and read only their own: as the plan of a store says
# that is told so, and more than ranks do that all have it.
plan=(gnnstream plan --model sage --hidden 64 --no-hoist --no-cache --json --threads 2 --device-memory 32M)
shape=vertices=10000,edges=100000,features=32,classes=4,parts=8
received() { sed 's/{"name"/\n&/g' "$1" | grep '^{"name":"rows from' | number bytes; }
"${plan[@]}" --cluster ranks2 --shape $shape >shared
sed -i 's/3e-5/&, "shards": true/' ranks2 network
"${plan[@]}" --cluster ranks2 --shape $shape >described
"${plan[@]}" store --no-prune --device cpu:2 --threads 4 --host-memory 4000000000 --topology network >there
rows=$(sed 's/{"from"/\n&/g' there | sed -n '/^{"from":"network"/s/.*"train","bytes":\([0-9]*\).*/\1/p' |
    awk '{ n += $1 } END { print n / NR }')
near 'rows over the network, with shards' "$(received described)" "$rows"
[ "$(received described)" -gt "$(received shared)" ] || die 'no more rows with shards'
[ "$(number store_bytes <described)" -lt "$(number store_bytes <shared)" ] || die 'no less disk with shards'

# As many edges and rows for each of 64 ranks as for each of 16: what a rank computes is the same, and there are more
# gradients.
shape=features=32,classes=4,parts=32,remote=0.01
cluster 16 ', "price": 2'
cluster 64 ', "price": 2'
for n in 16 64; do
    counts=vertices=$((2000 * n)),edges=$((20000 * n))
    gnnstream plan --model gcn --cluster ranks$n --json --shape "$counts,$shape" >plan$n
done
near 'computing' "$(number compute_seconds <plan16)" "$(number compute_seconds <plan64)"
[ "$(number ranks <plan64) $(number planned <plan64)" = '64 16' ] || die 'other ranks'
gradients() { sed 's/{"name"/\n&/g' "$1" | grep '^{"name":"gradients of' | number bytes; }
parameters=$(number parameters <plan64 | head -n 1)
[ "$(gradients plan64)" = $((63 * 4 * parameters)) ] || die "gradients: $(gradients plan64)"
# what the price is an hour
awk -v p="$(number epoch_price <plan64)" -v s="$(number epoch_seconds <plan64)" \
    'BEGIN { w = s * 2 * 64 / 3600; exit !(p > 0.999 * w && p < 1.001 * w) }' || die 'another price'

# Two hundred million vertices are planned in seconds of a processor, of lots of rows: those that half of the other
# rank's edges name, forward and back, 4 columns wide.
printf '{"ranks": 2, "memory": 128e9, %s}' "$network" >large
(
    ulimit -t 12
    gnnstream plan --model gcn --hidden 32 --json --cluster large \
        --shape vertices=2e8,edges=2e8,features=32,classes=4,parts=16,remote=0.5 >described
) || die 'two hundred million vertices take more than 12 seconds'
awk -v b="$(received described)" 'BEGIN { w = 2 * 16 * 1e8 * (1 - exp(-0.5)); exit !(b > 0.99 * w && b < 1.01 * w) }' ||
    die "rows of two hundred million vertices: $(received described)"

p() { refused "$1" "$2" gnnstream plan --model gcn "${@:3}"; }
p 2 '--cluster and --shape go together, without STORE' --cluster ranks2
p 2 '--cluster and --shape go together, without STORE' store --cluster ranks2 --shape vertices=1
p 2 'STORE is missing'
for bad in '' vertices=9 vertices=9,edges=9,features=0 vertices=9,edges=9,features=9,rows=9 \
    vertices=9,edges=9,features=9,remote=2 vertices=9,vertices=9,edges=9,features=9 vertices=1.5,edges=9,features=9; do
    p 2 'give it as vertices=N,edges=N,features=N' --cluster ranks2 --shape "$bad," --epochs 1
done
good=(--shape vertices=2000,edges=20000,features=8)
p 2 'parts must be a multiple of that' --cluster ranks2 --shape vertices=2000,edges=20000,features=8,parts=3
p 1 'no-file: ' --cluster no-file "${good[@]}"
p 2 'ranks2 says what memory a rank has' --cluster ranks2 "${good[@]}" --host-memory 1G
p 1 'not planned for a cluster yet' --cluster ranks2 "${good[@]}" --sampler neighbor --fanout 2,2
echo '{"ranks": 2, "memory": 1e9}' >wrong
p 1 'wrong: of several ranks it says their "network"' --cluster wrong "${good[@]}"
