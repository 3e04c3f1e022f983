# shellcheck shell=bash
# cases.sh - what the cases share. Sourced before each.

# die WORDS...: the case has failed in a way that no expected file describes.
die()
{
    echo "case: $*"
    exit 70
}

# small_store: a graph of planted classes in ./graph and its store of three parts in ./store.
small_store()
{
    gnnstream generate sbm graph --vertices 1500 --edges 12000 --features 12 --classes 3 --seed 1 >made
    gnnstream partition graph store --parts 3 --method random --seed 1 >made
}

# array FILE SHAPE NUMBERS...: a .npy file of int16.
array()
{
    local file=$1 header bytes='' v
    header="{'descr': '<i2', 'fortran_order': False, 'shape': ($2), }"
    shift 2
    for v in "$@"; do printf -v bytes '%s\\x%02x\\x%02x' "$bytes" $((v & 255)) $((v >> 8 & 255)); done
    # shellcheck disable=SC2059 # the format is the bytes
    { printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "$header" && printf "$bytes"; } >"$file"
}

# graph_of_pairs: 101 vertices in ./graph, of which v has edges of type t to 3 v + 7 t and 5 v + 7 t + 1, modulo 101;
# and pairs of the validation.
graph_of_pairs()
{
    mkdir graph
    local ends=() types=() valid=() valid_types=() v t
    for ((v = 0; v < 101; v++)); do
        for t in 0 1 2; do
            ends+=("$v" $(((3 * v + 7 * t) % 101)) "$v" $(((5 * v + 7 * t + 1) % 101)))
            types+=("$t" "$t")
        done
        valid+=("$v" $(((3 * v + 28) % 101)))
        valid_types+=($((v % 3)))
    done
    array graph/edges.npy '606, 2' "${ends[@]}"
    array graph/edge_types.npy '606,' "${types[@]}"
    array graph/valid_edges.npy '101, 2' "${valid[@]}"
    array graph/valid_edge_types.npy '101,' "${valid_types[@]}"
}

# one_error FILE: what is on stderr, without the line and the caret that follow where an error is about a model's text.
one_error()
{
    sed -E '/:[0-9]+:[0-9]+: /{n;N;s/^    [^\n]*\n[[:space:]]*\^$//;T;d}' "$1"
}

# refused STATUS WORDS COMMAND...: exit status, one line on stderr that holds the words,
# nothing on stdout. For cases that try several commands.
refused()
{
    local want=$1 words=$2 status=0
    shift 2
    "$@" >refused.out 2>refused.err || status=$?
    [ "$status" = "$want" ] || die "exit status $status, expected $want: $*: $(<refused.err)"
    [ "$(one_error refused.err | wc -l)" = 1 ] || die "not one line on stderr: $*: $(<refused.err)"
    grep -Fq -e "$words" refused.err || die "no \"$words\" in: $(<refused.err)"
    [ ! -s refused.out ] || die "words on stdout: $*"
}

# kill_it PID: a job, by SIGKILL, without the shell's words about it.
kill_it()
{
    { kill -KILL "$1" && wait "$1"; } 2>/dev/null || true
}

# turn_over FILE OFFSET: flips one bit of a byte.
turn_over()
{
    local byte
    byte=$(od -An -tu1 -j "$2" -N 1 "$1")
    # shellcheck disable=SC2059 # the format is the byte
    printf "$(printf '\\x%x' $((byte ^ 4)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

# tensors FILE.safetensors: its numbers, without the header.
tensors()
{
    tail -c +$(($(od -An -tu8 -N 8 "$1") + 9)) "$1"
}

# nothing_left: no half-written result and no spill folder, here or in the store.
nothing_left()
{
    local left
    left=$(find . -name '.gnnstream.*' -o -name 'spill.*')
    [ -z "$left" ] || die "left behind: $left"
}
