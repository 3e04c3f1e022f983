# A store without training vertices, labels or features cannot be trained on; features are missing only where the model
# reads them.
gnnstream generate sbm graph --vertices 300 --edges 2000 --features 4 --classes 2 --seed 1 >made
mkdir bare && cp graph/edges.npy bare
gnnstream partition bare store --parts 2 --method random >made
refused 1 'store: the store has no labels' gnnstream train store --model gcn
cp graph/labels.npy bare
gnnstream partition bare store --parts 2 --method random --force >made
refused 1 'store: the store has no training vertices' gnnstream train store --model gcn
refused 1 'store: the store has no training vertices' gnnstream plan store --model gcn
cp graph/train_idx.npy bare
gnnstream partition bare store --parts 2 --method random --force >made
refused 1 'store: the store has no features' gnnstream train store --model gcn
nothing_left
