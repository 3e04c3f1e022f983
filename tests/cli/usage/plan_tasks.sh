# plan --tasks: the list has each pass's tasks, they read what the report counts, and each waits for earlier ones.
small_store
options=(--model sage --hidden 8 --host-memory 1G --device-memory 9M --no-cache) # more than enough: one plan each time
gnnstream plan store "${options[@]}" --json >plan.json
gnnstream plan store "${options[@]}" --tasks >tasks.txt
python3 - <<'END'
import json
plan = json.load(open("plan.json"))
tasks = [line.split() for line in open("tasks.txt") if line[0].isdigit()]
assert len(tasks) == sum(p["tasks"] for p in plan["passes"]) > 0, len(tasks)
assert [int(t[0]) for t in tasks] == list(range(len(tasks)))
def whole(t):
    return [tuple(map(int, t[i + 1].split("+"))) for i, word in enumerate(t) if word == "run"]
def moved(t):
    return sum(blocks for _, blocks in whole(t)) * 4096 or int(t[t.index("bytes") + 1])
at = 0
for p in plan["passes"]:
    of_pass, at = tasks[at:at + p["tasks"]], at + p["tasks"]
    for kind, key in ("read", "read_bytes"), ("write", "written_bytes"):
        assert sum(moved(t) for t in of_pass if t[1] == kind) == p[key], (p["name"], kind)
    assert p["name"] != "train" or p["read_bytes"] > 0
for t in tasks:
    waits = t[t.index("after") + 1].split(",") if "after" in t else []
    assert all(int(w) < int(t[0]) for w in waits), t
END
refused 2 "leave out one of --tasks and --json" gnnstream plan store "${options[@]}" --tasks --json
