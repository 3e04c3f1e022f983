#!/usr/bin/env bash
# run.sh CASE.sh - runs one case and compares what it did with the files beside it:
#   CASE.exit         its exit status; absent: 0
#   CASE.stdout.glob  a bash pattern for all of stdout; absent: anything where the status
#                     is 0, nothing where it is not
#   CASE.stderr.glob  the same for stderr; absent: nothing
# A case runs under bash -eu in an empty folder, with `gnnstream` in its PATH and what
# cases.sh defines. Where its status is not 0, stderr has to be one line, whatever the pattern says.
set -u
export LC_ALL=C
: "${GNNSTREAM:?}"
here=$(cd "$(dirname "$0")" && pwd)
case_file=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
expect=${case_file%.sh}
work=$(mktemp -d "$PWD/gs_cli.XXXXXX") || exit 99
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/here"
ln -s "$GNNSTREAM" "$work/bin/gnnstream"
export PATH=$work/bin:$PATH XDG_CACHE_HOME=$work/cache # what one case measures of the machine is nothing to others

(cd "$work/here" && exec bash -eu -c '. "$1"; . "$2"' case "$here/cases.sh" "$case_file") \
    >"$work/stdout" 2>"$work/stderr" </dev/null
status=$?
wanted=0
[ -f "$expect.exit" ] && wanted=$(<"$expect.exit")
result=0

fail()
{
    result=1
    printf 'FAIL %s: %s\n' "$(basename "$expect")" "$1"
}

# matches STREAM PATTERN
matches()
{
    local text
    text=$(<"$work/$1")
    # shellcheck disable=SC2053 # the right side is a pattern
    [[ $text == $2 ]] || fail "$1 does not match: $2"
}

[ "$status" = "$wanted" ] || fail "exit status $status, expected $wanted"
if [ -f "$expect.stderr.glob" ]; then
    matches stderr "$(<"$expect.stderr.glob")"
elif [ -s "$work/stderr" ]; then
    fail 'words on stderr'
fi
if [ "$wanted" != 0 ] && [ "$(wc -l <"$work/stderr")" -ne 1 ]; then
    fail 'an error is one line'
fi
if [ -f "$expect.stdout.glob" ]; then
    matches stdout "$(<"$expect.stdout.glob")"
elif [ "$wanted" != 0 ] && [ -s "$work/stdout" ]; then
    fail 'a failure wrote to stdout'
fi
if [ $result -ne 0 ]; then
    sed 's/^/  stdout | /' "$work/stdout" | tail -n 30
    sed 's/^/  stderr | /' "$work/stderr" | tail -n 30
fi
exit $result
