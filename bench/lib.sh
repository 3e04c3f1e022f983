# shellcheck shell=bash
# lib.sh - what the benchmark scripts share. Sourced.
#   GNNSTREAM      the executable; default build/tools/gnnstream
#   GS_BENCH_DIR   folder for graphs and stores, some GB; default build/bench
# Every script prints the machine, each command line that it ran, and a small table.
set -eu
set -o pipefail
export LC_ALL=C
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")
GNNSTREAM=${GNNSTREAM:-$root/build/tools/gnnstream}
dir=${GS_BENCH_DIR:-$root/build/bench}

die()
{
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

[ -x "$GNNSTREAM" ] || die "$GNNSTREAM: not there; build it, or set GNNSTREAM"
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)

# need_disk GIB: of free space in the work folder.
need_disk()
{
    local free
    free=$(df -Pk "$dir" | awk 'NR == 2 { print int($4 / 1048576) }')
    [ "$free" -ge "$1" ] || die "$dir: $free GiB free, $1 needed; set GS_BENCH_DIR to a larger disk"
}

machine()
{
    printf 'machine: %s, %s CPUs, %s memory, %s, %s, %s\n' \
        "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)" "$(nproc)" \
        "$(awk '/MemTotal/ { printf "%.1f GiB", $2 / 1048576 }' /proc/meminfo)" \
        "$(df -PT "$dir" | awk 'NR == 2 { print $2 " on " $1 }')" "$(uname -sr)" "$(date -u +%Y-%m-%d)"
}

# say COMMAND...: prints it, with paths below the root made short.
say()
{
    local line="$*"
    line=${line//$dir/\$GS_BENCH_DIR}
    printf '+ %s\n' "${line//$root\//}" >&2
}

# show COMMAND...: prints it, then runs it.
show()
{
    say "$@"
    "$@"
}

# mib BYTES
mib() { awk -v b="$1" 'BEGIN { printf "%.1f", b / 1048576 }'; }

# field KEY FILE: one value of a JSON object; "a.b" goes into nested ones.
field() { python3 "$here/json_field.py" "$1" "$2"; }

# cold FILES...: their pages leave the cache, so that reading them is reading the disk.
cold()
{
    local f
    sync
    for f in "$@"; do
        dd if="$f" iflag=nocache count=0 status=none
    done
}

# rmat: sets $graph to an RMAT graph of 2^20 vertices, 2^24 edges and 256 float32 features
# (1 GiB of them), made once.
rmat()
{
    graph=$dir/rmat-1m-16m-256
    [ -f "$graph/complete" ] && return
    rm -rf "$graph"
    need_disk 6
    show "$GNNSTREAM" generate rmat "$graph" --vertices 1048576 --edges 16777216 --features 256 --classes 16 --seed 1
    touch "$graph/complete"
}

# dense_store SCALE: sets $store to an RMAT graph of Reddit's density, 150,000 vertices and 44M edges divided by SCALE,
# with 300 float32 features, in 128 parts, made once.
dense_store()
{
    store=$dir/chain/R-$1
    [ ! -f "$store/manifest.json" ] || return 0
    need_disk 3
    mkdir -p "$dir/chain"
    rm -rf "$dir/chain/graph" "$store"
    show "$GNNSTREAM" generate rmat "$dir/chain/graph" --vertices $((150000 / $1)) --edges $((44000000 / $1)) \
        --features 300 --classes 16 --seed 1
    show "$GNNSTREAM" partition "$dir/chain/graph" "$store" --method random --parts 128 --memory 4G
    rm -rf "$dir/chain/graph"
}
