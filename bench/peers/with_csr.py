"""torch alone, by hand, as fast as its sparse CSR products allow: each matrix and its transpose are
made once (inputs.py), the products with weights come before the edges where that is narrower, and the gradient of
features is not computed. As `csr-once`, what layer 1 sums of the features is computed before the first epoch, as
gnnstream does.
"""
import torch


class Product(torch.autograd.Function):
    """A @ x for a constant A; torch's own backward would transpose A in every epoch."""

    @staticmethod
    def forward(ctx, a, transpose, x):
        ctx.transpose = transpose
        return a @ x

    @staticmethod
    def backward(ctx, g):
        return None, None, ctx.transpose @ g if ctx.needs_input_grad[2] else None


class Weighted(torch.autograd.Function):
    """A(alpha) @ x with learned values alpha on the edges, for one head of attention."""

    @staticmethod
    def forward(ctx, edges, alpha, x):
        ctx.edges = edges
        ctx.save_for_backward(alpha, x)
        return edges.matrix(alpha) @ x

    @staticmethod
    def backward(ctx, g):
        alpha, x = ctx.saved_tensors
        e = ctx.edges
        zero = e.matrix(torch.zeros_like(alpha))
        of_alpha = torch.sparse.sampled_addmm(zero, g, x.t(), beta=0).values()
        return None, of_alpha, e.transposed(alpha[e.order]) @ g


class Edges:
    """CSR by destination with a self loop a vertex, its transpose, and the order between them."""

    def __init__(self, data):
        n = self.vertices = data.vertices
        loop = torch.arange(n)
        source, target = torch.cat([data.edge_index(), loop.repeat(2, 1)], 1)
        by_target = torch.argsort(target, stable=True)
        source, target = source[by_target], target[by_target]
        self.order = torch.argsort(source, stable=True)
        self.source, self.target = source, target
        self.forward = self.pointers(target), source.int()
        self.backward = self.pointers(source), target[self.order].int()

    def pointers(self, index):
        count = torch.bincount(index, minlength=self.vertices)
        return torch.cat([count.new_zeros(1), count.cumsum(0)]).int()

    def matrix(self, values):
        return torch.sparse_csr_tensor(*self.forward, values, (self.vertices, self.vertices))

    def transposed(self, values):
        return torch.sparse_csr_tensor(*self.backward, values, (self.vertices, self.vertices))

    def softmax(self, score):
        """Over the edges into each vertex; [E, heads]."""
        index = self.target[:, None].expand_as(score)
        empty = score.new_zeros(self.vertices, score.shape[1])
        most = empty.scatter_reduce(0, index, score.detach(), "amax", include_self=False)
        value = (score - most[self.target]).exp()
        return value / empty.index_add(0, self.target, value)[self.target]


def gcn(s, data, once):
    a = data.both("gcn")
    known = a[0] @ data.x if once else None

    def layer(w, x, last):
        if once and x is data.x:
            return known @ w["lin.weight"].t() + w["bias"]
        return Product.apply(*a, x @ w["lin.weight"].t()) + w["bias"]
    return layer


def sage(s, data, once):
    a = data.both("mean")
    known = a[0] @ data.x if once else None

    def layer(w, x, last):
        left = w["lin_l.weight"].t()
        if once and x is data.x:
            summed = known @ left
        elif left.shape[1] < left.shape[0]:
            summed = Product.apply(*a, x @ left)
        else:
            summed = Product.apply(*a, x) @ left
        return summed + w["lin_l.bias"] + x @ w["lin_r.weight"].t()
    return layer


def gin(s, data, once):
    a = data.both("sum")
    known = data.x + a[0] @ data.x if once else None

    def layer(w, x, last):
        first = w["nn.lins.0.weight"].t()
        if once and x is data.x:
            x = known @ first
        elif first.shape[1] < first.shape[0]:
            x = x @ first
            x = x + Product.apply(*a, x)
        else:
            x = (x + Product.apply(*a, x)) @ first
        return (x + w["nn.lins.0.bias"]).relu() @ w["nn.lins.1.weight"].t() + w["nn.lins.1.bias"]
    return layer


def gat(s, data, once):
    if once:
        raise NotImplementedError("no sum of the features alone")
    e = Edges(data)

    def layer(w, x, last):
        x = (x @ w["lin.weight"].t()).view(e.vertices, s.heads, -1)
        ends = [(x * w[name]).sum(-1) for name in ("att_src", "att_dst")]
        score = torch.nn.functional.leaky_relu(ends[0][e.source] + ends[1][e.target], 0.2)
        alpha = e.softmax(score)
        heads = [Weighted.apply(e, alpha[:, h].contiguous(), x[:, h].contiguous()) for h in range(s.heads)]
        return (torch.stack(heads, 1).mean(1) if last else torch.cat(heads, 1)) + w["bias"]
    return layer


def rgcn(s, data, once):
    a = [data.both(f"rel{i}") for i in range(s.types)]
    known = torch.cat([both[0] @ data.x for both in a], 1) if once else None

    def layer(w, x, last):
        y = x @ w["root"] + w["bias"]
        if once and x is data.x:
            return y + known @ w["weight"].flatten(0, 1)
        for weight, both in zip(w["weight"], a):
            narrower = weight.shape[1] < weight.shape[0]
            y = y + (Product.apply(*both, x @ weight) if narrower else Product.apply(*both, x) @ weight)
        return y
    return layer


def by_hand(s, data, once=False):
    weights = [{}, {}]
    for name, value in s.weights.items():
        _, i, rest = name.split(".", 2)
        weights[int(i)][rest] = value.clone().requires_grad_()
    layer = {"gcn": gcn, "sage": sage, "gin": gin, "gat": gat, "rgcn": rgcn}[s.model](s, data, once)

    def forward():
        return layer(weights[1], layer(weights[0], data.x, False).relu(), True)
    return [p for w in weights for p in w.values()], forward


def by_hand_once(s, data):
    return by_hand(s, data, once=True)
