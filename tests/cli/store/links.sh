# No link is followed out of a store; the store itself may be reached by one.
small_store
ln -s store there
gnnstream info there >out
gnnstream verify there >out
gnnstream train there --model gcn --epochs 1 >out
for file in store/*; do
    name=${file##*/}
    mv "$file" "kept.$name"
    ln -s "../kept.$name" "$file"
    for command in info verify 'train --model gcn --epochs 1'; do
        # shellcheck disable=SC2086 # a list of words
        refused 1 "store/$name: is a link" gnnstream ${command%% *} store ${command#"${command%% *}"}
    done
    rm "$file"
    mv "kept.$name" "$file"
done
gnnstream verify store >out
