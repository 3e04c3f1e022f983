"""with_ranks.py RANK RANKS TENSORS OUT.json ... - a rank of torch alone on several machines, over gloo.

Whole epochs as SAR (Mostafa, MLSys 2022) has them: a rank has a range of the vertices, their rows and the edges into
them. Of each other rank, one after the other, it gets the rows that these edges name, adds what they bring, and
forgets them; backward the sums of gradients go the same way back. For what is linear in the rows nothing is fetched
twice. Gradients of weights are added over all ranks. The layers are those of with_csr.py, whose `matrix @ rows` is an
exchange here. GAT is not here: its softmax over edges of several ranks needs another form.
"""
import argparse
import datetime
import json
import pathlib
import resource
import time

import numpy as np
import torch
import torch.distributed as dist

import with_csr


def csr(rows, columns, values, shape):
    """Of coordinates in the order of their rows."""
    pointers = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=shape[0]))]).astype(np.int32)
    return torch.sparse_csr_tensor(torch.from_numpy(pointers), torch.from_numpy(columns.astype(np.int32)),
                                   torch.from_numpy(values), shape)


def both_ways(rows, columns, values, shape):
    """The block and its transpose."""
    order = np.lexsort((rows, columns))
    return csr(rows, columns, values, shape), csr(columns[order], rows[order], values[order], shape[::-1])


class Dealt:
    """This rank's rows of a matrix, in blocks of columns by who owns them."""

    def __init__(self, part, name):
        self.rank, self.ranks, self.bounds = part.rank, part.ranks, part.bounds
        indptr, indices, values = (part.open(f"{name}.{what}") for what in ("indptr", "indices", "values"))
        first, last = part.first, part.last
        begin, end = indptr[first], indptr[last]
        rows = np.repeat(np.arange(last - first), np.diff(indptr[first:last + 1]))
        columns, values = np.array(indices[begin:end]), np.array(values[begin:end])
        self.blocks, needed = [], []
        for p in range(self.ranks):
            mine = (columns >= self.bounds[p]) & (columns < self.bounds[p + 1])
            if p == self.rank:
                known, at = np.arange(last - first), columns[mine] - first
            else:
                known, at = np.unique(columns[mine], return_inverse=True)
            self.blocks.append(both_ways(rows[mine], at, values[mine], (last - first, len(known))))
            needed.append(torch.from_numpy((known - self.bounds[p]).astype(np.int64)))
        everyone = [None] * self.ranks
        dist.all_gather_object(everyone, needed)
        self.wanted = [everyone[p][self.rank] for p in range(self.ranks)]  # rows of this rank that p needs
        self.needed = needed

    def start(self, k, rows_for, count_from, width):
        """What goes to the k-th rank behind this one, and comes from the k-th before it."""
        to, source = (self.rank + k) % self.ranks, (self.rank - k) % self.ranks
        rows, room = rows_for(to), torch.empty(count_from(source), width)
        return source, room, rows, [dist.isend(rows, to), dist.irecv(room, source)]

    def exchange(self, own, add, rows_for, count_from, width):
        """own() plus what add(sum, p, rows that came from p) adds; while it computes the next rows are under way."""
        under_way = self.start(1, rows_for, count_from, width) if self.ranks > 1 else None
        out = own()
        for k in range(1, self.ranks):
            p, rows, _, requests = under_way
            for request in requests:
                request.wait()
            under_way = self.start(k + 1, rows_for, count_from, width) if k + 1 < self.ranks else None
            add(out, p, rows)
        return out

    def __matmul__(self, x):
        return self.exchange(lambda: self.blocks[self.rank][0] @ x,
                             lambda out, p, rows: out.add_(self.blocks[p][0] @ rows),
                             lambda to: x[self.wanted[to]], lambda p: len(self.needed[p]), x.shape[1])


class Back:
    """The transpose of a Dealt: what its columns get, at their owners."""

    def __init__(self, dealt):
        self.dealt = dealt

    def __matmul__(self, g):
        d = self.dealt
        return d.exchange(lambda: d.blocks[d.rank][1] @ g, lambda out, p, rows: out.index_add_(0, d.wanted[p], rows),
                          lambda to: d.blocks[to][1] @ g, lambda p: len(d.wanted[p]), g.shape[1])


class Part:
    """What data.Data has, of the vertices of one rank."""

    def __init__(self, folder, rank, ranks):
        self.folder, self.rank, self.ranks = pathlib.Path(folder), rank, ranks
        x, y, train = (self.open(name) for name in ("x", "y", "train"))
        self.vertices, self.features = x.shape
        self.bounds = [self.vertices * r // ranks for r in range(ranks + 1)]
        self.first, self.last = self.bounds[rank], self.bounds[rank + 1]
        self.x = torch.from_numpy(np.array(x[self.first:self.last]))
        mine = np.array(train[(train >= self.first) & (train < self.last)])
        self.train = torch.from_numpy(mine - self.first)
        self.target = torch.from_numpy(np.array(y[mine]))
        self.all_train = len(train)

    def open(self, name):
        return np.load(self.folder / f"{name}.npy", mmap_mode="r")

    def both(self, name):
        dealt = Dealt(self, name)
        return dealt, Back(dealt)


def epochs(count, parameters, forward, data, lr):
    optimizer = torch.optim.SGD(parameters, lr=lr)
    for _ in range(count):
        start = time.perf_counter()
        optimizer.zero_grad()
        out = forward()[data.train]
        loss = torch.nn.functional.cross_entropy(out, data.target, reduction="sum") / data.all_train
        loss.backward()
        learned = [p for p in parameters if p.grad is not None]  # not GIN's eps, which stays 0
        together = torch.cat([p.grad.flatten() for p in learned] + [loss.detach()[None]])
        dist.all_reduce(together)
        for p, g in zip(learned, together[:-1].split([p.numel() for p in learned])):
            p.grad.copy_(g.view_as(p))
        optimizer.step()
        yield time.perf_counter() - start, together[-1].item()


def main():
    from safetensors.torch import load_file
    p = argparse.ArgumentParser()
    p.add_argument("rank", type=int)
    p.add_argument("ranks", type=int)
    p.add_argument("tensors")
    p.add_argument("out")
    p.add_argument("--model", choices=["gcn", "sage", "gin"], required=True)
    p.add_argument("--weights", required=True)
    p.add_argument("--once", action="store_true", help="layer 1's sums of the features before the first epoch")
    p.add_argument("--epochs", type=int, default=5)
    p.add_argument("--lr", type=float, default=0.05)
    s = p.parse_args()
    torch.set_num_threads(1)
    import_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    dist.init_process_group("gloo", rank=s.rank, world_size=s.ranks, timeout=datetime.timedelta(seconds=120))
    data = Part(s.tensors, s.rank, s.ranks)
    s.weights = load_file(s.weights)
    run = list(epochs(s.epochs, *with_csr.by_hand(s, data, s.once), data, s.lr))
    peak = torch.tensor([resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.])
    dist.all_reduce(peak, dist.ReduceOp.MAX)
    if s.rank == 0:
        with open(s.out, "w") as f:
            json.dump({"seconds": [r[0] for r in run], "losses": [r[1] for r in run], "import_bytes": import_bytes,
                       "peak_bytes": int(peak.item())}, f)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
