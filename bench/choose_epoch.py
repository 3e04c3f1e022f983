#!/usr/bin/env python3
"""choose_epoch.py METRICS PATIENCE - the epoch at which early stopping would keep the weights.

Reads --metrics of `gnnstream train` and sees validation accuracy alone: training stops once it has stayed
below its best for PATIENCE epochs, and the last epoch that reached the best is kept. (The GAT paper's
rule, but for its second look at the validation loss, which the metrics do not have.)
"""
import json
import sys


def main():
    path, patience = sys.argv[1], int(sys.argv[2])
    best, chosen = -1.0, 0
    with open(path, encoding="utf-8") as file:
        for line in file:
            epoch = json.loads(line)
            if epoch["valid_acc"] >= best:
                best, chosen = epoch["valid_acc"], epoch["epoch"]
            elif epoch["epoch"] - chosen >= patience:
                break
    print(chosen)


if __name__ == "__main__":
    main()
