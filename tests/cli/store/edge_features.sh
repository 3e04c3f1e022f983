# Features of edges: beside their edges in both directions, whatever the order of the input; what is wrong is one line,
# and no store.
# rows FILE CHUNK_OFFSET FEATURES_OFFSET COUNT: float32 of a chunk.
rows()
{
    od -An -v -tfF -w8 -j $(($2 + $3)) -N $(($4 * 8)) "$1" | tr -s ' ' | tr '\n' ';'
}
fresh()
{
    rm -rf graph
    mkdir graph
    array graph/edges.npy '5, 2' 2 0 0 1 2 0 1 2 0 1
    array graph/edge_features.npy '5, 2' 7 8 5 6 1 2 -3 4 9 9
}
# One chunk a direction of 5 edges: header 32, targets 6 in 16, starts 16, index 10 in 16, operands 6 in 16: features at
# 96. By destination 0 (2, 2), 1 (0, 0), 2 (1); by source 0 (1, 1), 1 (2), 2 (0, 0). Parallel edges by their bytes.
fresh
gnnstream partition graph store --parts 1 --method natural >made
[ "$(rows store/edges.dest.bin 0 96 5)" = ' 1 2; 7 8; 5 6; 9 9; -3 4;' ] ||
    [ "$(rows store/edges.dest.bin 0 96 5)" = ' 7 8; 1 2; 5 6; 9 9; -3 4;' ] ||
    [ "$(rows store/edges.dest.bin 0 96 5)" = ' 1 2; 7 8; 9 9; 5 6; -3 4;' ] ||
    die "by destination: $(rows store/edges.dest.bin 0 96 5)"
[ "$(rows store/edges.source.bin 0 96 5)" = "$(rows store/edges.dest.bin 0 112 2) -3 4;$(
    rows store/edges.dest.bin 0 96 2)" ] || die "by source: $(rows store/edges.source.bin 0 96 5)"
grep -q '"version":.4' store/manifest.json || die 'not version 4'
gnnstream info store | grep -q '^edges have 2 features of f32$' || die "$(gnnstream info store)"
gnnstream info --json store | grep -q '"edge_features": 2, "edge_feature_type": "f32"' || die 'JSON'
gnnstream verify store >text
# The same graph as OGB lays it out.
mkdir -p ogb/raw ogb/split/random
printf '2,0\n0,1\n2,0\n1,2\n0,1\n' | gzip >ogb/raw/edge.csv.gz
printf '7,8\n5,6\n1,2\n-3,4\n9,9\n' | gzip >ogb/raw/edge-feat.csv.gz
printf '.5\n.5\n.5\n' | gzip >ogb/raw/node-feat.csv.gz
printf '0\n1\n0\n' | gzip >ogb/raw/node-label.csv.gz
echo 3 | gzip >ogb/raw/num-node-list.csv.gz
echo 5 | gzip >ogb/raw/num-edge-list.csv.gz
echo 0 | gzip >ogb/split/random/train.csv.gz
echo 1 | gzip >ogb/split/random/valid.csv.gz
echo 2 | gzip >ogb/split/random/test.csv.gz
gnnstream partition ogb ogb.store --parts 1 --method natural >made
cmp store/edges.dest.bin ogb.store/edges.dest.bin && cmp store/edges.source.bin ogb.store/edges.source.bin ||
    die 'another store of OGB'
printf '7,8\n5,6\n1,2\n-3,4\n' | gzip >ogb/raw/edge-feat.csv.gz
refused 1 'edge-feat.csv.gz' gnnstream partition ogb short.store --parts 1 --method natural
[ ! -e short.store ] || die 'a store of four rows for five edges'
turn_over store/edges.source.bin 100
refused 1 'edges.source.bin: chunk (0, 0) by source: checksum mismatch' gnnstream verify store
rm -rf store
# Each edge and its reverse with one row: one copy serves both directions.
array graph/edges.npy '4, 2' 0 1 1 0 2 1 1 2
array graph/edge_features.npy '4,' 5 5 6 6
gnnstream partition graph store --parts 2 --method natural --feature-type bf16 >made
[ ! -e store/edges.source.bin ] || die 'two copies'
gnnstream verify store >text
rm -rf store
bad()
{
    refused 1 "$1" gnnstream partition graph store --parts 1 --method natural "${@:2}"
    [ ! -e store ] || die "a store of: $1"
    fresh
}
fresh
array graph/edge_features.npy '4, 2' 7 8 5 6 1 2 3 4
bad 'edge_features.npy: is i16 [4, 2]; edge features are numbers [5, K], a row an edge'
head -c 140 graph/edge_features.npy >cut && mv cut graph/edge_features.npy
bad edge_features.npy
printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (5, 1), }" \
    >graph/edge_features.npy
printf '\0\0\0\0\0\0\0\0\0\0\x80\x7f\0\0\0\0\0\0\0\0' >>graph/edge_features.npy
bad 'edge_features.npy: row 2, column 0: the value is not a finite float32'
printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (5, 1), }" \
    >graph/edge_features.npy
printf '\0\0\0\0\0\0\0\0\0\0\0\x50\0\0\0\0\0\0\0\0' >>graph/edge_features.npy
bad 'is too large for f16; use --feature-type f32' --feature-type f16
# A text asks for what a graph has not.
rm -rf graph store
small_store
printf 'layer t(h[in]) -> [out]:\n  param w[out, in]\n  return sum(e.x * u.h) @ w%s\n' "'" >t.gnn
refused 1 "'e.x': the edges of this graph have no features" gnnstream train store --model t.gnn --epochs 1
