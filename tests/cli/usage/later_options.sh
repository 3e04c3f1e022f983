# Options of the contract whose feature is not there yet are refused, never ignored.
for option in --checkpoint --checkpoint-every --resume; do
    refused 2 "gnnstream train: $option is not available in this version" gnnstream train store --model gcn $option 1
done
refused 2 'gnnstream train: --no-chain is not available in this version' gnnstream train store --model gcn --no-chain
refused 2 'gnnstream plan: --no-chain is not available in this version' gnnstream plan store --model gcn --no-chain
