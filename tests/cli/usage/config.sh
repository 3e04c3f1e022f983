# --config: names as on the command line, which wins; what is wrong is named with file, line and column.
small_store
cat >o.yaml <<'YAML'
# how it is trained
model: appnp
hidden: 16
epochs: 4          # a few
lr: 2e-2
set: {alpha: 0.2, steps: 3}
no-prune: true
no-swap: false
host-memory: "1G"
save: w.safetensors
YAML
gnnstream train store --config o.yaml >result
mv w.safetensors first.safetensors
gnnstream train store --model appnp --hidden 16 --epochs 4 --lr 0.02 --set alpha=0.2,steps=3 --no-prune \
    --host-memory 1G --save second.safetensors >result
tensors first.safetensors >first
tensors second.safetensors >second
cmp first second || die 'other weights than with the same options'
head -c 4000 first.safetensors | grep -aq '"config":"o.yaml"' || die 'the file is not named in the weights'
head -c 4000 first.safetensors | grep -aq '"lr":"0.02"' || die 'options of the file are not in the weights'

# the command line wins, wherever it stands
gnnstream train store --epochs 2 --config=o.yaml --metrics m.jsonl >result
[ "$(wc -l <m.jsonl)" = 2 ] || die "$(wc -l <m.jsonl) epochs"
gnnstream plan store --config o.yaml --json >result
echo 'json: true' >>o.yaml
gnnstream plan store --config o.yaml >again
[ "$(head -c 20 result)" = "$(head -c 20 again)" ] || die "$(head -c 200 again)"
printf 'weights: first.safetensors\nlogits: l.npy\nsoftmax: true\n' >p.yaml
gnnstream predict store --config p.yaml >result
[ -s l.npy ] || die 'no logits'
printf 'parts: 3\nmethod: random\nsplit: [0.5, 0.2, 0.3]\nforce: true\n' >s.yaml
mv graph/train_idx.npy graph/valid_idx.npy graph/test_idx.npy .
gnnstream partition graph other --config s.yaml >result
grep -q '^3 parts by random' result || die "$(<result)"
printf '# nothing\n' >none.yaml
gnnstream info store >result
gnnstream plan store --config none.yaml --model gcn >result

# bad TEXT WORDS
bad()
{
    printf -- "$1" >bad.yaml
    refused 2 "gnnstream train: bad.yaml:$2" gnnstream train store --config bad.yaml
}
bad 'model: gcn\nhiden: 64\n' '2:1: unknown option hiden; did you mean hidden'
bad 'model: gcn\n--hidden: 64\n' '2:1: unknown option --hidden'
bad 'hidden: many\n' '1:1: --hidden many: must be a whole number from 1'
bad 'hidden: 8\nlr: 1\nhidden: 9\n' '3:1: hidden stands here a second time, after line 1'
bad 'no-prune: 1\n' '1:1: no-prune 1: must be true or false'
bad 'lr:\nhidden: 3\n' '1:4: lr: has no value'
bad 'hidden: {a: 1}\n' '1:1: hidden: takes no NAME: NUMBER; that is for set'
bad 'hidden: [[1]]\n' '1:10: hidden: must be a word'
bad 'hidden: [\n' '2:1: no YAML: '
bad '- hidden\n' '1:1: must be options'
bad 'config: o.yaml\n' '1:1: config: a file of options names no other'
bad 'hidden: &x 1\nlayers: *x\n' '2:9: layers: must be a word'
bad 'hidden: 1\n---\nhidden: 2\n' '2:1: a second document'
bad 'optimizer: adm\n' '1:1: --optimizer adm: must be one of adam|adamw|sgd'
refused 2 '--config nosuch.yaml: No such file' gnnstream train store --config nosuch.yaml
refused 2 'unknown option --config' gnnstream info store --config o.yaml
