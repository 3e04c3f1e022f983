# The least --host-memory that a refusal names for a run on batches does, and 4 MiB less do not; also of a batch that
# could have all edges, where the sizes of groups and of what stays in memory follow the budget, and on several devices.
# It does not depend on the budget that was refused, but for the pages that a process happens to hold.
gnnstream generate rmat graph --vertices 20000 --edges 400000 --features 16 --seed 1 >made
gnnstream partition graph store --parts 4 --method natural >made
for options in '--sampler neighbor --batch-size 500 --fanout 0,0' '--sampler saint-edge --batch-size 300' \
    ${GS_TEST_ALL:+'--sampler neighbor --batch-size 500 --fanout 20,10'} \
    ${GS_TEST_ALL:+'--sampler neighbor --batch-size 500 --fanout 20,10 --device cpu:2'} \
    ${GS_TEST_ALL:+'--sampler cluster --batch-size 2 --device cpu:3'} '--sampler cluster --batch-size 2'; do
    # shellcheck disable=SC2206 # several words
    plan=(gnnstream plan store --model sage $options --host-memory)
    "${plan[@]}" 20M >out 2>err && die "20M is enough: $options"
    least=$(sed -n 's/.*host-memory 20.0 MiB is too small.* at least \([0-9]*\)M.*/\1/p' err)
    [ -n "$least" ] || die "$options: $(<err)"
    does=$least
    [ -z "${GS_SANITIZED:-}" ] || does=$((least + least / 2)) # freed memory stays for a while
    "${plan[@]}" "${does}M" >out 2>err || die "$options: $(<err)"
    [ -n "${GS_SANITIZED:-}" ] || refused 1 'is too small' "${plan[@]}" $((least - 4))M
    if [[ $options != *saint* ]] && [ -z "${GS_SANITIZED:-}" ]; then
        refused 1 '--host-memory 4.0 KiB is too small' "${plan[@]}" 4K
        named=$(sed -n 's/.* at least \([0-9]*\)M.*/\1/p' refused.err)
        [ "$named" -ge $((least - 1)) ] && [ "$named" -le $((least + 2)) ] || die "$options: ${named}M of 4K"
    fi
done
# and the run is one
gnnstream train store --model sage --sampler cluster --batch-size 2 --epochs 1 --host-memory "${does}M" >out 2>err ||
    die "$(<err)"
