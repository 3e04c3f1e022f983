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
python3 terminal.py gnnstream train store --model gat --heads 8 --hidden 256 --epochs 60 >line
tr '\r' '\n' <line >lines
grep -Eq 'epoch [0-9]+ of 60: train [0-9]+ %; loss [0-9.]+, valid [0-9.]+, [0-9.]+ s an epoch' lines || die "$(<lines)"
gnnstream train store --model gcn --epochs 2 >result 2>err
[ ! -s err ] || die "$(<err)"
