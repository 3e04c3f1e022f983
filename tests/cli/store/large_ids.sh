# Ids of 64 bits without a sign: a message does not name another one.
# array FILE SHAPE BYTES: u64; the bytes are printf's
array()
{
    local head="{'descr': '<u8', 'fortran_order': False, 'shape': ($2), }"
    # shellcheck disable=SC2059 # the format is the bytes
    { printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "$head" && printf "$3"; } >"$1"
}
one='\x01\0\0\0\0\0\0\0' huge='\x05\0\0\0\0\0\0\x80'
mkdir graph
array graph/edges.npy '2, 2' "$one$one$one$huge"
refused 1 'row 1, column 1: vertex 9223372036854775807 or more is not one of' gnnstream partition graph store --parts 1
array graph/edges.npy '2, 2' "$one$one$one$one"
array graph/labels.npy '2,' "$one$huge"
refused 1 'row 1: label 9223372036854775807 or more is outside' gnnstream partition graph store --parts 1
rm graph/labels.npy
array graph/edge_types.npy '2,' "$huge$one"
refused 1 'row 0: type 9223372036854775807 or more is outside' gnnstream partition graph store --parts 1
# As names they are what they are.
printf '18446744073709551615 9223372036854775808\n' >text
gnnstream partition text store --parts 1 --ids compact >out 2>err || die "$(<err)"
[ "$(tr -d '\0' <store/names.bin)" = '9223372036854775808
18446744073709551615' ] || die "$(tr -d '\0' <store/names.bin)"
