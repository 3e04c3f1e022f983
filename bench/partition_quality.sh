#!/usr/bin/env bash
# partition_quality.sh - how few rows does an order make a pass over the edges read, and at what cost?
#
# Graphs: A, sbm of Amazon's shape at 1:4 (2.1M vertices, 58M edges); B, sbm of 10M vertices and
# 120M edges; both with planted communities of 2000 and 20 % of the edges between them. For every method one line:
#   alpha    distinct sources of each part's in-edges, summed over parts / vertices (`gnnstream info`)
#   cut      edges between parts
#   seconds  ordering, and all of partition
#   peak     most memory that was resident, under the bound given
# Targets: lp's alpha at most 1.15 x METIS's, and at most 0.5 x random's.
#   GS_GRAPHS   default "A B"
#   GS_METHODS  default "metis lp fennel random"
#   GS_METIS_MEMORY  bound for METIS, default 12G (A takes 2.7 GiB, B about 8); the others get 1G
. "$(dirname "$0")/lib.sh"

graphs=${GS_GRAPHS:-A B}
methods=${GS_METHODS:-metis lp fennel random}
out=$dir/partition-quality
store=$out/store
mkdir -p "$out"
trap 'rm -rf "$store"' EXIT

# sbm NAME VERTICES EDGES: sets $graph, made once.
sbm()
{
    graph=$dir/sbm-$1
    [ -f "$graph/complete" ] && return
    rm -rf "$graph"
    need_disk 10
    show "$GNNSTREAM" generate sbm "$graph" --vertices "$2" --edges "$3" --features 0 --classes 16 --seed 1
    touch "$graph/complete"
}

# row GRAPH PARTS METHOD MEMORY: partitions, and adds a line to the table.
row()
{
    rm -rf "$store"
    show "$GNNSTREAM" partition "$graph" "$store" --method "$3" --parts "$2" --memory "$4" >"$out/partition.txt"
    "$GNNSTREAM" info "$store" --json >"$out/info.json"
    python3 - "$1" "$2" "$3" "$4" "$out/partition.txt" "$out/info.json" >>"$out/table.txt" <<'EOF_PY'
import json, re, sys
graph, parts, asked, memory = sys.argv[1:5]
text, info = open(sys.argv[5]).read(), json.load(open(sys.argv[6]))
cut = re.search(r"([0-9.]+) % of the edges", text).group(1)
seconds, order = re.search(r"^([0-9.]+) s \(.*ordering ([0-9.]+)", text, re.M).groups()
peak = re.search(r"at most (.*) resident", text).group(1)
print(graph, parts, info["method"], f"{info['sources_per_vertex']:.3f}", cut, order, seconds, memory, peak, sep="|")
EOF_PY
}

machine
rm -f "$out/table.txt"
for g in $graphs; do
    case $g in
        A) sbm A 2100000 58000000; parts="8 32 256" ;;
        B) sbm B 10000000 120000000; parts="64" ;;
        *) die "GS_GRAPHS: '$g' is none of A, B" ;;
    esac
    for p in $parts; do
        for m in $methods; do
            memory=1G
            [ "$m" = metis ] && memory=${GS_METIS_MEMORY:-12G}
            row "$g" "$p" "$m" "$memory"
        done
    done
done

python3 - "$out/table.txt" <<'EOF_PY'
import sys
rows = [line.rstrip("\n").split("|") for line in open(sys.argv[1])]
alpha = {(g, p, m): float(a) for g, p, m, a, *_ in rows}
print("\ngraph parts method    alpha  cut %  ordering s  all s  bound  peak")
for g, p, m, a, cut, order, seconds, memory, peak in rows:
    print(f"{g:5} {p:>5} {m:8} {a:>6} {cut:>6} {order:>11} {seconds:>6} {memory:>6}  {peak}")
failed = False
for (g, p, m), a in alpha.items():
    if m != "lp":
        continue
    for other, bar in (("metis", 1.15), ("random", 0.5)):
        if (g, p, other) in alpha:
            ratio = a / alpha[g, p, other]
            failed |= ratio > bar
            print(f"{g} in {p} parts: lp / {other} = {ratio:.3f} (target {bar}){' MISSED' if ratio > bar else ''}")
sys.exit(failed)
EOF_PY
