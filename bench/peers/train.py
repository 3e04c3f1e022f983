"""train.py PEER TENSORS OUT.json ... - one peer trains one model; or PEER `weights`: only writes them.

An epoch is everything that an epoch of gnnstream is: gradients to zero, forward, loss (mean cross
entropy of the training vertices), backward, SGD. OUT.json gets the seconds and the loss of each.
"""
import argparse
import json
import resource
import sys
import time

import torch

PEERS = ("pyg", "pyg-csr", "csr", "csr-once", "dgl", "weights")


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("peer", choices=PEERS)
    p.add_argument("tensors")
    p.add_argument("out")
    p.add_argument("--model", required=True)
    p.add_argument("--weights", required=True)
    p.add_argument("--hidden", type=int, default=64)
    p.add_argument("--heads", type=int, default=8)
    p.add_argument("--classes", type=int, required=True)
    p.add_argument("--types", type=int, default=0)
    p.add_argument("--epochs", type=int, default=5)
    p.add_argument("--lr", type=float, default=0.05)
    p.add_argument("--threads", type=int, default=1)
    return p.parse_args()


def peer(name):
    if name in ("csr", "csr-once"):
        import with_csr
        return with_csr.by_hand if name == "csr" else with_csr.by_hand_once
    if name == "dgl":
        import with_dgl
        return with_dgl.run
    import with_pyg
    return with_pyg.csr if name == "pyg-csr" else with_pyg.edge_index


def now():
    """On a GPU, what was asked for so far is done by then: torch only puts it in a queue."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


def epochs(count, parameters, forward, data, lr):
    optimizer = torch.optim.SGD(parameters, lr=lr)
    for _ in range(count):
        start = now()
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(forward()[data.train], data.target)
        loss.backward()
        optimizer.step()
        yield now() - start, loss.item()


def main():
    from safetensors.torch import load_file, save_file
    s = arguments()
    torch.set_num_threads(s.threads)
    make = peer(s.peer)
    import_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    from data import Data
    data = Data(s.tensors)
    s.features = data.features
    if s.peer == "weights":
        import with_pyg
        torch.manual_seed(1)
        save_file({name: p.detach().clone() for name, p in with_pyg.network(s).state_dict().items()}, s.weights)
        return
    s.weights = load_file(s.weights)
    try:
        run = list(epochs(s.epochs, *make(s, data), data, s.lr))
        result = {"seconds": [r[0] for r in run], "losses": [r[1] for r in run], "import_bytes": import_bytes}
    except NotImplementedError as e:
        result = {"none": str(e)}
    except (RuntimeError, MemoryError) as e:
        if "memory" not in str(e) and not isinstance(e, MemoryError):
            raise
        result = {"none": "out of memory"}
        print(e, file=sys.stderr)
    with open(s.out, "w") as f:
        json.dump(result, f)


if __name__ == "__main__":
    main()
