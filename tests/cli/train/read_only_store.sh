# A store that can only be read is trained from all the same where everything fits in memory; what wants a
# folder to write to says so.
small_store
gnnstream train store --model gcn --epochs 3 --no-prune --save here.safetensors >result

if [ "$(id -u)" = 0 ]; then
    # Root may write to any folder, but not to a file system that was mounted for reading.
    mkdir read_only
    if ! mount --bind store read_only 2>/dev/null; then
        echo 'nothing can be mounted here: only the plain run was tried'
        exit 0
    fi
    trap 'umount -l read_only' EXIT
    mount -o remount,bind,ro read_only
else
    cp -r store read_only
    chmod -R a-w read_only
fi
gnnstream train read_only --model gcn --epochs 3 --save there.safetensors >result
cmp <(tensors here.safetensors) <(tensors there.safetensors) || die 'other weights from a store that can only be read'
refused 1 '--spill' gnnstream train read_only --model gcn --epochs 1 --no-cache
mkdir mine
gnnstream train read_only --model gcn --epochs 1 --no-cache --spill mine >result
nothing_left
