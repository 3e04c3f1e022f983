#!/usr/bin/env bash
# programs.sh - a model has several programs, of which the prediction takes one: with values that are stored or made
# again, and with what is computed once held or left out (lean); with products of edges by the matrix of their type in
# batches. Budgets choose between them; `plan` says which one was taken, once, and weights and logits are the same to
# rounding.
. "$(dirname "$0")/lib.sh"
export XDG_CACHE_HOME=$work/cache # predicted from the defaults, whatever this machine has measured

run generate "$GNNSTREAM" generate sbm "$work/graph" --vertices 40000 --edges 200000 --features 64 --classes 5 \
    --seed 2 || finish
# add_types GRAPH: its edges are of 8 types, in turn.
add_types()
{
    local edges
    edges=$(head -c 128 "$1/edges.npy" | sed -n '1s/.*(\([0-9]*\), 2).*/\1/p')
    {
        printf '\x93NUMPY\x01\x00\x76\x00'
        printf "%-117s\n" "{'descr': '|u1', 'fortran_order': False, 'shape': ($edges,), }"
        yes abcdefg | tr 'a-g\n' '\000-\007' | head -c "$edges"
    } >"$1/edge_types.npy"
}
add_types "$work/graph"
store=$work/store
run partition "$GNNSTREAM" partition "$work/graph" "$store" --parts 4 --method fennel || finish
options=(--hidden 32 --threads 2 --seed 3 --logits "$work/l.npy")

# with NAME FIELD VALUE OPTIONS -- MORE...: trains with the first of MORE, each a few words, with which the plan has
# this value.
with()
{
    local name=$1 field=$2 value=$3 base=() more status
    shift 3
    while [ "$1" != -- ]; do base+=("$1"); shift; done
    shift
    for more in "$@"; do
        # shellcheck disable=SC2206
        line=("$store" "${base[@]}" "${options[@]}" $more)
        "$GNNSTREAM" plan "${line[@]}" --json 2>/dev/null | grep -q "\"$field\": *$value" || continue
        run "$name" "$GNNSTREAM" train "${line[@]}" --epochs 3 --keep last --optimizer sgd --lr 0.1 \
            --save "$work/$name.safetensors"
        status=$?
        mv "$work/l.npy" "$work/$name.npy"
        return $status
    done
    fail "$name: \"$field\" is $value with none of: $*"
    return 1
}

# told WORDS: the last plan's text says so in one line.
told()
{
    run plan "$GNNSTREAM" plan "${line[@]}"
    if [ "$(grep -c "$1" "$work/stdout")" = 1 ]; then pass; else fail "not told once: $1" "$work/stdout"; fi
}

same()
{
    compare "$1 and $2: weights" "$work/$1.safetensors" "$work/$2.safetensors" 1e-4
    compare "$1 and $2: logits" "$work/$1.npy" "$work/$2.npy" 1e-4
}

with held lean false --model rgcn --no-batch -- "" "--host-memory 200M" &&
    with lean lean true --model rgcn --no-batch -- "--host-memory 160M" "--host-memory 140M" \
        "--host-memory 125M" "--host-memory 110M" "--host-memory 100M" "--host-memory 90M" &&
    told 'less is computed once and held, as that was predicted to be faster' && same held lean &&
    with batched batches true --model rgcn -- "--host-memory 110M" "--host-memory 100M" "--no-hoist" &&
    told 'in batches, as that was predicted to be faster' && same held batched
# Sums by type are 8 times as wide: a block of them has no room where batches have. (The least of both is what a refusal
# names.)
few=(--model rgcn --hidden 32 --threads 2 --host-memory 400M --device-memory)
refuse 1 'needs at least' "$GNNSTREAM" plan "$store" "${few[@]}" 16M --no-batch
line=("$store" "${few[@]}" 16M)
told 'in batches, as what was tried before does not keep the budgets'
refuse 1 'needs at least ([0-9]|1[0-5])M' "$GNNSTREAM" plan "$store" "${few[@]}" 4M
with stored recomputes false --model sage -- "" &&
    with again recomputes true --model sage -- --no-cache &&
    told 'made again rather than stored, as that was predicted to be faster' && same stored again
echo '{"switches": [{"devices": 2, "host_bps": 3e8}]}' >"$work/wires.json"
with wired recomputes true --model sage --device cpu:2 --topology "$work/wires.json" -- "--device-memory 20M" \
    "--device-memory 16M" "--device-memory 12M" && same stored wired
with kept keeps true --model gat -- "" &&
    told 'stored rather than made again, as that was predicted to be faster' &&
    with made keeps false --model gat -- --no-cache && same kept made

# Which program refusals name and budgets choose is the same code: the build for speed tells.
[ -z "${GS_SANITIZED:-}" ] || [ -n "${GS_TEST_ALL:-}" ] || finish

# Sums of wide features by type take 43 MiB of a device, products in front of the sums 9: the second program is run
# where the first does not fit, and a refusal names what is enough for one of the two. (Batches would take less.)
run generate "$GNNSTREAM" generate sbm "$work/wide" --vertices 10000 --edges 50000 --features 256 --classes 5 --seed 2
add_types "$work/wide"
store=$work/wide.store
run partition "$GNNSTREAM" partition "$work/wide" "$store" --parts 4 --method fennel || finish
refuse 1 'device-memory 1.0 MiB is too small.*needs at least [0-9]+M' \
    "$GNNSTREAM" plan "$store" --model rgcn --no-batch "${options[@]}" --device-memory 1M --host-memory 400M
least=$(sed -n 's/.*needs at least \([0-9]*\)M.*/\1/p' "$work/stderr")
[ "${least:-99}" -le 20 ] && pass || fail "the least device memory is that of the first program: $least" "$work/stderr"
with roomy lean false --model rgcn --no-batch --no-hoist -- "--device-memory 100M --host-memory 400M" &&
    with narrow lean true --model rgcn --no-batch -- "--device-memory ${least}M --host-memory 400M" &&
    told 'less is computed once and held, as what was tried before does not keep the budgets' && same roomy narrow
finish
