"""The arrays that inputs.py made, as tensors. Nothing is loaded that is not asked for."""
import pathlib

import numpy as np
import torch


class Data:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.x, self.y, self.train = self.load("x"), self.load("y"), self.load("train")
        self.vertices, self.features = self.x.shape
        self.target = self.y[self.train]

    def load(self, name):
        return torch.from_numpy(np.load(self.folder / f"{name}.npy"))

    def csr(self, name, index=torch.int32):
        """Sparse CSR, rows are destinations. MKL takes int32 as it is and would convert int64 in
        each product."""
        parts = [self.load(f"{name}.{part}") for part in ("indptr", "indices", "values")]
        return torch.sparse_csr_tensor(parts[0].to(index), parts[1].to(index), parts[2],
                                       (self.vertices, self.vertices))

    def both(self, name):
        """The matrix and its transpose."""
        return self.csr(name), self.csr(f"t_{name}")

    def edge_index(self):
        return self.load("edge_index")

    def edge_type(self):
        return self.load("edge_type")
