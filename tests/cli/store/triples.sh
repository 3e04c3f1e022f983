# A knowledge graph as a folder of train.txt, valid.txt and test.txt: the same store as of the arrays that say the same,
# with words numbered shortest first; what is wrong is one line that names the file and the line.
mkdir kg arrays
# Words of 4 entities and 3 relations; in order of length, then of bytes: b 0, c 1, aa 2, dd 3; r 0, s 1, tt 2.
printf 'dd\ttt\tb\nb\tr\taa\naa\ts\tc\nc\tr\tdd\n' >kg/train.txt
printf 'c\ttt\tb\n' >kg/valid.txt
printf 'aa\tr\tdd\nb\ts\tc\n' >kg/test.txt
array arrays/edges.npy '4, 2' 3 0 0 2 2 1 1 3
array arrays/edge_types.npy '4,' 2 0 1 0
array arrays/valid_edges.npy '1, 2' 1 0
array arrays/valid_edge_types.npy '1,' 2
array arrays/test_edges.npy '2, 2' 2 3 0 1
array arrays/test_edge_types.npy '2,' 0 1
same() # STORE: in all but names
{
    gnnstream verify "$1" >text
    for file in edges.dest edges.source valid_links test_links input_id chunks; do
        cmp "$1/$file.bin" "arrays.store/$file.bin" || die "$1: other $file"
    done
}
gnnstream partition arrays arrays.store --parts 2 --method natural >made
gnnstream partition kg kg.store --parts 2 --method natural >made 2>warnings
same kg.store
grep -q 'edge types are words.*: 0 r, 1 s, 2 tt$' warnings || die "$(cat warnings)"
! grep -q 'no header' warnings || die "$(cat warnings)"
[ "$(tr '\n' ' ' <kg.store/names.bin | tr -d '\0')" = 'b c aa dd ' ] || die "$(cat kg.store/names.bin)"
[ "$(tr '\n' ' ' <kg.store/edge_type_names.bin | tr -d '\0')" = 'r s tt ' ] || die "$(cat kg.store/edge_type_names.bin)"
gnnstream info kg.store | grep -q '^edge types 3, words .*edge_type_names.bin$' || die 'no names of edge types'
gnnstream train kg.store --task link --model embedding --hidden 4 --epochs 2 >text
grep -q '^test   MRR' text || die "$(cat text)"

# A header of the first file counts for all, and columns come in its order; a split may be missing.
for f in train valid test; do
    { printf 'dst,relation,src\n' && sed -E 's/(.*)\t(.*)\t(.*)/\3,\2,\1/' kg/$f.txt; } >$f
done
rm kg/*
mv train kg/train.txt
mv valid kg/valid.txt
mv test kg/test.txt
gnnstream partition kg headed.store --parts 2 --method natural >made 2>warnings
same headed.store
# Numbers are ids, and relations, as they are.
printf '3 2 0\n0 0 2\n2 1 1\n1 0 3\n' >kg/train.txt
printf '1 2 0\n' >kg/valid.txt
printf '2 0 3\n0 1 1\n' >kg/test.txt
gnnstream partition kg numbers.store --parts 2 --method natural >made 2>warnings
same numbers.store
[ ! -s warnings ] || die "$(cat warnings)"
# A word between two numbers is a relation in a file by itself, too.
printf '3 tt 0\n0 r 2\n2 s 1\n1 r 3\n' >list.txt
gnnstream partition list.txt list.store --parts 2 --method natural >made 2>warnings
cmp list.store/edges.dest.bin arrays.store/edges.dest.bin || die 'a word between numbers'

# A name that is another one is found; and a list of another length, by the manifest's own checksum.
printf 'q' | dd of=list.store/edge_type_names.bin conv=notrunc status=none
refused 1 'list.store/edge_type_names.bin: checksum mismatch' gnnstream verify list.store

bad()
{
    refused 1 "$1" gnnstream partition kg store --parts 2
    [ ! -e store ] || die "a store of: $1"
}
printf '1 2\n' >kg/valid.txt
bad 'kg/valid.txt: line 1'
rm kg/valid.txt
: >kg/test.txt
bad 'kg/test.txt: holds no edge'
printf '2 0 3\n0 x 1\n' >kg/test.txt
bad 'kg/test.txt: line 2, column 3'
printf '2 0 3\n0 70000 1\n' >kg/test.txt
bad 'kg/test.txt: line 2, column 3'
