# A store that is not there, or not one.
mkdir empty
for command in info verify; do
    refused 1 "gnnstream $command: nowhere" gnnstream $command nowhere
    refused 1 'manifest.json' gnnstream $command empty
done
refused 1 'gnnstream plan: nowhere' gnnstream plan nowhere --model gcn
refused 1 'gnnstream train: nowhere' gnnstream train nowhere --model gcn
refused 1 'gnnstream predict: nowhere' gnnstream predict nowhere --model gcn --weights w --logits l.npy
refused 1 'gnnstream bench train: nowhere' gnnstream bench train nowhere --model gcn
refused 1 'gnnstream partition: nowhere' gnnstream partition nowhere store
[ ! -e store ] && [ ! -e l.npy ] || die 'something was made'
