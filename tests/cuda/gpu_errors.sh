#!/usr/bin/env bash
# gpu_errors.sh - a GPU that fails, or has too little memory: one line says which, exit status 1, and nothing is left
# behind.
. "$(dirname "$0")/../e2e/lib.sh"

input_of rough
run "partition" "$GNNSTREAM" partition "$input" "$work/store" --method natural --parts 3 || finish

# Nothing that a run was to leave, nor what it spilled.
clean()
{
    if [ -e "$work/out.safetensors" ] || ls "$work"/store/spill.* >/dev/null 2>&1; then
        fail "$1: left files behind"
    else
        pass
    fi
}

t() { refuse 1 "$1" env "$2" "$GNNSTREAM" train "$work/store" --model gcn --hidden 16 --epochs 3 --device cuda \
    --save "$work/out.safetensors" "${@:3}"; }
for launch in 1 2 7 40; do
    t 'device cuda:0: a kernel failed, .*kernel gs_[a-z_0-9]*: .*LAUNCH_FAILED' GS_TEST_FAIL_LAUNCH=$launch
    clean "launch $launch"
done
t 'device cuda:0: .*out of memory.*--device-memory' GS_HOST_GPU_MEMORY=3000000 --device-memory 200M
t 'device cuda:0: taking --device-memory: .*out of memory' GS_HOST_GPU_MEMORY=5800000 --device-memory 200M
clean "out of memory"
t '--device-memory .*too small.*at least' GS_TEST_FAIL_LAUNCH=0 --device-memory 1M
cat >"$work/two_folds.gnn" <<'END'
layer two_folds(h[in]) -> [heads * d]:
    param k[heads * d, in]
    x = h @ k'
    return sum(softmax(dot(row_softmax(u.x + v.x), v.x)) * u.x)

layer last(h[in]) -> [out]:
    param w[out, in]
    return h @ w'
END
# Columns of a head and of all heads: a group has both, and what it folds goes through a block's memory.
t 'folds too many columns at once; use --device cpu' GS_TEST_FAIL_LAUNCH=0 --model "$work/two_folds.gnn" \
    --hidden 3400 --heads 2
t 'cuda:7: there are 1 GPUs' GS_TEST_FAIL_LAUNCH=0 --device cuda:7
run "verify afterwards" "$GNNSTREAM" verify "$work/store"
finish
