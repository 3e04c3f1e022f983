#!/usr/bin/env bash
# pages.sh SOURCE GNNSTREAM PAGE... [--slow]: runs the commands of pages of SOURCE, each in an empty folder
set -euo pipefail
source=$1 program=$2 more=()
shift 2
[ "${*: -1}" = --slow ] && more=(--slow) && set -- "${@:1:$#-1}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for page; do
    mkdir "$work/$(basename "$page")"
    python3 "$source/tests/python/tutorial.py" "$source/$page" "$work/$(basename "$page")" --gnnstream "$program" \
        "${more[@]}"
done
