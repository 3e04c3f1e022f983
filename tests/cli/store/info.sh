# Text and JSON say what was put in.
small_store
gnnstream info store >text
grep -q '1,500 in 3 parts' text || die "no vertices in: $(<text)"
grep -q '12 columns of f32' text || die "no features in: $(<text)"
grep -q '3 classes' text || die "no classes in: $(<text)"
gnnstream info --json store >json
[ "$(wc -l <json)" = 1 ] || die 'JSON is not one line'
for pair in '"vertices": 1500' '"parts": 3' '"features": 12' '"classes": 3' '"feature_type": "f32"' \
    '"method": "random"'; do
    grep -Fq "$pair" json || die "no $pair in: $(<json)"
done
if command -v python3 >/dev/null; then
    python3 -c 'import json, sys; json.load(open(sys.argv[1]))' json
fi
gnnstream verify store >text
# weights under any name
gnnstream train store --model gcn --hidden 4 --epochs 1 --save some.weights >made
gnnstream info some.weights >text
grep -q '^model      gcn, layers 2, hidden 4' text || die "$(<text)"
