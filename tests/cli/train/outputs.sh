# Outputs never replace what they must not: inputs, parts of stores, each other, links, devices.
small_store
printf 'layer m(h[in]) -> [out]:\n    param W[out, in]\n    return sum(u.h) @ W%s\n' "'" >m.gnn
gnnstream train store --model gcn --epochs 1 --save w.safetensors >out 2>err || die "$(<err)"
mkdir others
ln store/edges.dest.bin others/linked.bin
ln w.safetensors others/weights.safetensors
ln -s ../w.safetensors others/link
ln -s . here
inputs='store others m.gnn w.safetensors'
# shellcheck disable=SC2086 # a list of words
before=$(find $inputs -type f -exec md5sum {} + | sort)

# refused PATTERN ARGUMENTS...: status 2 or 1 as $wrong says, one line that matches.
refused()
{
    local pattern=$1 status=0
    shift
    gnnstream "$@" >out 2>err || status=$?
    [ $status = "$wrong" ] && [ "$(wc -l <err)" = 1 ] && grep -Eq -- "$pattern" err ||
        die "status $status of $*: $(<err)"
    # shellcheck disable=SC2086
    [ "$before" = "$(find $inputs -type f -exec md5sum {} + | sort)" ] ||
        die "$* wrote to an input"
    nothing_left
}

train=(train store --model gcn --epochs 1)
predict=(predict store --model gcn --weights w.safetensors)
wrong=2
refused 'store/manifest.json: is in the folder of a store' "${train[@]}" --metrics store/manifest.json
refused 'store/new.npy: is in the folder of a store' "${train[@]}" --logits store/new.npy
refused 'is in the folder of a store' "${train[@]}" --save here/store/../store/w
refused 'others/linked.bin: is a file of the store' "${train[@]}" --trace others/linked.bin
refused 'w.safetensors: is the file of the weights' "${predict[@]}" --logits w.safetensors
refused 'is the file of the weights' "${predict[@]}" --logits others/weights.safetensors
refused 'is the file of --init' "${train[@]}" --init w.safetensors --metrics here/w.safetensors
refused 'm.gnn: is the file of --model' train store --model m.gnn --epochs 1 --save ./m.gnn
refused '--save and --logits both name' "${train[@]}" --save x --logits here/x
refused '--save and --trace both name' "${train[@]}" --save others/../y --trace y
# Checkpoints have a folder of their own, which is no store's and no input's.
mkdir kept
for folder in kept kept/ new ./here/new; do
    refused 'is in the folder of --checkpoint' "${train[@]}" --checkpoint $folder --save ${folder%/}/w
done
refused 'is in the folder of --checkpoint' "${train[@]}" --checkpoint kept --metrics here/kept/metrics.jsonl
refused '--save new: is in the folder of --checkpoint' "${train[@]}" --checkpoint new/ --save new
refused 'is in the folder of --resume' "${train[@]}" --resume kept --trace kept/trace.json
refused '--checkpoint store: is in the folder of a store' "${train[@]}" --checkpoint store
refused '--checkpoint here/store/kept: is in the folder of a store' "${train[@]}" --checkpoint here/store/kept
refused 'is the file of --init' "${train[@]}" --init w.safetensors --checkpoint others/weights.safetensors
refused 'is the file of --model' train store --model m.gnn --epochs 1 --checkpoint m.gnn
[ ! -e new ] && [ -z "$(ls kept)" ] || die 'a refused folder was made'
# Nor do they replace arrays of a graph, or files of another kind: those of their own they do, and empty ones.
inputs='store others graph m.gnn w.safetensors'
# shellcheck disable=SC2086
before=$(find $inputs -type f -exec md5sum {} + | sort)
refused 'graph/labels.npy: is an array of the graph' "${train[@]}" --logits graph/labels.npy
refused 'graph/features.npy: is an array of the graph' "${predict[@]}" --argmax here/graph/features.npy
wrong=1
refused 'metrics graph/edges.npy: is there already and is no JSON' "${train[@]}" --metrics graph/edges.npy
refused 'is no JSON file, so it is not replaced; remove it or give' "${train[@]}" --trace m.gnn
refused 'is no .npy file' "${train[@]}" --logits m.gnn
refused 'is no .npy file' "${predict[@]}" --argmax graph/meta.json
refused 'is no .safetensors file' "${train[@]}" --save graph/edges.npy
refused 'is no text' "${predict[@]}" --logits no.npy --ids graph/edges.npy
refused 'm.gnn: is there already and is no HTML' report made -o m.gnn
rm -f no.npy
inputs='store others m.gnn w.safetensors'
# shellcheck disable=SC2086
before=$(find $inputs -type f -exec md5sum {} + | sort)
touch empty.safetensors
gnnstream "${train[@]}" --save empty.safetensors --metrics own.jsonl --logits own.npy --trace own.json >out 2>err ||
    die "$(<err)"
gnnstream "${train[@]}" --save empty.safetensors --metrics own.jsonl --logits own.npy --trace own.json >out 2>err ||
    die "its own: $(<err)"
gnnstream predict store --model gcn --weights empty.safetensors --logits own.npy --ids own.txt >out 2>err ||
    die "$(<err)"
gnnstream predict store --model gcn --weights empty.safetensors --logits own.npy --ids own.txt >out 2>err ||
    die "its own: $(<err)"
wrong=1
refused 'others/link: is a link' "${train[@]}" --save others/link
rm -f w2
ln -s nowhere w2
refused 'w2: is a link' "${train[@]}" --save w2
rm w2
[ ! -e x ] && [ ! -e y ] && [ ! -e nowhere ] || die 'a refused output was made'

# What once was the temporary name of one may be another's.
gnnstream "${train[@]}" --save x --logits x.tmp >out 2>err || die "$(<err)"
gnnstream predict store --model gcn --weights x --logits again.npy >out 2>err || die "$(<err)"
cmp x.tmp again.npy || die 'logits of the weights that were saved beside differ'

# Pipes, /dev/stdout and /dev/null are written to; a pipe that nobody reads is said.
mkfifo pipe
cat pipe >got &
gnnstream predict store --model gcn --weights x --logits pipe >out 2>err || die "$(<err)"
wait
cmp got again.npy || die 'logits through a pipe differ'
cat pipe >got &
gnnstream train store --model gcn --epochs 3 --metrics pipe --save /dev/null >out 2>err || die "$(<err)"
wait
[ "$(grep -c '^{"epoch"' got)" = 3 ] && [ -p pipe ] && [ -c /dev/null ] || die "through a pipe: $(<got)"
gnnstream train store --model gcn --epochs 2 --metrics /dev/stdout >out 2>err || die "$(<err)"
[ "$(grep -c '^{"epoch"' out)" = 2 ] || die "on stdout: $(<out)"
status=0
timeout 60 gnnstream "${train[@]}" --metrics pipe >out 2>err || status=$?
[ $status = 1 ] && grep -q 'pipe: is a pipe that nobody reads' err || die "no reader: status $status, $(<err)"
nothing_left
