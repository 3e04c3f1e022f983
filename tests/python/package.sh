#!/usr/bin/env bash
# package.sh SOURCE LIBRARY [wheel] - tests the Python package in an environment of its own, with numpy alone. Without
# "wheel" the extension is compiled against the library of this build; with it `pip install` makes the whole package as
# a user would, whose types mypy then checks. Skips (77), saying so, where there is no C++ compiler, no venv, no
# Python.h, or no package index. What is PyTorch's is tested where GS_PYTHON, or python3, has torch.
set -euo pipefail
skip() { echo "skipped: $*"; exit 77; }
source=$1 library=$2
unset PYTHONDONTWRITEBYTECODE # modules that come without their code (--no-compile) are compiled once, not at each start
program=$(dirname "$(readlink -f "$library")")/../tools/gnnstream
command -v g++ >/dev/null || skip "no g++"
python3 -c 'import ensurepip, venv' 2>/dev/null || skip "python3 has no venv"
include=$(python3 -c 'import sysconfig; print(sysconfig.get_path("include"))')
[ -f "$include/Python.h" ] || skip "no Python.h in $include"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
pip=(-m pip install --quiet --disable-pip-version-check --no-compile)
# Another pip than the environment's own, which takes longer to come in than what is installed; from 22.3 on.
if python3 -m pip --python "$(command -v python3)" --version >/dev/null 2>&1; then
    python3 -m venv --without-pip "$work/venv"
    pip=(python3 -m pip --python "$work/venv/bin/python" "${pip[@]:2}")
else
    python3 -m venv "$work/venv"
    pip=("$work/venv/bin/python" "${pip[@]}")
fi
needed=(numpy)
[ "${3:-}" = wheel ] || needed+=(nanobind)
"${pip[@]}" "${needed[@]}" >"$work/log" 2>&1 || skip "${needed[*]}: not installed: $(tail -n 1 "$work/log")"
mkdir "$work/out" "$work/tutorial"
if [ "${3:-}" = wheel ]; then
    "${pip[@]}" "$source"
else
    nanobind=$("$work/venv/bin/python" -c 'import nanobind; print(nanobind.__path__[0])')
    cp -r "$source/python/gnnstream" "$work/gnnstream"
    python3 "$source/python/bindings.py" "$source/src/gnnstream.h" >"$work/fields.h"
    python3 "$source/python/bindings.py" "$source/src/gnnstream.h" python >"$work/gnnstream/_types.py"
    flags=(-std=c++17 -O0 -fPIC -fvisibility=hidden -fno-strict-aliasing -I"$include" -I"$nanobind/include"
           -I"$nanobind/ext/robin_map/include")
    export CCACHE_BASEDIR=$work CCACHE_NOHASHDIR=1 # called from its folder, the same in another is the same
    cxx=(g++) && ! command -v ccache >/dev/null || cxx=(ccache g++)
    pushd "$work" >/dev/null
    "${cxx[@]}" "${flags[@]}" -w -DNB_COMPACT_ASSERTIONS -c "$nanobind/src/nb_combined.cpp" -o "$work/nanobind.o" &
    "${cxx[@]}" "${flags[@]}" -Wall -Wextra -Werror -isystem "$nanobind/include" -I"$source/src" -I"$work" \
        -c "$source/python/engine.cpp" -o "$work/engine.o"
    popd >/dev/null
    wait $!
    suffix=$(python3 -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')
    g++ -shared "$work/engine.o" "$work/nanobind.o" "$library" -Wl,-rpath,"$(dirname "$(readlink -f "$library")")" \
        -o "$work/gnnstream/_engine$suffix"
    export PYTHONPATH=$work
fi
cd "$work/out"
"$work/venv/bin/python" "$source/tests/python/test_package.py" "$work/out"
"$work/venv/bin/python" "$source/tests/python/test_processes.py" "$work/out"
"$work/venv/bin/python" "$source/tests/python/test_loaders.py" "$work/out"
"$work/venv/bin/python" "$source/tests/python/test_docstrings.py" "$source/python/gnnstream" "$work/out"
if [ "${3:-}" = wheel ]; then
    "$work/venv/bin/gnnstream" --version
    "${pip[@]}" mypy >"$work/log" 2>&1 || { echo "mypy does not install: $(tail -n 1 "$work/log")"; exit 0; }
    "$work/venv/bin/python" "$source/tests/python/test_types.py"
    mkdir "$work/alone" # the sources' types, of torch too, take half a minute: not in each check
    ln -s "$("$work/venv/bin/python" -c 'import gnnstream; print(*gnnstream.__path__)')" "$work/alone/gnnstream"
    PYTHONPATH=$work/alone "${GS_PYTHON:-python3}" "$source/tests/python/test_types.py" Sources
    exit 0
fi
torch=${GS_PYTHON:-python3}
if "$torch" -c 'import gnnstream, torch' 2>/dev/null; then
    "$torch" "$source/tests/python/test_torch.py"
    "$torch" -W ignore "$source/tests/python/test_convs.py"
    pretended=$(dirname "$(readlink -f "$library")")/../tests/cuda/libgs_host_gpu.so
    [ ! -f "$pretended" ] || "$torch" -W ignore "$source/tests/python/pretended_gpu.py" "$pretended" "$work/gpu" \
        "$source/tests/python/test_torch.py" "$source/tests/python/test_convs.py" || [ $? = 77 ]
    "$torch" "$source/tests/python/test_loaders.py" "$work/out"
    "$torch" "$source/tests/python/test_pyg.py" "$work/out"
    "$torch" "$source/tests/python/test_docstrings.py" "$source/python/gnnstream" "$work/out"
    "$torch" "$source/tests/python/tutorial.py" "$source/docs/loaders.ipynb" "$work/out"
else
    echo "no torch that loads the extension: what is PyTorch's was left out"
fi
"$work/venv/bin/python" "$source/tests/python/tutorial.py" "$source/docs/python.md" "$work/tutorial"
[ -n "${GS_TEST_ALL:-}" ] || exit 0 # what follows is the engine's; docs/tutorial runs its commands
mkdir "$work/fifteen" "$work/large"
"$work/venv/bin/python" "$source/tests/python/layouts.py" "$work/large"
"$work/venv/bin/python" "$source/tests/python/tutorial.py" "$source/docs/large-graphs.md" "$work/large" \
    --gnnstream "$program" >"$work/log" || { cat "$work/log"; exit 1; }
"$work/venv/bin/python" "$source/tests/python/tutorial.py" "$source/docs/tutorial.md" "$work/fifteen" \
    --gnnstream "$program" >"$work/log" || { cat "$work/log"; exit 1; }
