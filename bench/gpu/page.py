"""What is known so far, as docs/measurements has it: all steps, all lines, and aims beside figures."""
import datetime
import os


def over(a, b):
    return a / b if a and b else None


def lesser(*values):
    return min((v for v in values if v), default=None)


def aim(name, got, unit, how, want):
    met = "not measured" if got is None else "met" if (got >= want if how == "at least" else got <= want) else "missed"
    return f"| {name} | {how} {want}{unit} | {'-' if got is None else f'{got:.2f}{unit}'} | {met} |"


def aims(figure):
    # peers compute all in every epoch
    own = lambda model: figure.get(f"epoch {model}, nothing once") or figure.get(f"epoch {model}")
    peer = lambda model: over(figure.get(f"peer {model}"), own(model))
    beside = lambda label: figure.get(f"beside {label}")
    for width in (41, 47, 64, 100, 256):
        yield aim(f"fused gather, width {width}, the best P, of what its bytes allow at the copy's rate",
                  figure.get(f"gather {width}"), " %", "at least", 80)
    for model in ("gcn", "sage", "gat", "gat 8 heads"):
        yield aim(f"PyTorch Geometric's epoch over ours, {model}, in memory", peer(model), " times", "at least", 2)
    yield aim("epoch over max(copying, computing), device memory 1/8 of the data",
              lesser(beside("gcn, device 1/8"), beside("gcn, device 1/8, 32 parts")), " times", "at most", 1.15)
    yield aim("the same with the disk's reading, host memory 1/4",
              lesser(beside("gcn, device 1/8, host 1/4"), beside("gcn, device 1/8, host 1/4, 32 parts")), " times",
              "at most", 1.15)


def page_of(about):
    """about: what to say of the machine and the command. Makes the page's text of a run."""
    def page(run):
        text = [f"# On a GPU, {datetime.date.today().isoformat()}: {run.mode}", "",
                f"GPU: {run.figures.get('gpu', 'not known')}. {os.cpu_count()} processors. {about}", ""]
        text += ["| step | | at, s | took, s | |", "|---|---|---|---|---|"]
        text += [f"| {s['step']} | {s['status']} | {s['at']} | {s['seconds']} | {s['says'].replace('|', '/')} |"
                 for s in run.steps]
        text += ["", *("    " + line for line in run.lines), ""]
        if run.mode == "figures":  # last: of what a command has said, its end is what is seen
            text += ["| what | aim | measured | |", "|---|---|---|---|", *aims(run.figures), ""]
        passed, absent = run.count("ok"), run.count("not run")
        failed = len(run.steps) - passed - absent
        return "\n".join([*text, f"{passed} passed, {failed} failed, {absent} not run; after {run.now():.0f} s", ""])
    return page
