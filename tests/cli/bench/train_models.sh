# Models whose edge passes are programs, not sums of rows: their gathers have a width, too.
small_store
export XDG_CACHE_HOME=$PWD/cache
for model in gat sage_max sage_lstm ggcn; do
    gnnstream bench train store --model $model --epochs 1 --json >bench.json
    grep -q '"gather_width": [1-9]' bench.json && grep -q '"gather_bps": [1-9]' bench.json ||
        die "$model: $(<bench.json)"
done
# And sums of rows are learned from where their chunks stay in memory, joined into one.
gnnstream bench train store --model sage --layers 4 --no-hoist --epochs 1 >made
gnnstream plan store --model sage --layers 4 --no-hoist >plan
grep -q '^predicted from epochs of this machine' plan && ! grep -q 'defaults' plan || die "$(<plan)"
nothing_left
