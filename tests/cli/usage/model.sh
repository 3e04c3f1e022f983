# What the compiler makes of a model: each step as text, or as graphs.
gnnstream model gat --heads 4 --features 10 >text
for line in '== as the text says' '== one-end work has left the edges' '== products moved; loss and gradients' \
    '== the compiled epoch' 'gradient of convs.0.att_src' 'attend_in' 'param convs.0.lin.weight\[64, 10\]'; do
    grep -q -e "$line" text || die "no \"$line\" in: $(<text)"
done
grep -q 'leaky_relu .* alpha 0.2 ' text || die "no slope of leaky_relu in: $(<text)"
gnnstream model ggcn >text
grep -q '^ *e0 = operand ' text || die "no first register of an edge program in: $(<text)"
gnnstream model sage >text
grep -q '== computed once' text || die 'the mean of the features is not computed once'
gnnstream model sage --no-hoist >text
! grep -q '== computed once' text || die '--no-hoist computes something once'
gnnstream model gcn --dot >dot
[ "$(grep -c '^digraph' dot)" -ge 3 ] || die "fewer than three graphs in: $(<dot)"
! grep -q '^==' dot || die 'words between the graphs'
printf 'layer t(h[a]) -> [b]:\n  param w[b, a]\n  return sum(exp((u.h * v.h) @ w))\n' >bad.gnn
refused 1 "bad.gnn:3:30: @: the left side has width 128, but convs.0.w is [64, 128]" gnnstream model bad.gnn
[ "$(tail -n 2 refused.err)" = "$(printf '      return sum(exp((u.h * v.h) @ w))\n%33s^' '')" ] ||
    die "no line of the text with a caret: $(<refused.err)"
gnnstream model gin --norm batch --jk cat --layers 3 --residual >text
for line in '== the text' 'y = act(batch_norm(z @ ' \
    'x2 = dropout(act(batch_norm(gin(x1, hidden), norms.1.module))) + x1' 'y = concat(x1, x2, x3)' \
    'norms.2.module.running_var' 'lin.weight'; do
    grep -qF -e "$line" text || die "no \"$line\" in: $(<text)"
done
gnnstream model appnp --set alpha=0.2,steps=3 >text
grep -q '^const alpha = 0.2$' text && grep -q '^const steps = 3$' text || die "no constants in: $(<text)"
refused 2 "--set alfa: model appnp has no constant of this name (alpha, steps)" gnnstream model appnp --set alfa=1
refused 2 "--residual: is between two hidden layers" gnnstream model gcn --residual
refused 2 "--act-first: says that the activation comes before the norm; give --norm one" gnnstream model gcn --act-first
refused 2 "--heads 2: model gcn has no attention heads" gnnstream model gcn --heads 2
refused 2 "--bases 2: model gcn has no bases" gnnstream model gcn --bases 2
gnnstream model rgcn_bases --bases 3 --edge-types 5 --features 10 >text
grep -q 'param convs.0.weight\[30, 64\]' text && grep -q 'param convs.0.comp\[5, 3\]' text ||
    die "no three bases in: $(<text)"
refused 1 "nosuch: neither a built-in model" gnnstream model nosuch
# Products as wide as they may be are dear, and are computed even so.
gnnstream model gcn --layers 3 --hidden 1048576 >out
