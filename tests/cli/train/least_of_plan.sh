# The least budget that `plan` names is enough for `train` with the same options, whatever is written and kept.
gnnstream generate sbm graph --vertices 600 --edges 6000 --features 24 --classes 5 --seed 1 >made
gnnstream partition graph store --parts 4 --seed 1 >made
# Of 40 parts: tables of plans that are compared have no room where one that is the least in everything does.
gnnstream generate sbm graph --vertices 3000 --edges 30000 --features 33 --classes 4 --seed 1 --force >made
gnnstream partition graph fine --parts 40 --method random --seed 1 >made
while read -r options; do
    # A sanitizer keeps what is freed for a while: what plans took that were not the one then counts as the program's.
    [ -z "${GS_SANITIZED:-}" ] || [ "${options%% *}" != fine ] || continue
    # Of the others one on two devices, but where every case is asked for.
    [ -n "${GS_TEST_ALL:-}" ] || [[ $options = fine* || $options = *cpu:2* ]] || continue
    # shellcheck disable=SC2086 # a list of words
    gnnstream plan $options --epochs 1 --threads 2 --host-memory 14M >out 2>err && die "$options: 14M is enough"
    least=$(sed -n 's/.*--host-memory 14.0 MiB is too small.* at least \([0-9]*\)M.*/\1/p' err)
    [ -n "$least" ] || die "$options: $(<err)"
    # shellcheck disable=SC2086
    gnnstream train $options --epochs 1 --threads 2 --host-memory "${least}M" >out 2>err ||
        die "$options: plan names ${least}M: $(<err)"
done <<'OPTIONS'
store --model gcn --layers 2 --hidden 32 --dropout 0.5 --device cpu --logits l.npy --save w.safetensors --keep best
store --model gat --layers 2 --hidden 128 --dropout 0.5 --device cpu:2 --metrics m.jsonl --patience 3 --checkpoint ck
store --model sage --layers 2 --hidden 32 --device cpu --sampler neighbor --batch-size 50 --fanout 5,5 --logits l.npy
fine --model gcn --layers 3 --hidden 50 --sampler saint-node --batch-size 1000 --device cpu:3 --batches-per-step 3
OPTIONS
# What a run holds beside its plan is a part of the plan's: with these tables a MiB more is charged for it.
gnnstream partition graph fine --parts 46 --method random --seed 1 --force >made
read -ra options <<<'fine --model gcn --hidden 16 --epochs 1 --threads 1 --host-memory 28M'
gnnstream plan "${options[@]}" --json >plan.json
gnnstream train "${options[@]}" --metrics m.jsonl >out
python3 - <<'END' || die 'plan says other bytes than train reads'
import json
said = next(p["read_bytes"] for p in json.load(open("plan.json"))["passes"] if p["name"] == "train")
read = json.loads(open("m.jsonl").readline())["read_bytes"]
raise SystemExit(said != read and f"{said} bytes, {read} were read")
END
# Some pages of the process are resident one time and not the next: here those of a larger environment. They change no
# plan, or a budget near the least would do one time and be refused the next. (With these tables 8.1 to 8.8 MiB are
# resident.)
if [ -z "${GS_SANITIZED:-}" ]; then
    gnnstream generate rmat graph --vertices 1000 --edges 3000 --features 4 --classes 3 --seed 1 --force >made
    gnnstream partition graph tables --parts 110 --method random --seed 1 >made
    for pages in 0 100000; do
        pad=$(printf "%${pages}s" '')
        A=$pad B=$pad C=$pad D=$pad gnnstream plan tables --model gcn --layers 1 --host-memory 64M --threads 1 |
            grep 'process, store tables' >"process$pages"
    done
    cmp process0 process100000 || die "$(cat process0 process100000)"
fi
# In a cgroup (where one can be made: version 1, as root) a store whose tables memory has no room for is refused before
# they are read, 24 MiB of them; and a budget is named only once it was tried, though the group is too small for it.
group=/sys/fs/cgroup/memory/gnnstream.$$
[ -z "${GS_SANITIZED:-}" ] && mkdir "$group" 2>made || exit 0
trap 'rmdir "$group"' EXIT
within="echo \$BASHPID >$group/cgroup.procs; exec gnnstream plan"
echo 24M >"$group/memory.limit_in_bytes"
gnnstream generate rmat graph --vertices 1024 --edges 500 --features 1 --classes 2 --seed 1 --force >made
gnnstream partition graph large --parts 512 --method random --seed 1 >made
refused 1 'large: its tables of 512 parts need 24.0 MiB of memory beside' \
    bash -c "$within large --model gcn --host-memory 24M"
gnnstream generate sbm graph --vertices 10000 --edges 60000 --features 48 --classes 8 --seed 2 --force >made
gnnstream partition graph wide --parts 32 --method random --force >made
wide='wide --model gat --layers 3 --hidden 128 --dropout 0 --norm layer --device cpu --threads 2 --host-memory'
refused 1 'needs at least' bash -c "$within $wide 18M"
least=$(sed -n 's/.* at least \([0-9]*M\).*/\1/p' refused.err)
# shellcheck disable=SC2086 # a list of words
gnnstream plan $wide "$least" >out 2>err || die "$least is named: $(<err)"
