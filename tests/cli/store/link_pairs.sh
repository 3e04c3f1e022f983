# Pairs that losses on edges are of: into the store by bucket, checked, shown; what is wrong is one line, and no store.
# array FILE SHAPE NUMBERS...: a .npy file of int32.
array()
{
    local file=$1 header
    header="{'descr': '<i4', 'fortran_order': False, 'shape': ($2), }"
    shift 2
    {
        printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "$header"
        # shellcheck disable=SC2059 # the format is the bytes
        for v in "$@"; do printf "$(printf '\\x%02x\\x%02x\\x%02x\\x%02x' $((v & 255)) $((v >> 8 & 255)) 0 0)"; done
    } >"$file"
}
fresh()
{
    rm -rf graph
    mkdir graph
    array graph/edges.npy '5, 2' 0 1 1 2 2 3 3 4 4 0
    array graph/edge_types.npy '5,' 0 1 2 0 1
    array graph/train_edges.npy '4, 2' 4 3 0 1 3 0 1 4
    array graph/train_edge_types.npy '4,' 2 1 0 0
    array graph/valid_edges.npy '1, 2' 2 4
    array graph/valid_edge_types.npy '1,' 1
}
# Intervals 0 1 2 and 3 4: (0, 0) has 0 1, (0, 1) has 1 4, (1, 0) has 3 0, (1, 1) has 4 3.
fresh
gnnstream partition graph store --parts 2 --method natural >made
[ "$(od -An -v -tu4 -w12 -N48 store/train_links.bin | tr -s ' ')" = ' 0 1 1
 1 4 0
 3 0 0
 4 3 2' ] || die "train: $(od -An -tu4 -w12 -N48 store/train_links.bin)"
grep -q '"version":.3' store/manifest.json || die 'not version 3'
gnnstream info store | grep -q '^links      train 4, valid 1, test 0$' || die "$(gnnstream info store)"
gnnstream info --json store | grep -q '"train_links": 4, "valid_links": 1, "test_links": 0' || die 'JSON'
gnnstream verify store >text
turn_over store/train_links.bin 12
refused 1 train_links.bin gnnstream verify store
rm -rf store
bad()
{
    refused 1 "$1" gnnstream partition graph store --parts 2 --method natural
    [ ! -e store ] || die "a store of: $1"
    fresh
}
array graph/valid_edges.npy '1, 2' 2 5
bad 'valid_edges.npy: row 0'
array graph/valid_edge_types.npy '1,' 3
bad 'valid_edge_types.npy: row 0: type 3 is outside 0 to 2'
array graph/valid_edge_types.npy '2,' 0 1
bad 'valid_edge_types.npy: is i32 [2, 1]; edge types are integers [1]'
rm graph/valid_edge_types.npy
bad 'add valid_edge_types.npy'
rm graph/edge_types.npy
bad 'train_edge_types.npy: has types, and the edges of the graph have none'
rm graph/train_edges.npy
bad 'train_edge_types.npy: has types of edges that are not there'
array graph/test_edges.npy '6,' 0 1 2 3 4 0
bad 'test_edges.npy: has shape [6, 1]'
# Features are the edges' own.
fresh
array graph/edge_features.npy '5, 1' 1 2 3 4 5
gnnstream partition graph store --parts 2 --method natural >made
gnnstream info store | grep -q '^links      train 4, valid 1, test 0$' || die "$(gnnstream info store)"
rm -rf store
fresh
# Labels of pairs: classes or numbers, of all splits or of none; where the store has them, types need none.
rm graph/{train,valid}_edge_types.npy
array graph/train_edge_labels.npy '4,' 2 0 1 1
array graph/valid_edge_labels.npy '1,' 0
cp -r graph labelled
labels()
{
    refused 1 "$1" gnnstream partition graph store --parts 2 --method natural
    [ ! -e store ] || die "a store of: $1"
    rm -rf graph
    cp -r labelled graph
}
rm graph/edge_types.npy labelled/edge_types.npy
gnnstream partition graph store --parts 2 --method natural >made
[ "$(od -An -v -tu4 -w12 -N48 store/train_links.bin | tr -s ' ')" = ' 0 1 0
 1 4 1
 3 0 1
 4 3 2' ] || die "labels: $(od -An -tu4 -w12 -N48 store/train_links.bin)"
grep -q '"version":.6' store/manifest.json || die 'not version 6'
gnnstream verify store >text
gnnstream info store | grep -q '^links .*; of 3 classes$' || die "$(gnnstream info store)"
rm -rf store
{
    head -c 140 labelled/train_edge_labels.npy
    printf '\xff\xff\xff\xff'
} >graph/train_edge_labels.npy
labels 'train_edge_labels.npy: row 3: -1 is no class, which are 0 to 1048575'
array graph/train_edge_labels.npy '3,' 2 0 1
labels 'train_edge_labels.npy: is i32 [3, 1]; labels of edges are integers, classes, or f32 or f64, numbers, [4]'
rm graph/valid_edge_labels.npy
labels 'valid_edges.npy: has no labels, and pairs of another split have'
rm graph/valid_edges.npy
labels 'valid_edge_labels.npy: has labels of edges that are not there'
{
    printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }"
    printf '\0\0\xc0\x7f'
} >nan.npy
cp nan.npy graph/valid_edge_labels.npy
labels 'valid_edge_labels.npy: is f32 and'
rm graph/train_edge*.npy
cp nan.npy graph/valid_edge_labels.npy
labels 'valid_edge_labels.npy: row 0: nan is not a finite float32'
# A store without pairs is what it was.
rm graph/{train,valid}_edge*.npy
gnnstream partition graph store --parts 2 --method natural >made
grep -q '"version":.2' store/manifest.json || die 'not version 2'
