# shellcheck shell=bash
# lib.sh - what the end-to-end tests share. Sourced, with
#   GNNSTREAM, REFERENCE   the two programs
#   GS_TEST_DATA           folder of real graphs, default ../shared/data beside the
#                          sources; may be absent
# The tests drive the engine through its command line alone. They need bash,
# coreutils, awk and sed, nothing else.
set -u
export LC_ALL=C
: "${GNNSTREAM:?}" "${REFERENCE:?}"
: "${GS_TEST_DATA:=$(dirname "${BASH_SOURCE[0]}")/../../../shared/data}"

failures=0
checks=0
work=$(mktemp -d "$PWD/gs_e2e.XXXXXX") || exit 99
cleanup() { rm -rf "$work"; }
trap cleanup EXIT

fail()
{
    failures=$((failures + 1))
    printf 'FAIL %s\n' "$1"
    [ -n "${2:-}" ] && [ -s "$2" ] && sed 's/^/     | /' "$2" | head -20
    return 0
}
pass() { checks=$((checks + 1)); }
note() { printf 'NOTE %s\n' "$1"; }

# Ends the test; a run in which nothing was checked is no success.
finish()
{
    printf '%d checks, %d failures\n' "$checks" "$failures"
    [ "$failures" -eq 0 ] && [ "$checks" -gt 0 ]
    exit $?
}

# run NAME COMMAND...: must succeed and say nothing on stderr.
run()
{
    local name=$1 status
    shift
    "$@" >"$work/stdout" 2>"$work/stderr"
    status=$?
    if [ $status -ne 0 ]; then
        fail "$name: exit status $status of: $*" "$work/stderr"
        return 1
    fi
    if [ -s "$work/stderr" ]; then
        fail "$name: words on stderr of: $*" "$work/stderr"
        return 1
    fi
    pass
}

# one_error FILE: what is on stderr, without the line and the caret that follow where an error is about a model's text,
# and without what Open MPI's mpirun says of one that failed.
one_error()
{
    sed -E '/^-{60,}$/,/^-{60,}$/d; /:[0-9]+:[0-9]+: /{n;N;s/^    [^\n]*\n[[:space:]]*\^$//;T;d}' "$1"
}

# refuse STATUS PATTERN COMMAND...: must fail with this status, nothing on stdout, and one
# line on stderr that matches the extended regular expression (any case).
refuse()
{
    local want=$1 pattern=$2 got
    shift 2
    timeout 60 "$@" >"$work/stdout" 2>"$work/stderr"
    got=$?
    if [ "$got" -ne "$want" ]; then
        fail "exit status $got, expected $want: $*" "$work/stderr"
    elif [ "$(one_error "$work/stderr" | wc -l)" -ne 1 ]; then
        fail "not one line on stderr: $*" "$work/stderr"
    elif ! grep -Eiq -e "$pattern" "$work/stderr"; then
        fail "stderr does not match /$pattern/: $*" "$work/stderr"
    elif [ -s "$work/stdout" ]; then
        fail "a failure wrote to stdout: $*" "$work/stdout"
    else
        pass
        return 0
    fi
    return 1
}

# compare NAME A B TOLERANCE: two .npy or two .safetensors, the second the yardstick.
compare()
{
    if "$REFERENCE" compare "$2" "$3" --tolerance "$4" >"$work/compare" 2>&1; then
        pass
    else
        fail "$1" "$work/compare"
        return 1
    fi
}

# column KEY FILE: the values of a key in a file of one JSON object a line.
column() { sed -n "s/.*\"$1\": *\([^,}]*\).*/\1/p" "$2"; }

# total: sum of the numbers on stdin.
total() { awk '{ s += $1 } END { printf "%.0f\n", s }'; }

# near NAME A B TOLERANCE: |A - B| <= TOLERANCE * max(1e-30, |B|).
near()
{
    if awk -v a="$2" -v b="$3" -v t="$4" 'BEGIN {
            d = a - b; if (d < 0) d = -d; m = b < 0 ? -b : b
            exit !(a != "" && b != "" && d == d && d <= t * m + 1e-30) }'; then
        pass
    else
        fail "$1: $2, expected $3 within a relative $4"
        return 1
    fi
}

# input_of KIND: sets $input to a made graph, or a real one, made once.
input_of()
{
    case $1 in
    cora | dblp)
        input=$GS_TEST_DATA/$1
        if [ ! -f "$input/edges.npy" ]; then
            echo "SKIP no $1 in GS_TEST_DATA ($GS_TEST_DATA)"
            exit 77
        fi
        ;;
    *)
        input=$work/$1
        [ -d "$input" ] || "$REFERENCE" graph "$1" "$input" || exit 99
        ;;
    esac
}

# trace_of_a_chain TRACE: of four devices, of which each but the first is handed something by the one before.
trace_of_a_chain()
{
    run "the trace shows what was handed on" python3 - "$1" <<'END'
import json, sys
events = json.load(open(sys.argv[1]))["traceEvents"]
tracks = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
spans = [e for e in events if e["ph"] == "X"]
for d in range(4):
    assert any(tracks[e["tid"]] == f"device {d}" for e in spans)
    assert any(tracks[e["tid"]] == f"host to device {d}" for e in spans)
    handed = [e for e in spans if tracks[e["tid"]] == f"chain to device {d}"]
    assert (d > 0) == bool(handed) and all(e["name"] == "forward" and e["args"]["from"] == d - 1 for e in handed)
END
}

# model_of MODEL: sets $text, what --model is to the engine: the name, or a text beside this file.
model_of()
{
    text=$(dirname "${BASH_SOURCE[0]}")/texts/$1.gnn
    [ -e "$text" ] || text=$1
}

# add_types GRAPH: its edges are of 3 types, in turn.
add_types()
{
    local edges
    edges=$(head -c 128 "$1/edges.npy" | tail -c +11 | sed -n "s/.*(\([0-9]*\), 2).*/\1/p")
    {
        printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '|u1', 'fortran_order': False, 'shape': ($edges,), }"
        yes abc | tr -d '\n' | tr abc '\000\001\002' | head -c "$edges"
    } >"$1/edge_types.npy"
}

# first ROWS BYTES FILE OF: rows of an array, or of what is in one byte each.
first()
{
    local shape="($1, 2)" type='<i8'
    [ "$2" -gt 1 ] || shape="($1,)" type='|u1'
    printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '$type', 'fortran_order': False, 'shape': $shape, }" >"$3"
    tail -c +129 "$4" | head -c $(($1 * $2)) >>"$3"
}
