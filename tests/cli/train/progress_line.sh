# On a terminal one line says how far the epoch is, with figures of the last one; elsewhere there is none.
small_store
cat >terminal.py <<'PY'
import os, pty, sys
# stderr alone is a terminal, as where results go to a file
leader, terminal = pty.openpty()
if os.fork() == 0:
    os.dup2(terminal, 2)
    os.execvp(sys.argv[1], sys.argv[1:])
os.close(terminal)
text = b""
try:
    while True:
        part = os.read(leader, 4096)
        if not part:
            break
        text += part
except OSError:  # the other side is closed
    pass
_, status = os.wait()
sys.stdout.buffer.write(text)
sys.exit(os.waitstatus_to_exitcode(status))
PY
epochs=300
[ -z "${GS_SANITIZED:-}" ] || epochs=20 # of which each takes longer
TERM=xterm python3 terminal.py gnnstream train store --model gat --heads 8 --hidden 64 --epochs $epochs >line
tr '\r' '\n' <line >lines
grep -Eq "epoch [0-9]+ of $epochs: train [0-9]+ %.* left, of the run [0-9:]+" lines || die "$(<lines)"
# what is left of the run stays on 80 columns, where what is left of the epoch goes
! grep -E " left" lines | grep -E "epoch [0-9]+ of $epochs: train [0-9]+ %" | grep -Ev "of the run [0-9:]+" |
    grep -Evq "epoch $epochs of" || die "$(<lines)"
# a terminal that rewrites nothing, and a log, get a line now and then
TERM=dumb python3 terminal.py gnnstream train store --model gcn --hidden 8 --epochs 3 >line
grep -q $'\033' line && die "an escape on a dumb terminal: $(<line)"
GS_LOG_EVERY=0.1 gnnstream train store --model gat --heads 8 --hidden 64 --epochs $epochs --json >result 2>log
grep -Eq "^gnnstream: epoch [0-9]+ of $epochs: [a-z]+ [0-9]+ %" log || die "$(<log)"
[ "$(wc -l <result)" = 1 ] && grep -q '^{"epochs": '$epochs', .*"test_acc": [0-9.]*, ' result || die "$(<result)"
gnnstream train store --model gcn --epochs 2 >result 2>err
[ ! -s err ] || die "$(<err)"
# before the first epoch the line names what opening is at, and how far the pass is that computes what no epoch changes
gnnstream generate rmat wide --vertices 20000 --edges 400000 --features 32 --seed 1 >made
gnnstream partition wide many --parts 3 --method random >made
hops=600
[ -z "${GS_SANITIZED:-}" ] || hops=20
{
    echo 'layer hops(h[in]) -> [out]:'
    echo '    param w[in, out]'
    at=h
    for ((k = 1; k <= hops; k++)); do
        echo "    x$k = mean(u.$at)"
        at=x$k
    done
    echo "    return $at @ w"
} >hops.gnn
GS_LOG_EVERY=0.01 gnnstream train many --model hops.gnn --layers 1 --epochs 1 >result 2>log
grep -Eq '^gnnstream: computing what no epoch changes [0-9]+ %' log || die "$(<log)"
! sed '0,/computing/d' log | grep -E 'planning|opening|preparing' || die "$(<log)"
