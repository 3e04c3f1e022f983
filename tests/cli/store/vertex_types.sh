# Several types of vertices: ranges of ids, features of a width of their own, edges by relation; what is wrong is one
# line, and no store.
# floats FILE COUNT: float32 from its begin.
floats()
{
    od -An -v -tfF -w$(($2 * 4)) -N $(($2 * 4)) "$1" | tr -s ' '
}
fresh()
{
    rm -rf graph
    mkdir -p graph/nodes/author graph/nodes/paper graph/nodes/field graph/edges/{author__writes__paper,paper__of__field}
    array graph/nodes/author/features.npy '2, 1' 7 8
    array graph/nodes/paper/features.npy '3, 2' 1 2 3 4 5 6
    array graph/nodes/paper/labels.npy '3,' 1 0 1
    array graph/nodes/paper/train_idx.npy '2,' 2 0
    array graph/edges/author__writes__paper/edges.npy '3, 2' 0 0 0 1 1 2
    array graph/edges/paper__of__field/edges.npy '2, 2' 2 3 0 1
    array graph/edges/paper__of__field/edge_weights.npy '2,' 5 6
}
bad()
{
    refused 1 "$1" gnnstream partition graph bad --parts 1 --method natural "${@:2}"
    [ ! -e bad ] || die "a store of: $1"
    fresh
}
# Ids are 0 and 1 for authors, 2 to 5 for the fields that edges speak of, 6 to 8 for papers.
fresh
gnnstream partition graph store --parts 2 --method natural >made
gnnstream verify store >text
grep -q '"version":.5' store/manifest.json || die 'not version 5'
gnnstream info store >text
grep -q '^types      author: 2 vertices, features 1$' text && grep -q '^ *field: 4 vertices, features 0$' text &&
    grep -q '^ *paper: 3 vertices, features 2, labelled$' text && grep -q '^relations  0: author writes paper$' text &&
    grep -q '^ *1: paper of field$' text || die "$(<text)"
gnnstream info --json store | grep -Fq '"relations": [["author", "writes", "paper"], ["paper", "of", "field"]]' ||
    die JSON
# In any order of rows: those of each id.
gnnstream partition graph one --parts 1 --method natural >made
[ "$(floats one/vertex_type.bin 9)" = ' 0 0 1 1 1 1 2 2 2' ] || die "types: $(floats one/vertex_type.bin 9)"
[ "$(floats one/features.bin 18)" = ' 7 0 8 0 0 0 0 0 0 0 0 0 1 2 3 4 5 6' ] || die 'rows of features'
[ "$(od -An -v -td4 -w36 -N 36 one/labels.bin | tr -s ' ')" = ' -1 -1 -1 -1 -1 -1 1 0 1' ] || die 'labels'
[ "$(floats one/in_degree.bin 9)" = ' 0 0 0 1 0 1 1 1 1' ] || die "degrees: $(floats one/in_degree.bin 9)"
# Logits are the papers', by their own ids.
gnnstream train store --model rgcn --epochs 1 --ignore-edge-weights --logits rows.npy >text
head -c 128 rows.npy | grep -aq "'shape': (3, 2)" || die 'logits of other vertices'
gnnstream partition graph both --parts 1 --undirected >made
gnnstream verify both >text
gnnstream info both | grep -q '^ *3: field rev_of paper$' || die "$(gnnstream info both)"
turn_over store/vertex_type.bin 3
refused 1 'vertex_type.bin: checksum mismatch' gnnstream verify store
array graph/edges/author__writes__paper/edges.npy '1, 2' 0 3
bad 'author__writes__paper/edges.npy: row 0: destination 3 is not one of the 3 vertices of type paper (ids start at 0)'
array graph/edges/author__writes__paper/edges.npy '1, 2' 2 0
bad 'author__writes__paper/edges.npy: row 0: source 2 is not one of the 2 vertices of type author (ids start at 0)'
array graph/nodes/paper/labels.npy '2,' 1 0
bad 'labels.npy: has 2 rows, but graph/nodes/paper/features.npy says that there are 3 vertices of type paper'
array graph/nodes/author/labels.npy '2,' 1 0
bad 'labels or splits of two types of vertices, author and paper'
array graph/nodes/paper/train_idx.npy '1,' 3
bad 'train_idx.npy: row 0: vertex 3 is not one of the 3 vertices (ids start at 0)'
array graph/nodes/paper/labels.npy '3,' 1 -2 0
bad 'labels.npy: row 1: label -2 is outside 0 to'
echo '{"num_nodes": 4}' >graph/nodes/paper/meta.json
bad 'features.npy: has 3 rows, but the stated number says that there are 4 vertices of type paper'
array graph/edges/paper__of__field/edge_weights.npy '1,' 5
bad 'edge_weights.npy: is i16 [1, 1]; edge weights are numbers [2], one an edge'
mkdir graph/edges/author__at__venue
bad 'author__at__venue: is not named SOURCE__RELATION__DESTINATION, of types that have a folder in nodes/'
head -c 130 graph/nodes/paper/features.npy >cut && mv cut graph/nodes/paper/features.npy
bad nodes/paper/features.npy
rm -rf graph/nodes/field
bad 'paper__of__field: is not named'
