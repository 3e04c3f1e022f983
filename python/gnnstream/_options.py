"""Names of options, which are the fields of gnnstream.h."""
import difflib
import os


def check(options, known, what):
    """The options that are given; a name that `what` does not have is refused, with the one that was meant."""
    for name in options:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1, cutoff=0.75)
            meant = f"; did you mean {close[0]!r}?" if close else ""
            raise TypeError(f"{what} has no option {name!r}{meant}")
    return {name: value for name, value in options.items() if value is not None}


def path(value):
    """A path as the engine takes it."""
    return os.fspath(value) if not isinstance(value, bytes) else os.fsdecode(value)
