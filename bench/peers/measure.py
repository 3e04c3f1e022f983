"""measure.py OUT.json LIMIT_BYTES SECONDS COMMAND... - wall time and peak resident memory of a command.

The peak is ru_maxrss of the finished child, the whole process with its libraries, as time -v prints
it. LIMIT_BYTES bounds its private memory (RLIMIT_DATA), so that what does not fit fails by itself
and takes nothing else along. Imports nothing large: a child starts with its parent's peak.
"""
import json
import resource
import subprocess
import sys
import time

out, limit, seconds, *command = sys.argv[1:]


def bound():
    resource.setrlimit(resource.RLIMIT_DATA, (int(limit), int(limit)))


start = time.monotonic()
over_time = False
try:
    status = subprocess.run(command, preexec_fn=bound, timeout=float(seconds)).returncode
except subprocess.TimeoutExpired:
    status, over_time = 124, True
with open(out, "w") as f:
    json.dump({"status": status, "over_time": over_time, "wall_seconds": time.monotonic() - start,
               "peak_bytes": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024}, f)
sys.exit(0 if status == 0 else 1)
