# A store without training vertices, labels or features cannot be trained on; features are missing only where the model
# reads them. One without edges has no subgraphs to draw by them.
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
cp graph/features.npy bare
printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '<i8', 'fortran_order': False, 'shape': (0, 2), }" >bare/edges.npy
gnnstream partition bare store --parts 2 --method random --force >made
for sampler in saint-node saint-edge saint-walk; do
    refused 2 "--sampler $sampler: draws subgraphs by edges, and store has none; use neighbor, cluster or none" \
        gnnstream train store --model gcn --sampler $sampler
done
gnnstream train store --model gcn --sampler cluster --batch-size 1 --epochs 1 >out
nothing_left
