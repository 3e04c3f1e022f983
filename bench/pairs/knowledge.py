#!/usr/bin/env python3
"""Pairs beside PyTorch: a graph of FB15k-237's shape, and the training that gnnstream does, in torch.

    knowledge.py make FOLDER   14,541 vertices, 237 types, few of them frequent, 272,115 + 17,535 + 20,466 pairs
    knowledge.py train FOLDER [--decoder complex] [--hidden 64] [--epochs 10] [--negatives 64] [--batch-size 1024]
                              [--lr 0.01] [--seed 0]   prints the filtered MRR and hits@10 of validation

Then, with the same numbers:

    gnnstream partition FOLDER STORE --parts 1
    gnnstream train STORE --task link --model embedding --decoder complex --hidden 64 --epochs 10 --negatives 64 ...
"""
import argparse
import json
import os

import numpy as np

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


def train(o):
    import torch
    torch.manual_seed(o.seed)
    split = {name: torch.as_tensor(load(o.folder, name)) for name in SPLITS}
    facts, count, k = split["train"], len(split["train"]), o.negatives
    rows = torch.nn.Embedding(VERTICES, o.hidden, sparse=True)
    kinds = torch.nn.Embedding(TYPES, o.hidden)
    for table in (rows, kinds):
        torch.nn.init.normal_(table.weight, 0, .1)
    steps = [torch.optim.SparseAdam(rows.parameters(), o.lr), torch.optim.Adam(kinds.parameters(), o.lr)]
    for epoch in range(o.epochs):
        order, total = torch.randperm(count), 0.
        for at in range(0, count, o.batch_size):
            batch = facts[order[at:at + o.batch_size]]
            whole = -(-len(batch) // k) * k
            real = torch.arange(whole) < len(batch)
            batch = torch.cat([batch, batch[:1].expand(whole - len(batch), 3)]).view(-1, k, 3)
            h, kind, t = batch.unbind(-1)
            wrong = torch.randint(VERTICES, (2, len(batch), k))
            head, tail, kind, other = rows(h), rows(t), kinds(kind), rows(wrong)
            loss = 0
            for side, (end, own, own_id) in enumerate([(head, tail, t), (tail, head, h)]):
                q = query(torch, o.decoder, end, kind, side == 1)
                score = q @ other[side].transpose(1, 2)
                score = score.masked_fill(wrong[side][:, None, :] == own_id[..., None], -np.inf)
                score = torch.cat([(q * own).sum(-1, keepdim=True), score], -1)
                each = score.logsumexp(-1) - score[..., 0]
                loss = loss + each.view(-1)[real].sum() / real.sum() / 2
            for step in steps:
                step.zero_grad()
            loss.backward()
            for step in steps:
                step.step()
            total += loss.item() * real.sum().item()
        print(f"epoch {epoch + 1}: loss {total / count:.4f}", flush=True)
    with torch.no_grad():
        mrr, hits = evaluate(torch, o, rows.weight, kinds.weight, torch.cat(list(split.values())), split["valid"])
    print(f"{o.decoder}: MRR {mrr:.4f}, hits@10 {hits:.4f}")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("what", choices=["make", "train"])
    p.add_argument("folder")
    p.add_argument("--decoder", choices=["distmult", "complex"], default="complex")
    p.add_argument("--lr", type=float, default=.01)
    for name, value in {"hidden": 64, "epochs": 10, "negatives": 64, "batch-size": 1024, "seed": 0}.items():
        p.add_argument("--" + name, type=int, default=value)
    o = p.parse_args()
    make(o.folder) if o.what == "make" else train(o)


if __name__ == "__main__":
    main()
