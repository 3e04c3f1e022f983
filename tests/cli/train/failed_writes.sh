# A limit on the size of files (SIGXFSZ) and a pipe whose reader goes (SIGPIPE) are errors in one line, and what was
# made is cleared away.
small_store
train=(train store --model gcn --epochs 60 --no-cache)

# wrong WORDS: of the command that left $status and err.
wrong()
{
    [ $status = 1 ] && [ "$(wc -l <err)" = 1 ] && grep -Eq -- "$1" err || die "status $status: $(<err)"
    [ ! -e w ] || die 'a result was left'
    nothing_left
}

status=0
(ulimit -f 9 && exec gnnstream "${train[@]}" --save w --metrics m.jsonl >out 2>err) || status=$?
wrong 'File too large'
status=0
(ulimit -f 2 && exec gnnstream partition graph other --parts 3 >out 2>err) || status=$?
wrong 'File too large'
[ ! -e other ] || die 'half of a store was left'
mkfifo pipe
head -n 1 pipe >got &
status=0
gnnstream "${train[@]}" --epochs 100000 --save w --metrics pipe >out 2>err || status=$?
wait
wrong 'pipe: cannot write: Broken pipe'
