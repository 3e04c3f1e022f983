# Every kind of value, out of its range or not of its kind; nothing is read or made.
t() { refused 2 "gnnstream train: $1" gnnstream train store --model gcn "${@:2}"; }
for size in 12Q -1G '' lots 0 1e3 0x10 99999999999999G; do
    t "--host-memory" --host-memory "$size"
done
for count in -1 3x '' ' 3' 1.5 99999999999 0; do
    t "--layers $count: must be a whole number from 1 to 64" --layers "$count"
done
t '--epochs -1: must be' --epochs -1
t '--seed -1: must be' --seed -1
t '--seed 18446744073709551616: must be' --seed 18446744073709551616
for real in fast nan inf 1x ''; do
    t "--lr $real: must be a number" --lr "$real"
done
t '--lr 0: must be a number above 0' --lr 0
t '--dropout 1: must be' --dropout 1
t '--input-dropout -0.1: must be' --input-dropout -0.1
t '--weight-decay -1: must be' --weight-decay -1
t '--optimizer lion: must be one of adam|adamw|sgd' --optimizer lion
t '--optimizer dam|sgd: must be one of adam|adamw|sgd' --optimizer 'dam|sgd'
t '--optimizer ada: must be one of adam|adamw|sgd' --optimizer ada
t '--heads 0: must be' --heads 0
t '--layers 3?: must be a whole number' --layers $'3\n'
t '--sampler a?b: must be one of' --sampler $'a\tb'
t 'unknown option --mo?del' $'--mo\ndel' x
t '--save: its value is empty' --save ''
t '--save and --metrics both name x' --save x --metrics x
for device in cuda:x cuda:0, cuda:,1 cuda0 cpu: cpu:x cpu:0 cpu:17 cpu:2,2 tpu; do
    t "--device $device: must be cpu, cpu:N for up to 16 that share the processors, cuda, cuda:N" --device $device
done
t '--spill-type f16: must be one of f32|bf16' --spill-type f16
t '--gather-type f16: must be one of f32|bf16' --gather-type f16
t '--disk-to-device maybe: must be one of auto|yes|no' --disk-to-device maybe
t '--matmul f8: must be one of fp32|tf32|bf16' --matmul f8
p() { refused 2 "gnnstream partition: $1" gnnstream partition graph store "${@:2}"; }
p '--parts 0: must be a whole number from 1 to 16384, or auto' --parts 0
p '--parts few: must be' --parts few
p '--ranks 3: orders of --method fennel are the same for any' --ranks 3 --method fennel
p '--method ldg: must be one of metis|lp|fennel|random|natural' --method ldg
p '--format dot: must be one of npy-types|' --format dot
p '--split 0.6,0.2: must be three shares from 0 to 1' --split 0.6,0.2
p '--split 0.6,0.3,0.2: the shares are more than 1 together' --split 0.6,0.3,0.2
p '--feature-type f8: must be one of f32|bf16|f16' --feature-type f8
[ ! -e store ] || die 'wrong usage made a store'
