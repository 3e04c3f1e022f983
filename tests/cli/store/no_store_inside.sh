# Nothing is made in a store's folder, however it is named: neither a store nor a graph. Beside it, and in its place,
# both can be.
small_store
ls store >before
ln -s store there
mkdir empty other
for place in store/sub store/sub/ there/sub empty/../store/sub ./store/./sub; do
    refused 1 'is in the folder of a store; choose another' gnnstream partition graph "$place" --parts 2
    refused 1 'is in the folder of a store; choose another' gnnstream partition graph "$place" --parts 2 --force
    refused 1 'is in the folder of a store; choose another' gnnstream generate sbm "$place" --vertices 50 --edges 90
done
mkdir store/empty
refused 1 'store/empty: is in the folder of a store' gnnstream partition graph store/empty --parts 2
rmdir store/empty
ls store | cmp - before
gnnstream verify store >out
gnnstream partition graph other/../store/../beside --parts 2 >out
gnnstream partition graph other --parts 2 >out
gnnstream partition graph store/ --parts 2 --force >out
[ "$(gnnstream info store --json | grep -c '"parts": 2')" = 1 ] || die 'the store is not the new one'
cd store
refused 1 'sub: is in the folder of a store' gnnstream partition ../graph sub --parts 2
