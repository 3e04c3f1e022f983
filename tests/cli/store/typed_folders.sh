# Graphs with types of vertices as others lay them out: ogbn-mag's folder, IGBH's and GraphBolt's give the store
# of nodes/ and edges/; what is damaged is one line, and no store.
mkdir -p own/nodes/{author,paper} own/edges/{paper__cites__paper,paper__written_by__author}
array own/nodes/author/features.npy '2, 2' 7 8 9 10
array own/nodes/paper/features.npy '5, 2' 1 2 3 4 5 6 7 8 9 10
array own/nodes/paper/labels.npy '5,' 1 0 1 1 0
array own/nodes/paper/train_idx.npy '3,' 0 1 2
array own/nodes/paper/valid_idx.npy '1,' 3
array own/nodes/paper/test_idx.npy '1,' 4
array own/edges/paper__cites__paper/edges.npy '3, 2' 0 1 2 0 4 3
array own/edges/paper__written_by__author/edges.npy '4, 2' 0 0 1 0 2 1 4 1
gnnstream partition own own.store --parts 2 --method natural >made

# same FOLDER: the store that it gives is that of `own`.
same()
{
    rm -rf store
    gnnstream partition "$1" store --parts 2 --method natural >made
    gnnstream verify store >text
    for f in edges.dest edges.source features split vertex_type labels in_degree; do
        cmp "store/$f.bin" "own.store/$f.bin" || die "another $f.bin of $1"
    done
    gnnstream info store | grep -A9 ^types >text
    gnnstream info own.store | grep -A9 ^types | cmp - text || die "types of $1"
}
mag()
{
    rm -rf mag
    mkdir -p mag/raw/relations/{paper___cites___paper,paper___written_by___author} mag/split/time/paper
    mkdir -p mag/raw/node-feat/{author,paper} mag/raw/node-label/paper
    printf 'paper,author\n5,2\n' | gzip >mag/raw/num-node-dict.csv.gz
    printf 'paper,written_by,author\npaper,cites,paper\n' | gzip >mag/raw/triplet-type-list.csv.gz
    printf '0,1\n2,0\n4,3\n' | gzip >mag/raw/relations/paper___cites___paper/edge.csv.gz
    echo 3 | gzip >mag/raw/relations/paper___cites___paper/num-edge-list.csv.gz
    printf '0,0\n1,0\n2,1\n4,1\n' | gzip >mag/raw/relations/paper___written_by___author/edge.csv.gz
    printf '1,2\n3,4\n5,6\n7,8\n9,10\n' | gzip >mag/raw/node-feat/paper/node-feat.csv.gz
    printf '7,8\n9,10\n' | gzip >mag/raw/node-feat/author/node-feat.csv.gz
    printf '1\n0\n1\n1\n0\n' | gzip >mag/raw/node-label/paper/node-label.csv.gz
    printf '0\n1\n2\n' | gzip >mag/split/time/paper/train.csv.gz
    echo 3 | gzip >mag/split/time/paper/valid.csv.gz
    echo 4 | gzip >mag/split/time/paper/test.csv.gz
}
igbh()
{
    rm -rf igbh
    mkdir -p igbh/processed/{paper,author,paper__cites__paper,paper__written_by__author}
    array igbh/processed/author/node_feat.npy '2, 2' 7 8 9 10
    array igbh/processed/paper/node_feat.npy '5, 2' 1 2 3 4 5 6 7 8 9 10
    array igbh/processed/paper/node_label_19.npy '5,' 1 0 1 1 0
    array igbh/processed/paper__cites__paper/edge_index.npy '3, 2' 0 1 2 0 4 3
    array igbh/processed/paper__written_by__author/edge_index.npy '4, 2' 0 0 1 0 2 1 4 1
}
mag
same mag
gnnstream train store --model rgcn --epochs 1 --logits rows.npy >text
head -c 128 rows.npy | grep -aq "'shape': (5, 2)" || die 'logits of other vertices'
igbh
same igbh
bolt()
{
    rm -rf bolt
    mkdir bolt
    array bolt/a.npy '2, 2' 7 8 9 10
    array bolt/p.npy '5, 2' 1 2 3 4 5 6 7 8 9 10
    array bolt/cites.npy '2, 3' 0 2 4 1 0 3
    array bolt/by.npy '2, 4' 0 1 2 4 0 0 1 1
    array bolt/train.npy '3,' 0 1 2
    array bolt/train_y.npy '3,' 1 0 1
    array bolt/valid.npy '1,' 3
    array bolt/valid_y.npy '1,' 1
    array bolt/test.npy '1,' 4
    array bolt/test_y.npy '1,' 0
    cat >bolt/metadata.yaml <<'END'
graph:
  nodes: [{type: author, num: 2}, {type: paper, num: 5}]
  edges:
    - {type: "paper:cites:paper", format: numpy, path: cites.npy}
    - {type: "paper:written_by:author", format: numpy, path: by.npy}
feature_data:
  - {domain: node, type: author, name: feat, format: numpy, path: a.npy}
  - {domain: node, type: paper, name: feat, format: numpy, path: p.npy}
tasks:
  - name: classify
    num_classes: 2
    train_set:
      - type: paper
        data: [{name: seeds, format: numpy, path: train.npy}, {name: labels, format: numpy, path: train_y.npy}]
    validation_set:
      - type: paper
        data: [{name: seeds, format: numpy, path: valid.npy}, {name: labels, format: numpy, path: valid_y.npy}]
    test_set:
      - type: paper
        data: [{name: seeds, format: numpy, path: test.npy}, {name: labels, format: numpy, path: test_y.npy}]
END
}
bolt
same bolt
bad()
{
    refused 1 "$1" gnnstream partition "$2" bad --parts 1 --method natural
    [ ! -e bad ] || die "a store of: $1"
    "$2"
}
printf '0,1\n2,0\n4,5\n' | gzip >mag/raw/relations/paper___cites___paper/edge.csv.gz
bad 'paper___cites___paper/edge.csv.gz: row 2: destination 5 is not one of the 5 vertices of type paper' mag
printf '0,1\n2,0\n' | gzip >mag/raw/relations/paper___cites___paper/edge.csv.gz
bad 'edge.csv.gz: has 2 edges; num-edge-list says 3' mag
printf 'paper,cites,paper\npaper,at,venue\n' | gzip >mag/raw/triplet-type-list.csv.gz
bad "triplet-type-list.csv.gz: there are no vertices of type 'venue'; add their table, or correct the name" mag
rm -r mag/raw/relations/paper___cites___paper
bad 'paper___cites___paper/edge.csv.gz: there is no such file' mag
printf 'paper,author\n5\n' | gzip >mag/raw/num-node-dict.csv.gz
bad 'num-node-dict.csv.gz: line 2: says not how many vertices of type author there are' mag
printf '7,8\n' | gzip >mag/raw/node-feat/author/node-feat.csv.gz
bad 'node-feat.csv.gz: has 1 rows, but the stated number says that there are 2 vertices of type author' mag
printf '1\n0\n' >mag/raw/node-label/paper/node-label.csv.gz
bad 'node-label.csv.gz' mag
rm -r igbh/processed/author
bad "paper__written_by__author: is not named SOURCE__RELATION__DESTINATION" igbh
array igbh/processed/paper__cites__paper/edge_index.npy '3, 3' 0 1 2 0 4 3 1 2 3
bad 'paper__cites__paper/edge_index.npy: has shape [3, 3]; edges are [E, 2], or [2, E]' igbh
array igbh/processed/paper/node_label_19.npy '4,' 1 0 1 1
bad 'node_label_19.npy: has 4 rows' igbh
sed -i 's/paper:written_by:author/paper:written_by:venue/' bolt/metadata.yaml
bad "metadata.yaml: there are no vertices of type 'venue'" bolt
sed -i 's/"paper:cites:paper"/cites/' bolt/metadata.yaml
bad 'line 4: a type of edges is source:relation:destination' bolt
sed -i '0,/      - type: paper/s//      - type: author/' bolt/metadata.yaml
bad 'sets of several types of vertices; a loss is of one' bolt
array bolt/a.npy '3, 2' 7 8 9 10 1 2
bad 'a.npy: has 3 rows, but the stated number says that there are 2 vertices of type author' bolt
