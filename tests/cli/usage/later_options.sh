# Options of the contract whose feature is not there yet are refused, never ignored.
for option in --checkpoint --checkpoint-every --resume; do
    refused 2 "gnnstream train: $option is not available in this version" gnnstream train store --model gcn $option 1
done
