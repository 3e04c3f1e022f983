# Norms with running statistics, jumping knowledge and residuals: a run that goes on from a checkpoint gives the same
# bits, best weights are whole, predictions are the run's, and a parameter in vain is named.
small_store
for model in 'gcn --norm batch --jk cat --dropout 0.3' 'gin --norm layer --jk lstm --residual'; do
    for keep in best last; do
        # Sanitized, a model for each.
        [ -z "${GS_SANITIZED:-}" ] || [ -n "${GS_TEST_ALL:-}" ] || [ "${model%% *} $keep" = "gcn best" ] ||
            [ "${model%% *} $keep" = "gin last" ] || continue
        rm -rf kept
        # shellcheck disable=SC2206 # words of options
        command=(gnnstream train store --model $model --layers 3 --hidden 8 --threads 1 --keep "$keep")
        "${command[@]}" --epochs 6 --save whole.safetensors --logits whole.npy >made
        "${command[@]}" --epochs 3 --checkpoint kept --checkpoint-every 1 >made
        "${command[@]}" --epochs 6 --resume kept --save on.safetensors --logits on.npy >made 2>err
        cmp whole.safetensors on.safetensors && cmp whole.npy on.npy || die "$model: another result after going on"
        # shellcheck disable=SC2086
        gnnstream predict store --model ${model%% --dropout*} --layers 3 --hidden 8 --threads 1 \
            --weights whole.safetensors --logits predicted.npy >made
        [ -s predicted.npy ] || die "$model: no predictions"
    done
done
refused 2 "is of a model with another text" gnnstream train store --model gin --layers 3 --hidden 8 --epochs 6 \
    --resume kept
printf 'layer idle(h[in]) -> [out]:\n    param w[out, in], none[out]\n    return mean(u.h) @ w'"'"'\n' >idle.gnn
gnnstream train store --model idle.gnn --layers 1 --epochs 1 >made 2>err
line='gnnstream: warning: idle.gnn: the result does not depend on parameter convs.0.none, which stays as it starts'
[ "$(<err)" = "$line" ] ||
    die "no warning of a parameter in vain: $(<err)"
gnnstream train store --model gcn --norm layer --epochs 1 >made 2>err
[ ! -s err ] || die "a warning without a reason: $(<err)"
# of one number a norm leaves the bias alone, which all vertices have
gnnstream train store --model gcn --hidden 1 --norm layer_node --epochs 1 >made 2>err
grep -q 'does not depend on parameter convs.0.lin.weight' err || die "$(<err)"
