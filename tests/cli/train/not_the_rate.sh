# Numbers that are not finite before any update: the vertex, the operation and the edge are named, and no learning rate.
command -v python3 >/dev/null || exit 0
python3 - <<'PY'
import array, os, struct
def save(name, kind, shape, values):
    head = str({"descr": "<i8" if kind == "q" else "<f4", "fortran_order": False, "shape": shape}).encode()
    head += b" " * (117 - len(head)) + b"\n"
    with open(f"{name}.npy", "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + array.array(kind, values).tobytes())
os.mkdir("minus")
os.mkdir("alone")
# with its loop the weights into vertex 2 sum to -2
save("minus/edges", "q", (4, 2), [0, 1, 1, 2, 2, 0, 0, 2])
save("minus/edge_weights", "f", (4,), [1, -4, 1, 1])
for graph, n in (("minus", 3), ("alone", 5)):
    save(f"{graph}/features", "f", (n, 3), [(i * 7 % 5) / 4 + 0.1 for i in range(3 * n)])
    save(f"{graph}/labels", "q", (n,), [i % 2 for i in range(n)])
    save(f"{graph}/train_idx", "q", (n,), range(n))
# 3 and 4 have no edges, so their sums are 0, and so is the norm that the derivative of sqrt divides by
save("alone/edges", "q", (4, 2), [0, 1, 1, 0, 1, 2, 2, 1])
PY
cat >unit.gnn <<'TEXT'
layer unit(h[in]) -> [out]:
    param w[out, in]
    x = mean(u.h) @ w'
    return x / max(sqrt(dot(x, x)), 0.000000000001)
TEXT
gnnstream partition minus signed --parts 1 --method natural >made
gnnstream partition alone apart --parts 1 --method natural >made

# says MODEL WORDS STORE: a run of it is refused with these words, and with none about the rate.
says()
{
    refused 1 "$2" gnnstream train "$3" --model "$1" --hidden 4 --epochs 2
    ! grep -q 'lower --lr' refused.err || die "the rate is blamed: $(<refused.err)"
    grep -q "no update came before, so --lr is not why: $1 needs" refused.err || die "$(<refused.err)"
}
says gcn 'at vertex 2 by rsqrt of -2; the edge 1 -> 2 has the weight -4' signed
says appnp 'at vertex 2 by rsqrt of -2; the edge 1 -> 2 has the weight -4' signed
says unit.gnn 'at vertex 3 by a division by 0' apart
