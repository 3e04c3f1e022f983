#!/usr/bin/env bash
# gpu_library.sh - the program as it is, with libraries in the place of CUDA's: what it finds, what it asks of them, and
# what it says when the GPU has no memory, fails or goes away.
. "$(dirname "$0")/../e2e/lib.sh"
: "${HOST_LIBRARY:?}"

input_of rough
run "partition" "$GNNSTREAM" partition "$input" "$work/store" --method natural --parts 3 || finish
mkdir "$work/lib" "$work/kernels"
export LD_LIBRARY_PATH=$work/lib GS_HOST_GPU=$work/kernels GS_HOST_GPU_LOG=$work/log
memory=268435456 # of a GPU with more, each run clears a larger workspace
export GS_HOST_GPU_MEMORY=$memory

# A few of the places where a GPU goes away, while it opens, plans and trains, and all with GS_TEST_ALL.
few= lost='1 300' second_lost=400 every=300 kernels=30 kernels_of_two=20 pins= budgets=0
[ -z "${GS_TEST_ALL:-}" ] || lost='1 10 40 100 200 300' second_lost='1 30 100 200 300 400' every=15 kernels='1 5 30' \
    kernels_of_two='1 6 20' pins='304 712 999' budgets='0 2 4 6' # pins: a call of the system, pinned by others, unknown
[ -z "${GS_SANITIZED:-}" ] || [ -n "${GS_TEST_ALL:-}" ] || few=yes

options=(train "$work/store" --model gcn --hidden 16 --epochs 3 --optimizer sgd)

# Nothing that a run was to leave, nor what it spilled; and the store is whole.
clean()
{
    if [ -e "$work/out.safetensors" ] || [ -e "$work/out.npy" ] ||
        ls -d "$work"/store/spill.* "$work"/out.* >/dev/null 2>&1; then
        fail "$1: left files behind"
    fi
    run "$1: the store afterwards" "$GNNSTREAM" verify "$work/store"
}

# fails FAULT PATTERN OPTIONS...: one line that says so, status 1, and nothing left behind.
fails()
{
    local fault=$1 pattern=$2
    shift 2
    refuse 1 "$pattern" env GS_HOST_GPU_FAULT="$fault" "$GNNSTREAM" "${options[@]}" --device cuda \
        --save "$work/out.safetensors" --logits "$work/out.npy" "$@"
    clean "$fault"
}

# Libraries come one by one.
no_driver='the driver \(libcuda.so.1\) was not found: .*use --device cpu'
if ldconfig -p | grep -q 'libcuda\.so\.1'; then
    note "this machine has CUDA's driver: what is said without it was not tried"
else
    fails "" "$no_driver"
fi
ln -s "$HOST_LIBRARY" "$work/lib/libcuda.so.1"
ln -s "$HOST_LIBRARY" "$work/lib/libnvrtc.so.13"
ldconfig -p | grep -q libcublas || fails "" 'libcublas was not found: .*use --device cpu'
ln -s "$HOST_LIBRARY" "$work/lib/libcublas.so.13"

# Trained through them, to the CPU's weights; products are what --matmul says.
run "train on the CPU" "$GNNSTREAM" "${options[@]}" --save "$work/cpu.safetensors"
for matmul in fp32 tf32 bf16; do
    rm -f "$work/log"
    run "train, $matmul" "$GNNSTREAM" "${options[@]}" --device cuda --matmul $matmul \
        --save "$work/$matmul.safetensors" || continue
    compare "weights, $matmul" "$work/$matmul.safetensors" "$work/cpu.safetensors" 1e-4 # the host rounds none of them
    awk -v want=$matmul '$1 == "launches" && $2 > 0 { # where devices were opened for a plan alone, nothing ran
            for (i = 1; i < NF; i++) if ($i ~ /^(fp32|tf32|bf16)$/ && ($i == want) != ($(i + 1) > 0)) exit 1}' \
        "$work/log" ||
        fail "products that are not $matmul" "$work/log"
done
rm -f "$work/log"
run "train, with metrics" "$GNNSTREAM" "${options[@]}" --device cuda --no-cache --metrics "$work/metrics"
awk -F'"copied_(in|out)_bytes": ' 'NR == FNR {sum[2] += $2; sum[3] += $3; next}
    {split($0, word, " "); in_bytes += word[6]; out_bytes += word[8]} # a line each time that devices were opened
    END {exit !(sum[2] > 0 && sum[2] <= in_bytes && sum[3] > 0 && sum[3] <= out_bytes)}' \
    "$work/metrics" "$work/log" ||
    fail "bytes that epochs say were copied, and the driver did not copy" "$work/metrics"
# With all of the graph on the device too, an epoch copies nothing to it (the first, in what order targets are taken),
# and from it the sums of the loss, 80 bytes, what was found of five classes (three figures of three splits, 4 bytes
# each), 180, and whether weights are finite, 4. Weights and gradients stay.
run "train, all on the device" "$GNNSTREAM" "${options[@]}" --optimizer adam --device cuda --metrics "$work/metrics"
tail -n 2 "$work/metrics" | grep -c '"copied_in_bytes": 0, "copied_out_bytes": 264,' | grep -qx 2 ||
    fail "epochs that copy more" "$work/metrics"
# By Adam: the same weights as the CPU's, its state in the device's memory.
for device in cpu cuda; do
    run "train by Adam, $device" "$GNNSTREAM" "${options[@]}" --optimizer adam --weight-decay 0.05 --device $device \
        --save "$work/adam.$device.safetensors"
done
compare "weights by Adam" "$work/adam.cuda.safetensors" "$work/adam.cpu.safetensors" 1e-4
refuse 2 '--matmul fp8: must be one of fp32.tf32.bf16' "$GNNSTREAM" "${options[@]}" --device cuda --matmul fp8

# Kept kernels that were cut short, or changed, are not shown to the driver, which would be told no length: they are
# compiled again.
kept=("$work"/kernels/*.cubin)
for file in "${kept[@]}"; do
    head -c 20 "$file" >"$file.short" && mv "$file.short" "$file"
done
run "train with kernels that were cut short" "$GNNSTREAM" "${options[@]}" --device cuda --save "$work/again.safetensors"
compare "weights, with kernels that were cut short" "$work/again.safetensors" "$work/fp32.safetensors" 0
for file in "${kept[@]}"; do
    [ "$(wc -c <"$file")" -gt 20 ] || fail "$file was not made again"
done

# Of a GPU that is newer than the compiler the run says what kernels are made for.
GS_HOST_GPU_CAPABILITY=17 "$GNNSTREAM" "${options[@]}" --device cuda --epochs 1 --json >"$work/stdout" 2>&1
if grep -q 'sm_170 as compute_90)' "$work/stdout"; then pass; else fail "a newer GPU" "$work/stdout"; fi
# Where host memory cannot be pinned a run says so once, and copies all the same. (Two GPUs: below.)
unpinned() # FAULT OPTIONS...
{
    local fault=$1
    shift
    if GS_HOST_GPU_FAULT=$fault "$GNNSTREAM" "${options[@]}" --no-cache --save "$work/unpinned.safetensors" "$@" \
        >"$work/stdout" 2>"$work/stderr" && [ "$(wc -l <"$work/stderr")" -eq 1 ] &&
        grep -q 'warning: device cuda:0: .* of host memory cannot be pinned (.*): copies are slower' \
            "$work/stderr"; then
        compare "weights without pinned memory" "$work/unpinned.safetensors" "$work/cpu.safetensors" 1e-4
    else
        fail "train $* without pinned memory" "$work/stderr"
    fi
}
unpinned pin --device cuda
for error in $pins; do
    unpinned "pin:$error" --device cuda
done
# Scratch is sized by the budget, and not by the GPU: an H100 (80 GiB, 132 processors) trains in as little as a small
# one. In 2 GiB cuBLAS has 32 MiB in place of 4, and the sums of hubs 16 in place of 1.
least_of() { GS_HOST_GPU_MEMORY=$1 GS_HOST_GPU_PROCESSORS=$2 "$GNNSTREAM" "${options[@]}" --device cuda \
    --device-memory 1M 2>&1 | sed -n 's/.*needs at least \([0-9]*\)M.*/\1/p'; }
unset GS_HOST_GPU_MEMORY
small=$(least_of 4294967296 1) large=$(least_of 85899345920 132)
run "least device memory, $small and $large MiB" test "$small" -eq "$large" -a "$large" -le 8
planned() { "$GNNSTREAM" plan "$work/store" --model gcn --hidden 16 --device cuda --json "$@"; }
for budget in 8M 2G; do
    planned --device-memory $budget >"$work/plan.$budget" || fail "plan in $budget"
done
# Host memory of CUDA's libraries: measured when the device is opened, a line of its own, named where a budget is
# refused; and the budget that is named holds them all.
export GS_HOST_GPU_RESIDENT=314572800
planned >"$work/plan.host" || fail "plan with libraries of 300 MiB"
run "scratch, and libraries" python3 - "$work"/plan.{8M,2G,host} <<'END'
import json, sys
small, large, host = ({i["name"]: i["bytes"] for i in json.load(open(p))["memory"]} for p in sys.argv[1:])
assert large["kernel scratch"] - small["kernel scratch"] == (32 - 4 + 16 - 1) << 20, (small, large)
assert 300 <= host["libraries of the GPU"] >> 20 <= 300 + 64 + 32 + 32, host
assert abs(host["process, store tables"] - small["process, store tables"]) < 16 << 20, (host, small)
END
trial=("$GNNSTREAM" "${options[@]}" --device cuda)
named=' for the program itself \([0-9.]* MiB for the libraries of the GPU\)'
refuse 1 "--host-memory 200.0 MiB is too small: .*$named" "${trial[@]}" --host-memory 200M
enough=$(sed -n 's/.*needs at least \([0-9]*\)M.*/\1/p' "$work/stderr")
[ -n "${GS_SANITIZED:-}" ] || run "in the ${enough}M that it names" python3 - "$enough" "${trial[@]}" --host-memory \
    "${enough}M" <<'END'
import resource, subprocess, sys
subprocess.run(sys.argv[2:], check=True, stdout=subprocess.DEVNULL)
most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
assert most <= int(sys.argv[1]), most
END
unset GS_HOST_GPU_RESIDENT
export GS_HOST_GPU_MEMORY=$memory

fails "none" 'there is no GPU that the driver can use; use --device cpu'
for n in 1 2; do
    fails "memory:$n" 'device cuda:0: .*the GPU is out of memory .*--device-memory'
done
fails "memory:3" "device cuda:0: memory for the optimizer's state: the GPU is out of memory .*--device-memory" \
    --optimizer adam
for n in $kernels; do
    fails "kernel:$n" 'device cuda:0: a kernel failed, .*CUDA_ERROR_LAUNCH_FAILED'
done
for n in $lost; do
    fails "lost:$n" 'device cuda:0: the GPU is lost, .*CUDA_ERROR_UNKNOWN'
done
# When it opens, and when a budget is to be found: it says that it is lost, not that the budget is too small.
for n in 1 2; do
    fails "asked:$n" 'device cuda:0: the GPU is lost, at asking for its memory: .*CUDA_ERROR_UNKNOWN'
done

# Two GPUs: what is copied between them is what the run says; where NCCL is there, it adds up all gradients at once, a
# call for each of the two in each of three epochs; and the one that fails is named.
export GS_HOST_GPUS=2
for nccl in no yes; do
    rm -f "$work/log" "$work/metrics"
    [ $nccl = no ] || ln -s "$HOST_LIBRARY" "$work/lib/libnccl.so.2"
    run "train on two, NCCL $nccl" "$GNNSTREAM" "${options[@]}" --device cuda:0,1 --save "$work/two.safetensors" \
        --metrics "$work/metrics" || continue
    compare "weights of two, NCCL $nccl" "$work/two.safetensors" "$work/cpu.safetensors" 1e-4
    awk -F'"forwarded_bytes": ' -v nccl=$nccl 'NR == FNR {sum += $2; next}
        {split($0, word, " "); between += word[10]; sums += word[12]}
        END {exit !(sum > 0 && sum <= between && sums == (nccl == "yes" ? 6 : 0))}' "$work/metrics" "$work/log" ||
        fail "bytes between GPUs, or sums, that are not the driver's" "$work/log"
done
fails "peer:1" 'device cuda:[01]: copying from another GPU: .*PEER_ACCESS_UNSUPPORTED' --device cuda:0,1
fails "memory:1@1" 'device cuda:1: .*the GPU is out of memory .*--device-memory' --device cuda:0,1
fails "memory:2@1" 'device cuda:1: taking --device-memory: the GPU is out of memory' --device cuda:0,1
for n in $kernels_of_two; do
    fails "kernel:$n@1" 'device cuda:1: a kernel failed, .*CUDA_ERROR_LAUNCH_FAILED' --device cuda:0,1
done
fails "asked:2@1" 'device cuda:1: the GPU is lost, at asking for its memory: .*CUDA_ERROR_UNKNOWN' --device cuda:0,1
for n in $second_lost; do
    fails "lost:$n@1" 'device cuda:1: the GPU is lost, .*CUDA_ERROR_UNKNOWN' --device cuda:0,1
done
# Ranks, which have the two in turn: rows of the other one, sums over all rows (a batch norm, before which a bias is
# worth nothing, so logits are compared); and who fails ends the other.
if command -v mpirun >"$work/which" && [ -e "$RANKS_MODULE" ]; then
    ranked=("${options[@]}" --norm batch --dropout 0.3 --host-memory 400M)
    run "several, for ranks" "$GNNSTREAM" "${ranked[@]}" --device cpu:2 --logits "$work/two.npy"
    run "ranks" timeout 100 mpirun -n 2 "$GNNSTREAM" "${ranked[@]}" --device cuda:0,1 --logits "$work/ranks.npy" &&
        compare "logits of ranks" "$work/ranks.npy" "$work/two.npy" 1e-4
    grep -q '2 x cuda:0' "$work/stdout" || fail "what ranks' devices are called" "$work/stdout"
    for n in 0 1; do # of rank n, which has GPU n
        GS_HOST_GPU_FAULT="memory:1@$n" timeout 100 mpirun -n 2 "$GNNSTREAM" "${ranked[@]}" --device cuda:0,1 \
            >"$work/stdout" 2>"$work/stderr" && fail "ranks: GPU $n has no memory, and nobody fails"
        grep -Eq "rank $n: device cuda:$n: .*the GPU is out of memory" "$work/stderr" ||
            fail "the words of rank $n, whose GPU has no memory" "$work/stderr"
    done
else
    note "no mpirun, or built without MPI: ranks on GPUs were not tried"
fi
# By way of a buffer of the host, which must not go while the first GPU still copies to it.
export GS_HOST_GPU_PEERS=none
unpinned pin --device cuda:0,1
for n in $(seq 150 $every 600); do
    fails "lost:$n@1" 'device cuda:1: the GPU is lost, .*CUDA_ERROR_UNKNOWN' --device cuda:0,1 --no-cache
done
[ -z "$few" ] || finish
# All in host memory, one interval of more rows than a launch has room for: the budget that the refusal names is enough,
# and so are those a little above it, where other plans fit.
run "generate, one interval" "$GNNSTREAM" generate rmat "$work/wide" --vertices 40000 --edges 40000 --features 32 \
    --classes 4 --seed 1
run "partition, one interval" "$GNNSTREAM" partition "$work/wide" "$work/wide.store" --parts 1 --method natural
wide=("$GNNSTREAM" train "$work/wide.store" --model gcn --hidden 32 --epochs 1 --device cuda --host-memory 2G \
    --device-memory)
enough=$("${wide[@]}" 1M 2>&1 | sed -n 's/.*needs at least \([0-9]*\)M.*/\1/p')
[ -n "$enough" ] || fail "one interval: no budget was named"
for more in $budgets; do
    run "one interval, ${more}M above the least" "${wide[@]}" $((enough + more))M
done

finish
