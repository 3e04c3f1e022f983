#!/usr/bin/env bash
# gpu_rehearsal.sh - tools/check-gpu where steps go wrong: on libraries in the place of CUDA's (host_library.h), one
# step hangs, one crashes, one loses its GPU. Each time all that was known before is written down, also when check-gpu
# itself is killed. (What its steps say where they pass: check_gpu.sh.)
. "$(dirname "$0")/../e2e/lib.sh"
: "${HOST_LIBRARY:?}" "${BUILD:?}"
source=$(cd "$(dirname "$0")/../.." && pwd)

mkdir -p "$work/lib" "$work/built"/{tools,tests,bench/kernels} "$work/built/tests/cuda"
ln -s "$BUILD/tools/gnnstream" "$work/built/tools/"
for name in libcuda.so.1 libnvrtc.so.13 libcublas.so.13; do
    ln -s "$HOST_LIBRARY" "$work/lib/$name"
done
# faulty PROGRAM WHAT=FAULT...: the program with the fault of its first argument ("-": of none).
faulty()
{
    local program=$1 pair
    shift
    {
        echo '#!/bin/bash'
        echo 'case ${1:--} in'
        for pair in "$@"; do echo "${pair%%=*}) export GS_HOST_GPU_FAULT=${pair#*=} ;;"; done
        echo 'esac'
        echo "exec $BUILD/$program \"\$@\""
    } >"$work/built/$program"
    chmod +x "$work/built/$program"
}
faulty tests/cuda/test_gpu_columns -=hang:40
faulty bench/kernels/bench_gpu gather=crash:45 ceilings=lost:40

steps='^(versions|open|compile|kernel|generate|gather|ceilings)$'
check_gpu() { LD_LIBRARY_PATH=$work/lib GS_HOST_GPU=$work/kernels exec "$source/tools/check-gpu" figures \
    --built "$work/built" --scale 0.0001 --steps "$steps" --step-seconds 5 --work "$work/$1" --out "$work/$1/out"; }
(check_gpu whole) >"$work/said" 2>&1 && fail "check-gpu passes although steps fail" "$work/said"
run "page, lines and logs" python3 - "$work/whole/out" <<'END'
import json, pathlib, sys
out = pathlib.Path(sys.argv[1])
steps = {e["step"]: e for e in map(json.loads, (out / "steps.jsonl").read_text().splitlines())}
want = {"versions": "ok", "open": "ok", "compile": "ok", "generate": "ok", "kernel": "killed", "gather": "crashed",
        "ceilings": "failed"}
got = {name: e["status"] for name, e in steps.items()}
assert got == want, got
assert "device cuda" in steps["ceilings"]["says"] and steps["kernel"]["seconds"] < 12, steps
page, failed = (out / "page.md").read_text(), (out / "failed.log").read_text()
for name, status in got.items():
    assert f"| {name} | {steps[name]['status']} |" in page, page
assert "host, sm_90" in page and "not measured" in page and " not run; after " in page, page
assert all(f"==== {name}" in failed for name in ("kernel", "gather", "ceilings")), failed
END

# What came before the step that hangs is there when check-gpu is killed in it.
(check_gpu killed) >"$work/said" 2>&1 &
killed=$!
for _ in $(seq 100); do
    grep -q '"compile"' "$work/killed/out/steps.jsonl" 2>/dev/null && break
    sleep 0.1
done
kill -KILL $killed
wait $killed 2>/dev/null
for step in versions open compile; do
    run "the page has $step" grep -q "^| $step | ok |" "$work/killed/out/page.md"
done

# The tests that it packs are there, by the names that they have now.
run "tests of check-gpu" env PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$source/bench/gpu" python3 -c '
import os, sys, modes
missing = [t for t in modes.TESTS if not os.access(f"{sys.argv[1]}/tests/cuda/test_gpu_{t}", os.X_OK)]
assert not missing, missing' "$BUILD"

# A machine without git, nvcc, nvidia-smi, ldconfig or what else is not the system's and python3's.
mkdir "$work/bin"
ln -s "$(python3 -c "import sys; print(sys.executable)")" "$work/bin/python3"
for program in bash env timeout uname nproc grep df tail sed; do
    ln -s "$(command -v $program)" "$work/bin/"
done
steps='^(versions|memcheck and racecheck|ncu)$'
run "a bare machine" env PATH="$work/bin" LD_LIBRARY_PATH="$work/lib" GS_HOST_GPU="$work/kernels" \
    "$source/tools/check-gpu" sanitizer --built "$work/built" --scale 0.0001 --steps "$steps" --step-seconds 5 \
    --work "$work/bare" --out "$work/bare/out"
for program in compute-sanitizer ncu; do
    [ -x /usr/local/cuda/bin/$program ] ||
        run "$program: said to be absent" grep -q "| not run |.* $program is not here |\$" "$work/bare/out/page.md"
done
sleep 5.2 # the step's own deadline ends what is left
finish
