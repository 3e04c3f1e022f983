"""python -m gnnstream: the command line, where the package has it; without arguments what is installed."""
import os
import sys

import gnnstream


def main() -> None:
    """Becomes the program that stands beside this file."""
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gnnstream")
    if not os.access(program, os.X_OK):
        sys.exit(f"gnnstream: {program} is not there; `pip install` puts it there, and in a build folder it is "
                 "tools/gnnstream")
    os.execv(program, ["gnnstream", *sys.argv[1:]])


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main()
    print(f"gnnstream {gnnstream.__version__}, {gnnstream.__file__}")
