#!/usr/bin/env bash
# check_gpu.sh - tools/check-gpu packed, carried to a folder without a build, and run there: where there is no GPU every
# step says so in a line and the page comes all the same; with libraries in the place of CUDA's (host_library.h), of an
# H100's sizes (memory, processors, what its driver holds of the host's), its steps pass and its figures are read,
# before it meets a GPU. (Steps that hang and crash: gpu_rehearsal.sh.)
. "$(dirname "$0")/../e2e/lib.sh"
: "${HOST_LIBRARY:?}" "${BUILD:?}"
source=$(cd "$(dirname "$0")/../.." && pwd)
room=$work/room

mkdir -p "$room/tools" "$room/tests/cuda" "$room/tests/e2e" "$room/bench/peers" "$work/bin" "$work/lib" "$work/kernels"
run "pack" "$source/tools/check-gpu" pack --built "$BUILD" --packed "$room/build-gpu/check-gpu.tar.gz" || finish
run "the pack has less than 60 MiB" test "$(stat -c %s "$room/build-gpu/check-gpu.tar.gz")" -lt $((60 << 20))
# Programs find the libraries beside them, and no variable names those, which python3, nvcc and ncu would see, too.
mkdir "$work/unpacked"
tar -C "$work/unpacked" -xf "$room/build-gpu/check-gpu.tar.gz"
for program in gnnstream reference matrix bench_gpu test_gpu_rows; do
    env -u LD_LIBRARY_PATH ldd "$work/unpacked/$program" | grep '=> /' |
        grep -v -E -e "=> $work/unpacked/lib/" -e 'lib(c|m|pthread|dl|rt)\.so' >"$work/other" &&
        fail "$program: libraries that are not the pack's" "$work/other"
done
cp "$source/tools/check-gpu" "$room/tools/"
cp "$source/tests/cuda/several_gpus.sh" "$room/tests/cuda/"
cp -r "$source/tests/e2e/lib.sh" "$source/tests/e2e/texts" "$room/tests/e2e/"
cp -r "$source/bench/gpu" "$source/bench/edge_types.py" "$room/bench/"
cp "$source"/bench/peers/{gpu_peers,train,with_csr,with_pyg}.py "$room/bench/peers/"

# There: none of what building needs.
for tool in bash awk python3 grep sed sort cut tail head cat tr cmp ls ln cp rm nproc readlink mkdir mktemp du df date \
    timeout dirname basename env nvidia-smi compute-sanitizer uname; do
    path=$(command -v $tool) && ln -s "$path" "$work/bin/$tool"
done

# check LIBRARIES PATH MODE OPTIONS...: status of check-gpu; its results in $work/out.
check()
{
    local libraries=$1 path=$2
    shift 2
    rm -rf "$work/out"
    (cd / && env -i PATH="$path" TMPDIR="$work" LD_LIBRARY_PATH="$libraries" GS_HOST_GPU="$work/kernels" \
        GS_HOST_GPU_PROCESSORS=132 GS_HOST_GPU_MEMORY=85899345920 GS_HOST_GPU_RESIDENT=314572800 \
        "$room/tools/check-gpu" "$@" --scale 0.002 --patience 5 --out "$work/out") >"$work/said" 2>&1
}
# steps PATTERN: those whose line of the page matches.
steps() { grep -c -E "^\| $1" "$work/out/page.md"; }

if ldconfig -p | grep -q 'libcuda\.so\.1'; then
    note "this machine has CUDA's driver: what check-gpu says without it was not tried"
else
    check "$work/lib" "$work/bin" figures && fail "check-gpu passes without a GPU" "$work/said"
    check "$work/lib" "$work/bin" tests && fail "check-gpu passes without a GPU" "$work/said"
    pass
    # Only what needs no GPU may pass.
    grep -E '^\| .* \| [0-9.]+ \| [0-9.]+ \|' "$work/out/page.md" | grep -v -E \
        -e '^\| versions \| ok ' -e ' failed .*device cuda: the driver \(libcuda\.so\.1\) was not found' \
        >"$work/other" && fail "lines of the page that say something else" "$work/other"
    grep -q '^1 passed, ' "$work/out/page.md" || fail "the page's end" "$work/out/page.md"
fi

for name in libcuda.so.1 libnvrtc.so.13 libcublas.so.13; do
    ln -s "$HOST_LIBRARY" "$work/lib/$name"
done
# The compiler that stands for NVRTC is this machine's; sizes of `ceilings` are a GPU's.
check "$work/lib" "$PATH" tests --steps "tests: (rows|statistics|train gcn|several gcn|chain)\$" ||
    fail "tests do not pass on the host" "$work/said"
run "five tests" test "$(steps 'tests: .* ok ')" -eq 5
check "$work/lib" "$PATH" figures --steps \
    "^(versions|open|compile|cuda as cpu|generate|typed graph|gather|budgets|disk)\$|^partition|^train (gcn|rgcn)" ||
    fail "figures do not pass on the host" "$work/said"
for line in "of the host's memory CUDA's libraries take [1-9][0-9]* MiB" 'gat: loss [0-9.]* on cuda, [0-9.]* on cpu' \
    'gcn, cuda:0,0, device 1\/8 each: [0-9.]* s an epoch; [0-9.]* MB to the device' \
    'gcn: [0-9.]* s an epoch; [0-9.]* MB to the device' \
    'rgcn, many types, tf32: [0-9.]* s an epoch; [0-9.]* MB to the device' \
    'gcn, device 1/8, host 1/4: [0-9.]* s an epoch; [0-9.]* MB to the device'; do
    run "a line \"$line\"" grep -q "^    $line" "$work/out/page.md"
done
for row in \
    'fused gather, width 256, the best P, of what its bytes .* | at least 80 % | [0-9.]* % | [a-z]*' \
    "PyTorch Geometric's epoch over ours, gat, in memory | at least 2 times | - | not measured" \
    "PyTorch Geometric's epoch over ours, gat 8 heads, in memory | at least 2 times | - | not measured" \
    'the same with the disk.s reading, host memory 1/4 | at most 1.15 times | [0-9.]* times | [a-z]*'; do
    run "a line \"$row\"" grep -q "^| $row |$" "$work/out/page.md"
done
run "what says most comes first, and the aims last" python3 - "$work/out" <<'END'
import json, sys
at = {e["step"]: e["at"] for e in map(json.loads, open(f"{sys.argv[1]}/steps.jsonl"))}
page = open(f"{sys.argv[1]}/page.md").read()
assert at["compile"] < at["cuda as cpu"] < at["gather"] < at["train gcn"] < at["partition, some parts"], at
assert at["train gcn, tf32"] < at["typed graph"] < at["disk"] < at["train gcn, device 1/8"], at
assert page.index("| what | aim |") > page.index("MB to the device"), page
END
# When the time is over, what has not begun says so and counts.
check "$work/lib" "$PATH" tests --seconds 0 --steps '^tests: rows$' && fail "check-gpu passes when the time is over" \
    "$work/said"
run "a line of what was not begun" test "$(steps 'tests: rows \| not begun ')" -eq 1
finish
