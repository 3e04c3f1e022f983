#!/usr/bin/env bash
# killed_ranks.sh [KILLS [SEED]] - one of four ranks is killed at some moment, 2 times where nothing else is said: all
# end, the launcher says so, and what was learned goes on, by four ranks to the bits of a run that nobody killed, by
# three to the same up to rounding.
. "$(dirname "$0")/lib.sh"

if ! command -v mpirun >"$work/which" || [ ! -e "$RANKS_MODULE" ]; then
    echo "SKIP no mpirun, or built without MPI"
    exit 77
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
kills=${1:-2}
RANDOM=${2:-1}
input_of rough
parts=${GS_TEST_ALL:+8} parts=${parts:-5} # each rank plans, which takes longer than its epochs, by the square of these
run "partition" "$GNNSTREAM" partition "$input" "$work/store" --parts "$parts" --method fennel || finish
options=(--model sage --hidden 8 --dropout 0.3 --epochs 40 --threads 1 --host-memory 300M --device-memory 4M)

begin=$(date +%s%N)
run "whole" mpirun -n 4 "$GNNSTREAM" train "$work/store" "${options[@]}" --checkpoint "$work/saved" \
    --checkpoint-every 1 --save "$work/whole.safetensors"
took=$((($(date +%s%N) - begin) / 1000000))

killed=0 resumed=0 before=0
for k in $(seq "$kills"); do
    rm -rf "$work/saved"
    timeout 100 mpirun -n 4 "$GNNSTREAM" train "$work/store" "${options[@]}" --checkpoint "$work/saved" \
        --checkpoint-every 1 --save "$work/killed.safetensors" >"$work/stdout" 2>&1 &
    launcher=$!
    sleep "$(awk -v r=$RANDOM -v t=$took 'BEGIN { print (0.25 + 0.8 * r / 32768) * t / 1000 }')"
    mapfile -t rank < <(pgrep -f "^$GNNSTREAM train $work/store")
    [ ${#rank[@]} -eq 0 ] || kill -KILL "${rank[RANDOM % ${#rank[@]}]}" 2>"$work/stderr" && killed=$((killed + 1))
    if wait $launcher; then # it was over
        cmp "$work/killed.safetensors" "$work/whole.safetensors" && pass || fail "kill $k: the end is another"
        continue
    fi
    pgrep -f "^$GNNSTREAM train $work/store" >"$work/stderr" && fail "kill $k: a rank is left" "$work/stderr" || pass
    if ! compgen -G "$work/saved/epoch-*" >"$work/stderr"; then
        before=$((before + 1))
        continue
    fi
    n=$((3 + k % 2))
    if ! timeout 100 mpirun -n $n "$GNNSTREAM" train "$work/store" "${options[@]}" --resume "$work/saved" \
        --save "$work/on.safetensors" >"$work/stdout" 2>"$work/stderr"; then # it may say that the plan is another
        fail "kill $k: resume by $n" "$work/stderr"
        continue
    fi
    resumed=$((resumed + 1))
    compare "kill $k: gone on by $n" "$work/on.safetensors" "$work/whole.safetensors" 1e-5
    [ $n -eq 3 ] || cmp "$work/on.safetensors" "$work/whole.safetensors" && pass || fail "kill $k: other bits"
done
echo "$killed kills, $before before the first checkpoint, $resumed gone on from"
finish
