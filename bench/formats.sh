#!/usr/bin/env bash
# formats.sh - do other people's layouts go in within a hard memory limit, and as fast as their compression allows? An
# OGB folder (csv.gz) and an IGB folder (features and labels without headers) of 2M vertices, 8M edges and 64 features
# are partitioned with --memory 256M inside a memory cgroup of 320 MiB in which the page cache counts too. Then as many
# edges in each other form of text. The last lines say compressed bytes over the seconds of reading (unpacking, parsing,
# writing edges to a temporary file), and beside it what zlib alone takes for the same files on one processor.
#   GS_SCALE  divides vertices and edges, default 1
# Needs root and a writable cgroup file system (v1 or v2); fails, saying so, without.
. "$(dirname "$0")/lib.sh"

scale=${GS_SCALE:-1}
limit=320M
out=$dir/formats
trap 'rm -rf "$out/store"' EXIT
forms="ogb igb edges.snap.gz edges.csv.gz edges.mtx.gz edges.graph.gz"
machine
mkdir -p "$out"
need_disk 6
[ -f "$out/made-$scale" ] || {
    rm -rf "$out/ogb" "$out/igb" "$out"/edges.*
    show python3 "$here/formats.py" make "$out" "$scale"
    : >"$out/made-$scale"
}
for layout in $forms; do
    rm -rf "$out/store"
    sync
    say limited.py $limit "$GNNSTREAM" partition "$out/$layout" "$out/store" --memory 256M --method fennel
    python3 "$here/limited.py" $limit "$out/$layout.json" "$GNNSTREAM" partition "$out/$layout" "$out/store" \
        --memory 256M --method fennel >"$out/$layout.log" 2>"$out/$layout.err" ||
        { cat "$out/$layout.err" >&2; die "$layout did not get through in $limit"; }
    cat "$out/$layout.log"
    printf '%s: %.1f s, %.1f MiB resident at most, %.1f MiB in the cgroup, %d oom kills\n' "$layout" \
        "$(field seconds "$out/$layout.json")" "$(mib "$(field resident_peak_bytes "$out/$layout.json")")" \
        "$(mib "$(field cgroup_peak_bytes "$out/$layout.json")")" "$(field oom_kills "$out/$layout.json")"
done
for layout in $forms; do
    [ "$layout" = igb ] || python3 "$here/formats.py" rates "$out/$layout.log" "$out/$layout"
done
