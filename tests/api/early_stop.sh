#!/usr/bin/env bash
# early_stop.sh PROGRAM.c LIBRARY GNNSTREAM HEADER... - compiles docs/api.md's program as a user would, with the
# installed headers alone and -lgnnstream, and runs it.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/include" "$work/lib"
cp "${@:4}" "$work/include/"
cp -L "$2" "$work/lib/libgnnstream.so"
ln -s libgnnstream.so "$work/lib/libgnnstream.so.0" # its name for the loader, up to the version
ln -s libgnnstream.so "$work/lib/$(basename "$(readlink -f "$2")")"
flags=()
symbols=$(nm -D "$2")
[[ $symbols == *__asan_init* ]] && flags=(-fsanitize=address,undefined)
[[ $symbols == *__tsan_init* ]] && flags=(-fsanitize=thread)
"${CC:-cc}" -std=c99 -Wall -Wextra -Werror -pedantic "${flags[@]}" -I"$work/include" "$1" -L"$work/lib" \
    -Wl,-rpath,"$work/lib" -lgnnstream -o "$work/early_stop"
"$3" generate sbm "$work/graph" --vertices 600 --edges 6000 --features 16 --classes 3 >/dev/null
"$3" partition "$work/graph" "$work/store" --parts 2 >/dev/null
"$work/early_stop" "$work/store" >"$work/out"
epochs=$(grep -c '^epoch' "$work/out")
[ "$epochs" -gt 10 ] || { cat "$work/out"; echo "stopped after $epochs epochs"; exit 1; }
# the last ten are no better than the best before them
awk '/^epoch/ {v[++n] = $6} END {for (i = 1; i <= n - 10; i++) if (v[i] > best) {best = v[i]; at = i}
     for (i = n - 9; i <= n; i++) if (v[i] > best) exit 1; exit at != n - 10}' "$work/out" ||
    { cat "$work/out"; echo "did not stop 10 epochs after the best"; exit 1; }
grep -q '^best .*logit of vertex 0 and class 0: -\?[0-9]' "$work/out"
! "$work/early_stop" "$work/nowhere" 2>"$work/err" || { echo "a store that is not there was taken"; exit 1; }
grep -q 'nowhere' "$work/err"
! "$work/early_stop" 2>"$work/err" || { echo "no store was taken"; exit 1; }
grep -q 'store: is NULL' "$work/err"
