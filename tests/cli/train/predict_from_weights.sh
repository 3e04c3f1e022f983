# Weights say how they came about: predict takes their model from there, refuses what contradicts it, and needs neither
# labels nor the store that they were trained on.
small_store
cat >mine.gnn <<'TEXT'
layer mine(h[in]) -> [out]:
    param w[out, in], b[out]
    return mean(u.h) @ w' + h @ w' + b
TEXT
gnnstream train store --model ./mine.gnn --layers 3 --hidden 8 --act elu --epochs 9 --lr 0.02 --keep last --save \
    w.safetensors --logits l.npy >result
gnnstream predict store --model mine.gnn --layers 3 --hidden 8 --act elu --weights w.safetensors --logits o.npy \
    >predicted
rm mine.gnn # its text is in the weights
gnnstream predict store --weights w.safetensors --logits p.npy >predicted
cmp o.npy p.npy || die 'other logits without the options'
gnnstream predict store --weights w.safetensors --logits p.npy --json >json
grep -q '^{"epochs": 0, .*"weights": {"model": "mine.gnn", .*}}$' json || die "$(<json)"
grep -Fq 'weights of mine.gnn, 3 layers of 8, trained for 9 epochs on store, this store' predicted ||
    die "$(<predicted)"
gnnstream info w.safetensors >text
grep -Fq 'mine.gnn, layers 3, hidden 8, heads 1, activation elu' text || die "$(<text)"
gnnstream info w.safetensors --json >json
id=$(gnnstream info store --json | grep -o '"id": "[0-9a-f]*"')
for pair in '"model": "mine.gnn"' '"hidden": 8' '"epochs": 9' '"features": 12' '"classes": 3' "\"store_${id#\"}"; do
    grep -Fq "$pair" json || die "no $pair in: $(<json)"
done
gnnstream predict store --weights w.safetensors --logits p.npy --layers 3 --hidden 8 --act elu >predicted
refused 2 '--hidden 64: the weights w.safetensors have 8; leave it out' \
    gnnstream predict store --weights w.safetensors --logits p.npy --hidden 64
refused 2 '--act relu: the weights w.safetensors have elu' \
    gnnstream predict store --weights w.safetensors --logits p.npy --act relu
refused 2 '--layers 2: the weights w.safetensors have 3' \
    gnnstream predict store --weights w.safetensors --logits p.npy --layers 2
refused 2 '--classes 4: the weights w.safetensors have 3' \
    gnnstream predict store --weights w.safetensors --logits p.npy --classes 4
refused 2 '--model gcn: the weights w.safetensors are of mine.gnn, which is another text; leave it out' \
    gnnstream predict store --weights w.safetensors --logits p.npy --model gcn

# rows that batch statistics alone read are in the file, and a prediction needs none of them
cat >alone.gnn <<'TEXT'
layer alone(x[in]) -> [out]:
    param rows[vertices, out]
    return sum(u.rows, self) + rows
TEXT
gnnstream train store --model ./alone.gnn --layers 2 --hidden 2 --norm batch --epochs 1 --save a.safetensors >result \
    2>err
gnnstream predict store --weights a.safetensors --logits a.npy >predicted 2>err

# what is put around layers is in the text
gnnstream train store --model gcn --norm batch --jk cat --residual --hidden 8 --epochs 3 --save n.safetensors >result
gnnstream predict store --weights n.safetensors --logits n.npy >predicted
gnnstream predict store --weights n.safetensors --model gcn --norm batch --jk cat --residual --logits o.npy >predicted
cmp o.npy n.npy || die 'other logits without what stands around layers'
refused 2 'are in the text that the weights n.safetensors have' \
    gnnstream predict store --weights n.safetensors --logits p.npy --norm batch
refused 2 'are of gcn, which is another text' \
    gnnstream predict store --weights n.safetensors --logits p.npy --model gcn --norm layer

# another store: the same graph without labels, in other parts
mkdir bare
cp graph/edges.npy graph/features.npy bare
gnnstream partition bare other --parts 2 >made
gnnstream predict other --weights w.safetensors --logits o.npy >predicted
grep -Fq 'trained for 9 epochs on store, which is another store' predicted || die "$(<predicted)"
grep -Fq 'no vertex of a split has a label here: loss and accuracies are not known' predicted || die "$(<predicted)"
grep -q '^loss\|^test' predicted && die "figures from nowhere: $(<predicted)"
[ "$(stat -c %s o.npy)" = "$(stat -c %s l.npy)" ] || die 'logits of another size'
gnnstream generate sbm wide --vertices 100 --edges 500 --features 13 --classes 3 >made
gnnstream partition wide wide.store --parts 1 >made
refused 2 'wide.store: has 13 features a vertex; the weights w.safetensors were trained on 12' \
    gnnstream predict wide.store --weights w.safetensors --logits p.npy
gnnstream generate sbm many --vertices 100 --edges 500 --features 12 --classes 5 >made
gnnstream partition many many.store --parts 1 >made
refused 2 "many.store: the store's labels are of 5 classes, the weights are for 3" \
    gnnstream predict many.store --weights w.safetensors --logits p.npy

# a file of another program says nothing of itself: options say it, as they always did
gnnstream train store --model gcn --hidden 8 --epochs 3 --save g.safetensors >result
gnnstream predict store --weights g.safetensors --logits l.npy >predicted
if command -v python3 >/dev/null; then
    python3 - <<'PY'
import json, struct
raw = open("g.safetensors", "rb").read()
n = struct.unpack("<Q", raw[:8])[0]
header = json.loads(raw[8:8 + n])
notes = header["__metadata__"]
assert notes["format"] == "pt" and notes["lr"] == "0.01" and notes["optimizer"] == "adam"
assert "GCN" in notes["model_text"]
header["__metadata__"] = {"format": "pt"}
text = json.dumps(header).encode()
open("plain.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + raw[8 + n:])
PY
    refused 2 '--model: none given, and plain.safetensors does not say what model it is of' \
        gnnstream predict store --weights plain.safetensors --logits p.npy
    gnnstream predict store --weights plain.safetensors --logits p.npy --model gcn --hidden 8 >predicted
    cmp l.npy p.npy || die 'predict without notes gives other logits'
    refused 1 'give --classes' \
        gnnstream predict other --weights plain.safetensors --logits p.npy --model gcn --hidden 8
    gnnstream predict other --weights plain.safetensors --logits p.npy --model gcn --hidden 8 --classes 3 >predicted
fi
# the program that trained the weights is the one that is tried first, so logits have its bits
gnnstream train store --model gcn --epochs 3 --no-move --save m.safetensors --logits l.npy >result
gnnstream predict store --weights m.safetensors --logits p.npy >predicted
cmp l.npy p.npy || die 'another program than that of the weights'
nothing_left
