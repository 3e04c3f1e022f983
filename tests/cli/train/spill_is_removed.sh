# --no-cache spills; the folder is gone at the end, wherever it was, also after a failure.
small_store
gnnstream train store --model gcn --epochs 2 --no-cache --metrics m.jsonl >result
! grep -q '"written_bytes": 0,' m.jsonl || die 'nothing was spilled'
nothing_left
mkdir mine && touch mine/file
gnnstream train store --model gcn --epochs 2 --no-cache --spill mine >result
[ "$(ls mine)" = file ] || die "in the spill folder: $(ls mine)"

# Several folders: the same bits, all gone at the end, with what was made; each given once, and none without a name.
train=(gnnstream train store --model gcn --hidden 256 --epochs 2 --no-cache)
"${train[@]}" --save one.safetensors --spill mine >result
"${train[@]}" --save three.safetensors --spill mine,new,./there/../other >result 2>err && die 'a folder in no folder'
mkdir there
"${train[@]}" --save three.safetensors --spill mine,new,./there/../other >result
cmp <(tensors one.safetensors) <(tensors three.safetensors) || die 'other weights from three folders'
[ "$(ls mine)" = file ] && [ ! -e new ] && [ ! -e other ] && [ -z "$(ls there)" ] || die "left: $(ls -d new other)"
ln -s mine link
refused 2 'mine and link are one folder; give it once' "${train[@]}" --spill mine,link
refused 2 'new and ./new are one folder' "${train[@]}" --spill new,./new
refused 2 'mine,,new": a folder has no name' "${train[@]}" --spill mine,,new
refused 2 'mine,": a folder has no name' gnnstream plan store --model gcn --spill mine,
mkdir two,words
refused 2 'two,words: is a name with a comma' "${train[@]}" --spill two,words
ln -s two,words words
"${train[@]}" --spill mine,words >result
[ "$(ls mine)" = file ] && [ ! -e new ] && [ -z "$(ls two,words)" ] || die "left: $(ls -d new) $(ls mine two,words)"
# A run that was killed leaves nothing that the next does not find, in any of them; who is at work there stays.
"${train[@]}" --epochs 100000 --spill mine,words >result 2>&1 &
for _ in $(seq 200); do [ -e words/spill.*/owner ] && break; sleep 0.05; done
alive=$(echo words/spill.*)
"${train[@]}" --spill words,mine >result
[ -d "$alive" ] || die 'the folder of a run that is at work was removed'
kill_it $!
"${train[@]}" --spill words,mine >result
[ "$(ls mine)" = file ] && [ -z "$(ls words/)" ] || die "left by a kill: $(ls mine words/)"

refused 1 'lower --lr' gnnstream train store --model gcn --epochs 20 --no-cache --spill mine --optimizer sgd --lr 1e30
[ "$(ls mine)" = file ] || die "in the spill folder: $(ls mine)"
nothing_left
