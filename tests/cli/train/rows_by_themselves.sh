# Where a device's edges name few of the rows that lie near each other, these are copied to it by themselves over a slow
# link: the bytes are those of distinct rows that a block's edges name, counted here from the graph, and losses and
# weights are the same to the bit as of blocks of 4 KiB, on one device and on two. So are those that a device has made,
# on their way to the host for the other one.
gnnstream generate rmat graph --vertices 16384 --edges 20000 --features 64 --classes 3 --seed 3 >made
gnnstream partition graph store --parts 16 --method natural >made
echo '{"switches": [{"devices": 1, "host_bps": 3e8}]}' >one.json
echo '{"switches": [{"devices": 1, "host_bps": 3e8}, {"devices": 1, "host_bps": 3e8}]}' >two.json
options=(store --model sage --hidden 16 --no-swap --no-prune --no-hoist --device-memory 6M) # one program for all
one=(--device cpu:1 --topology one.json)
gnnstream plan "${options[@]}" "${one[@]}" --tasks >tasks
python3 - <<'PY' || exit 70
import array, re

with open("graph/edges.npy", "rb") as f:
    data = f.read()
e = array.array("q")
e.frombytes(data[10 + int.from_bytes(data[8:10], "little"):])
edges = list(zip(e[0::2], e[1::2]))
interval = 16384 // 16
names = [{}, {}] # by destination and by source: of a chunk, the rows that its edges name
for source, target in edges:
    names[0].setdefault((target // interval, source // interval), set()).add(source)
    names[1].setdefault((source // interval, target // interval), set()).add(target)

moves, at = [], {} # at: which move brought what is at a place
number = lambda line, word: int(m.group(1)) if (m := re.search(rf" {word} (\d+)", line)) else 0
first = min(number(l, "file") for l in open("tasks") if re.match(r"\d+ edges ", l))
for line in open("tasks"):
    if re.match(r"\d+ upload ", line):
        place = re.search(r" at (arena\+\d+)", line).group(1)
        at[place] = {"rows": number(line, "rows"), "named": set()} if " row_bytes " in line else None
        moves += [at[place]] if at[place] else []
    elif re.match(r"\d+ edges ", line):
        for place in re.findall(r" (?:from|reg) (arena\+\d+)", line):
            if at.get(place):
                at[place]["named"] |= names[number(line, "file") - first][number(line, "target"),
                                                                           number(line, "operand")]
assert len(moves) > 50, len(moves)
for m in moves:
    assert m["rows"] == len(m["named"]), m
PY
run() { gnnstream train "${options[@]}" --epochs 3 --seed 2 "$@" >out 2>err || die "$*: $(<err)"; }
bytes() { python3 -c 'import json; print([json.loads(l) for l in open("m")][-1]["copied_'"$1"'_bytes"])'; }
same() { cmp <(tensors "$1") <(tensors "$2") || die "other weights: $3"; }
run "${one[@]}" --save whole --no-pack
run "${one[@]}" --save rows
same whole rows 'one device'
two=(--device cpu:2 --topology two.json)
run "${two[@]}" --save whole --metrics m --no-pack
blocks=$(($(bytes in) + $(bytes out))) home=$(bytes out)
run "${two[@]}" --save rows --metrics m
rows=$(($(bytes in) + $(bytes out)))
[ "$((rows * 5))" -lt "$((blocks * 4))" ] || die "$rows bytes of rows, $blocks of blocks"
[ "$(($(bytes out) * 2))" -lt "$home" ] || die "$(bytes out) bytes of rows to the host, $home of blocks"
same whole rows 'two devices'
