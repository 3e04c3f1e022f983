# Options that the network of a text or the device has no use for are named, in one line each, as are files that a plan
# does not read.
small_store
cat >own.gnn <<'TEXT'
layer mine(h[in]) -> [out]:
    param w[out, in]
    return mean(u.h) @ w'
network(x[in]) -> [out]:
    # the hidden width is its own, and so is act
    return mine(relu(mine(x, 8)), out)
TEXT
gnnstream train store --model own.gnn --epochs 1 >result 2>err
[ ! -s err ] || die "$(<err)"
for option in '--layers 3' '--hidden 32' '--act elu' '--dropout 0.5'; do
    # shellcheck disable=SC2086 # two words
    gnnstream plan store --model own.gnn $option >result 2>err
    words="$option: the network of own.gnn has no use for it, and is what it is without"
    [ "$(<err)" = "gnnstream: warning: $words" ] || die "$option: $(<err)"
done
sed 's/, 8)/, hidden)/; s/relu(/dropout(act(/; s/, out)/), out)/' own.gnn >uses.gnn
gnnstream plan store --model uses.gnn --hidden 32 --act elu --dropout 0.5 >result 2>err
[ ! -s err ] || die "$(<err)"
gnnstream plan store --model gcn --layers 1 --hidden 32 >result 2>err
[ "$(wc -l <err)" = 1 ] && grep -q 'warning: --hidden 32: the network of gcn has no use' err || die "$(<err)"
gnnstream plan store --model gcn --layers 3 --hidden 32 --norm batch >result 2>err
[ ! -s err ] || die "$(<err)"
for option in '--resume nosuch' '--init nosuch'; do
    # shellcheck disable=SC2086 # two words
    gnnstream plan store --model gcn $option >result 2>err
    [[ $(<err) == "gnnstream: warning: $option: is not read for a plan, "* ]] || die "$option: $(<err)"
done
# So is what GPUs alone do.
gnnstream train store --model gcn --matmul bf16 --epochs 1 --device cpu:2 >result 2>err
[ "$(<err)" = 'gnnstream: warning: --matmul bf16: is of GPUs; processors multiply as without it' ] || die "$(<err)"
