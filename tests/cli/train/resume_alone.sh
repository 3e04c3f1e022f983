# --resume DIR alone goes on as the run was told to, from the folder that it was begun in; what is given comes before.
small_store
mkdir "a folder"
cd "a folder"
same=(--model gcn --hidden 8 --threads 1 --dropout 0.3 --host-memory 256M --seed 5)
gnnstream train ../store "${same[@]}" --epochs 9 --save whole.safetensors >out
gnnstream train ../store "${same[@]}" --epochs 5 --checkpoint "the run's" --checkpoint-every 1 \
    --save parts.safetensors >out
gnnstream train --resume "the run's" --epochs 9 >out 2>err
grep -q "goes on after epoch 5" err || die "$(<err)"
cmp <(tensors whole.safetensors) <(tensors parts.safetensors) || die "other weights"

# Once more: what was given then counts too.
gnnstream train --resume "the run's" >out 2>err
grep -q "goes on after epoch 9; of --epochs 9 none is left" err || die "$(<err)"

# The store behind "--", and options from a file.
printf 'model: gcn\nhidden: 8\nepochs: 2\n' >options.yaml
gnnstream train --config options.yaml --checkpoint other --checkpoint-every 1 -- ../store >out
gnnstream train --resume other --epochs 3 >out 2>err
grep -q "goes on after epoch 2" err || die "$(<err)"

refused 2 "--hidden 4: the checkpoint" gnnstream train --resume "the run's" --hidden 4
mkdir empty
refused 1 "there is no checkpoint" gnnstream train --resume empty
cd ..
refused 1 "the run was begun in the folder $PWD/a folder" gnnstream train --resume "a folder/the run's"
refused 2 "STORE is missing" gnnstream train --model gcn
