"""python -m gnnstream: what is installed."""
import gnnstream

print(f"gnnstream {gnnstream.__version__}, {gnnstream.__file__}")
