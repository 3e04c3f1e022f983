#!/usr/bin/env python3
"""Pairs beside PyTorch: a graph of FB15k-237's shape, and the training that gnnstream does, in torch.

    knowledge.py make FOLDER   14,541 vertices, 237 types, few of them frequent, 272,115 + 17,535 + 20,466 pairs
    knowledge.py train FOLDER [--decoder complex] [--hidden 64] [--epochs 10] [--negatives 64] [--batch-size 1024]
                              [--lr 0.01] [--seed 0]   prints the filtered MRR and hits@10 of validation
    knowledge.py layers FOLDER ...                     the same of a table and two layers of R-GCN on it, on the whole
                                                       graph, a step an epoch

Then, with the same numbers:

    gnnstream partition FOLDER STORE --parts 1
    gnnstream train STORE --task link --model embedding --decoder complex --hidden 64 --epochs 10 --negatives 64 ...
    gnnstream train STORE --task link --model FOLDER/rgcn.gnn --decoder distmult ...
"""
import argparse
import json
import os

import numpy as np

RGCN = """layer rgcn(h[in]) -> [out]:
    param weight[types, in, out], root[in, out] ~ glorot, bias[out] ~ zeros
    return mean(u.h @ weight[e.type], type) + h @ root + bias

network(x[in]) -> [out]:
    param node_emb.weight[vertices, out] ~ normal(0.1)
    return rgcn(act(rgcn(node_emb.weight, hidden)), out)
"""
VERTICES, TYPES, SPLITS = 14541, 237, {"train": 272115, "valid": 17535, "test": 20466}


def make(folder):
    """Heads and types are Zipf-like. A type has 20 vertices as tails, of which a planted ComplEx model draws one."""
    r = np.random.default_rng(0)
    vector = r.normal(size=(VERTICES, 8)) + 1j * r.normal(size=(VERTICES, 8))
    relation = np.exp(2j * np.pi * r.random((TYPES, 8))) * (r.random((TYPES, 8)) < .5)
    of_type = 1 / np.arange(1, TYPES + 1)
    popular = (1 / np.arange(1, VERTICES + 1) ** .6)[r.permutation(VERTICES)]
    of_type, popular = of_type / of_type.sum(), popular / popular.sum()
    tails = np.stack([r.choice(VERTICES, 20, replace=False, p=popular) for _ in range(TYPES)])
    facts = {}
    while len(facts) < sum(SPLITS.values()):
        head, kind = r.choice(VERTICES, 4096, p=popular), r.choice(TYPES, 4096, p=of_type)
        some = tails[kind]
        score = np.einsum("md,mkd->mk", vector[head] * relation[kind], np.conj(vector[some])).real
        score += r.gumbel(size=score.shape)
        tail = some[np.arange(4096), score.argmax(1)]
        facts.update(dict.fromkeys(zip(head.tolist(), kind.tolist(), tail.tolist())))
    facts = np.array(list(facts), dtype=np.int32)[r.permutation(len(facts))[:sum(SPLITS.values())]]
    os.makedirs(folder, exist_ok=True)
    for split, count in SPLITS.items():
        own, facts = facts[:count], facts[count:]
        name = {"train": "edges"}.get(split, split + "_edges")
        np.save(f"{folder}/{name}.npy", own[:, [0, 2]])
        np.save(f"{folder}/{name[:-1]}_types.npy", own[:, 1])
    with open(f"{folder}/meta.json", "w", encoding="utf-8") as meta:
        json.dump({"num_nodes": VERTICES, "num_edge_types": TYPES}, meta)
    with open(f"{folder}/rgcn.gnn", "w", encoding="utf-8") as text:
        text.write(RGCN)


def load(folder, split):
    name = {"train": "edges"}.get(split, split + "_edges")
    ends = np.load(f"{folder}/{name}.npy").astype(np.int64)
    return np.stack([ends[:, 0], np.load(f"{folder}/{name[:-1]}_types.npy"), ends[:, 1]], 1)


def query(torch, decoder, end, kind, tail):
    """The row whose dot product with the other end's is the score; `tail`: the end that is given."""
    if decoder == "distmult":
        return end * kind
    (a, b), (c, d) = end.chunk(2, -1), kind.chunk(2, -1)
    d = -d if tail else d
    return torch.cat([a * c - b * d, a * d + b * c], -1)


def evaluate(torch, o, rows, kinds, facts, valid):
    """Filtered; the mean rank where scores are equal."""
    known = {}
    for h, k, t in facts.tolist():
        known.setdefault((h, k, 0), []).append(t)
        known.setdefault((t, k, 1), []).append(h)
    ranks = []
    for side in (0, 1):
        for at in range(0, len(valid), 512):
            h, k, t = valid[at:at + 512].T
            end, other = (h, t) if side == 0 else (t, h)
            score = query(torch, o.decoder, rows[end], kinds[k], side == 1) @ rows.T
            own = score[range(len(end)), other][:, None].clone()
            for i, key in enumerate(zip(end.tolist(), k.tolist())):
                score[i, known[(*key, side)]] = -np.inf
            ranks.append(1 + (score > own).sum(1) + (score == own).sum(1) / 2)
    ranks = torch.cat(ranks).double()
    return (1 / ranks).mean().item(), (ranks <= 10).double().mean().item()


def batch_loss(torch, o, batch, row_of, kind_of):
    """The sum over the pairs of a batch of the mean over both ends, and how many they are."""
    k, count = o.negatives, len(batch)
    whole = -(-count // k) * k
    real = torch.arange(whole) < count
    batch = torch.cat([batch, batch[:1].expand(whole - count, 3)]).view(-1, k, 3)
    h, kind, t = batch.unbind(-1)
    wrong = torch.randint(VERTICES, (2, len(batch), k))
    head, tail, kind, other = row_of(h), row_of(t), kind_of(kind), row_of(wrong)
    loss = 0
    for side, (end, own, own_id) in enumerate([(head, tail, t), (tail, head, h)]):
        q = query(torch, o.decoder, end, kind, side == 1)
        score = q @ other[side].transpose(1, 2)
        score = score.masked_fill(wrong[side][:, None, :] == own_id[..., None], -np.inf)
        score = torch.cat([(q * own).sum(-1, keepdim=True), score], -1)
        each = score.logsumexp(-1) - score[..., 0]
        loss = loss + each.view(-1)[real].sum() / 2
    return loss, count


def epoch_of_steps(torch, o, facts, rows, kinds, steps):
    total = 0.
    for batch in facts[torch.randperm(len(facts))].split(o.batch_size):
        loss, count = batch_loss(torch, o, batch, rows, kinds)
        for step in steps:
            step.zero_grad()
        (loss / count).backward()
        for step in steps:
            step.step()
        total += loss.item()
    return total / len(facts)


class Layer:
    """R-GCN: a mean over each relation, whose matrix is its own."""

    def __init__(self, torch, width, facts):
        bound = (6 / (2 * width)) ** .5
        self.weight = torch.empty(TYPES, width, width).uniform_(-bound, bound).requires_grad_()
        self.root = torch.empty(width, width).uniform_(-bound, bound).requires_grad_()
        self.bias = torch.zeros(width, requires_grad=True)
        self.parameters, self.torch = [self.weight, self.root, self.bias], torch
        self.of_type = []
        for kind in range(TYPES):
            h, _, t = facts[facts[:, 1] == kind].T
            self.of_type.append((h, t, 1 / torch.bincount(t, minlength=VERTICES)[t].float()))

    def __call__(self, x):
        out = x @ self.root + self.bias
        for kind, (h, t, share) in enumerate(self.of_type):
            out = out.index_add(0, t, (x[h] @ self.weight[kind]) * share[:, None])
        return out


def epoch_of_one_step(torch, o, facts, rows, kinds, layers, step):
    """The gradient of the last layer's rows is added up over batches."""
    z = layers[1](layers[0](rows.weight).relu())
    leaf = z.detach().requires_grad_()
    total = 0.
    step.zero_grad()
    for batch in facts[torch.randperm(len(facts))].split(o.batch_size):
        loss, _ = batch_loss(torch, o, batch, lambda ids: leaf[ids], kinds)
        (loss / len(facts)).backward()
        total += loss.item()
    z.backward(leaf.grad)
    step.step()
    return total / len(facts)


def train(o):
    import torch
    torch.manual_seed(o.seed)
    split = {name: torch.as_tensor(load(o.folder, name)) for name in SPLITS}
    facts, behind = split["train"], o.what == "layers"
    rows = torch.nn.Embedding(VERTICES, o.hidden, sparse=not behind)
    kinds = torch.nn.Embedding(TYPES, o.hidden)
    for table in (rows, kinds):
        torch.nn.init.normal_(table.weight, 0, .1)
    layers = [Layer(torch, o.hidden, facts) for _ in range(2 * behind)]
    if behind:
        step = torch.optim.Adam([rows.weight, kinds.weight] + sum((x.parameters for x in layers), []), o.lr)
    else:
        step = [torch.optim.SparseAdam(rows.parameters(), o.lr), torch.optim.Adam(kinds.parameters(), o.lr)]
    for epoch in range(o.epochs):
        loss = epoch_of_one_step(torch, o, facts, rows, kinds, layers, step) if behind else \
            epoch_of_steps(torch, o, facts, rows, kinds, step)
        print(f"epoch {epoch + 1}: loss {loss:.4f}", flush=True)
    with torch.no_grad():
        z = layers[1](layers[0](rows.weight).relu()) if behind else rows.weight
        mrr, hits = evaluate(torch, o, z, kinds.weight, torch.cat(list(split.values())), split["valid"])
    print(f"{o.decoder}: MRR {mrr:.4f}, hits@10 {hits:.4f}")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("what", choices=["make", "train", "layers"])
    p.add_argument("folder")
    p.add_argument("--decoder", choices=["distmult", "complex"], default="complex")
    p.add_argument("--lr", type=float, default=.01)
    for name, value in {"hidden": 64, "epochs": 10, "negatives": 64, "batch-size": 1024, "seed": 0}.items():
        p.add_argument("--" + name, type=int, default=value)
    o = p.parse_args()
    make(o.folder) if o.what == "make" else train(o)


if __name__ == "__main__":
    main()
