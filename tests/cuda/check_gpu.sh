#!/usr/bin/env bash
# check_gpu.sh - tools/check-gpu packed, carried to a folder without a build, and run there: where there is no GPU every
# step says so in a line and the table comes all the same; with libraries in the place of CUDA's (host_library.h) its
# steps pass and its figures are read, before it meets a GPU.
. "$(dirname "$0")/../e2e/lib.sh"
: "${HOST_LIBRARY:?}" "${BUILD:?}"
source=$(cd "$(dirname "$0")/../.." && pwd)
room=$work/room

mkdir -p "$room/tools" "$room/tests/cuda" "$room/tests/e2e" "$room/bench/peers" "$work/bin" "$work/lib" "$work/kernels"
run "pack" env GS_BUILD="$BUILD" GS_PACK="$room/build-gpu" "$source/tools/check-gpu" --pack || finish
cp "$source/tools/check-gpu" "$room/tools/"
cp "$source/tests/cuda/several_gpus.sh" "$room/tests/cuda/"
cp -r "$source/tests/e2e/lib.sh" "$source/tests/e2e/texts" "$room/tests/e2e/"
cp "$source/bench/edge_types.py" "$room/bench/"
cp "$source"/bench/peers/{gpu_peers,train,with_csr,with_pyg}.py "$room/bench/peers/"

# There: none of what building needs.
for tool in bash awk python3 grep sed sort cut tail head cat tr cmp ls ln cp rm nproc readlink mkdir mktemp du df date \
    timeout dirname basename env nvidia-smi compute-sanitizer; do
    path=$(command -v $tool) && ln -s "$path" "$work/bin/$tool"
done

# check LIBRARIES STEPS: status of check-gpu, its table in $work/table.
check()
{
    (cd / && env -i PATH="$3" TMPDIR="$work" LD_LIBRARY_PATH="$1" GS_STEPS="$2" GS_SCALE=0.002 \
        GS_SECONDS="${GS_SECONDS:-525}" GS_HOST_GPU="$work/kernels" \
        ASAN_OPTIONS="${ASAN_OPTIONS:-}" LSAN_OPTIONS="${LSAN_OPTIONS:-}" "$room/tools/check-gpu") >"$work/said" 2>&1
    local status=$?
    sed -n '/^# On a GPU, /,$s/^    //p' "$work/said" >"$work/table"
    sed -n '/^# On a GPU, /,$p' "$work/said" >"$work/page"
    return $status
}

if ldconfig -p | grep -q 'libcuda\.so\.1'; then
    note "this machine has CUDA's driver: what check-gpu says without it was not tried"
else
    check "$work/lib" "" "$work/bin" && fail "check-gpu passes without a GPU" "$work/said"
    pass
    # Only what needs no GPU may pass.
    grep -v -E \
        -e '^(generate|typed graph|partition|partition, (few|many) parts|disk) .* ok ' \
        -e ' FAILED .*: device cuda: the driver \(libcuda\.so\.1\) was not found|not here: |^  ' \
        "$work/table" >"$work/other" && fail "lines of the table that say something else" "$work/other"
    grep -q '^6 passed, ' "$work/page" || fail "the page's end" "$work/page"
    [ "$(grep -c '^| .* | at \(least\|most\) [0-9.]* *[%a-z]* | - | not measured |$' "$work/page")" -eq 8 ] ||
        fail "aims, none of them measured" "$work/page"
fi

for name in libcuda.so.1 libnvrtc.so.13 libcublas.so.13; do
    ln -s "$HOST_LIBRARY" "$work/lib/$name"
done
# The compiler that stands for NVRTC is this machine's; sizes of `ceilings` are a GPU's.
check "$work/lib" \
    "tests: (rows|statistics|train gcn|several gcn)\$|^(generate|typed graph|partition|partition, (few|many) parts)\$|\
^(gather|disk)\$|^train (gcn|rgcn)" "$PATH" || fail "check-gpu does not pass on the host" "$work/said"
for row in 'tests: rows  *ok' 'tests: train gcn  *ok' 'tests: several gcn  *ok' \
    'gcn, cuda:0,0, device 1\/8 each  *[0-9.]* s an epoch; [0-9.]* MB to the device' \
    'gcn  *[0-9.]* s an epoch; [0-9.]* MB to the device' \
    'rgcn, many types, tf32  *[0-9.]* s an epoch; [0-9.]* MB to the device' \
    'gcn, device 1/8, host 1/4  *[0-9.]* s an epoch; [0-9.]* MB to the device'; do
    if grep -q "^ *$row" "$work/table"; then pass; else fail "no row \"$row\"" "$work/table"; fi
done
for row in \
    'fused gather, GCN, width 256, of what its bytes allow at the copy.s rate | at least 80 % | [0-9.]* % | [a-z]*' \
    "PyTorch Geometric's epoch over ours, gat, in memory | at least 2 times | - | not measured" \
    "PyTorch Geometric's epoch over ours, gat 8 heads, in memory | at least 2 times | - | not measured" \
    'the same with the disk.s reading, host memory 1/4 | at most 1.15 times | [0-9.]* times | [a-z]*'; do
    if grep -q "^| $row |$" "$work/page"; then pass; else fail "no line \"$row\"" "$work/page"; fi
done
# When the time is over, what has not begun says so and counts.
GS_SECONDS=0 check "$work/lib" '^tests: rows$' "$PATH" && fail "check-gpu passes when the time is over" "$work/said"
if grep -q '^tests: rows  *FAILED  *not begun' "$work/table"; then pass
else fail "no row of what was not begun" "$work/table"; fi
finish
