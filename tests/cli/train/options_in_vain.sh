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
# So is what GPUs alone do, or some processors.
gnnstream train store --model gcn --matmul tf32 --epochs 1 --device cpu:2 >result 2>err
[ "$(<err)" = 'gnnstream: warning: --matmul tf32: is of GPUs; processors multiply as without it' ] || die "$(<err)"
lacks='needs AVX512-BF16, or a GPU; processors multiply as without it'
GS_ISA=avx2 gnnstream train store --model gcn --matmul bf16 --epochs 1 >result 2>err
grep -q AVX-512 result || # a build of one instruction set
    [ "$(<err)" = "gnnstream: warning: --matmul bf16: $lacks" ] || die "$(<err)"
# Where a processor rounds, losses are those of float32, nearly, and weights have the same bits with any threads.
of() { gnnstream train store --model gcn --epochs 20 --save "$1" --metrics "$1.jsonl" "${@:2}" >result 2>err; }
of fp32
of bf16 --matmul bf16 --threads 1
if [ ! -s err ]; then
    of again --matmul bf16 --threads 3 --device cpu
    cmp bf16 again || die 'other threads, other weights'
    cmp -s bf16 fp32 && die 'nothing was rounded'
    last() { tail -n 1 "$1.jsonl" | sed 's/.*"loss": *\([0-9.]*\).*/\1/'; }
    awk -v x="$(last fp32)" -v y="$(last bf16)" 'BEGIN { exit !(x > 0 && (x - y) ^ 2 < (0.02 * x) ^ 2) }' ||
        die "losses $(last fp32), $(last bf16)"
fi
