"""ranks_row.py MODEL RANKS PROGRAM BYTES FIGURES LOSSES - a row of bench/ranks_peer.sh.

FIGURES are gnnstream's metrics or what with_ranks.py wrote. gnnstream's losses are kept in LOSSES; a peer's that
differ by more than 1e-3 of them are said, with exit status 1.
"""
import json
import pathlib
import statistics
import sys

model, ranks, program, sent, figures, kept = sys.argv[1:]
text, kept = pathlib.Path(figures).read_text(), pathlib.Path(kept)
if program == "gnnstream":
    lines = [json.loads(line) for line in text.splitlines()]
    run = {"seconds": [e["seconds"] for e in lines], "losses": [e["loss"] for e in lines],
           "peak_bytes": lines[-1]["peak_host_bytes"], "import_bytes": 0}
    kept.write_text(json.dumps(run["losses"]))
else:
    run = json.loads(text)
own = json.loads(kept.read_text())
apart = max(abs(a - b) / max(1, abs(a)) for a, b in zip(own, run["losses"], strict=True))
memory = f"{run['peak_bytes'] / 1e6:.0f}"
if run["import_bytes"]:
    memory += f" ({run['import_bytes'] / 1e6:.0f} of it the import)"
epoch = statistics.median(run["seconds"][1:])
print(f"{model:6} {ranks:>5}  {program:<15} {epoch:8.3f} {int(sent) / 1e6:8.2f}  {memory}")
if not apart <= 1e-3:
    sys.exit(f"losses differ by {apart:.1e}: {own} {run['losses']}")
