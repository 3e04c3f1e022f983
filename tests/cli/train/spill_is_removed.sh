# --no-cache spills; the folder is gone at the end, wherever it was, also after a failure.
small_store
gnnstream train store --model gcn --epochs 2 --no-cache --metrics m.jsonl >result
! grep -q '"written_bytes": 0,' m.jsonl || die 'nothing was spilled'
nothing_left
mkdir mine && touch mine/file
gnnstream train store --model gcn --epochs 2 --no-cache --spill mine >result
[ "$(ls mine)" = file ] || die "in the spill folder: $(ls mine)"
refused 1 'lower --lr' gnnstream train store --model gcn --epochs 20 --no-cache --spill mine --optimizer sgd --lr 1e30
[ "$(ls mine)" = file ] || die "in the spill folder: $(ls mine)"
nothing_left
