# Manual pages and completions are of the option tables: whole, free of what mandoc would find, and shells take them.
commands='generate
partition
info
verify
model
plan
train
predict
report
bench limits
bench train'
gnnstream help --man >gnnstream.1
while read -r command; do
    # shellcheck disable=SC2086 # a command may be two words
    gnnstream help --man $command >"gnnstream-${command/ /-}.1"
    # shellcheck disable=SC2086
    [ "$(gnnstream help --all $command | grep -c '^  -')" = "$(grep -c '^\.It Fl ' "gnnstream-${command/ /-}.1")" ] ||
        die "the page of $command does not have all options"
done <<<"$commands"
if command -v mandoc >/dev/null; then
    # it looks for the other pages where the system has its own
    ! mandoc -Tlint ./*.1 | grep -v 'referenced manual not found' || die 'mandoc finds fault'
    mandoc -Tutf8 gnnstream-train.1 | col -b | grep -q -e '--host-memory SIZE' || die 'no --host-memory in the page'
else
    echo 'skipped: no mandoc'
fi
gnnstream help --completion csh 2>words && die 'completions for csh'
[ "$(<words)" = 'gnnstream: help --completion: of which shell? bash, zsh or fish' ] || die "csh: $(<words)"

gnnstream help --completion bash >bash.completion
# complete WORD...: what bash offers for the last one
offers()
{
    bash -c '. ./bash.completion; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _gnnstream 2>/dev/null
        echo "${COMPREPLY[*]}"' bash gnnstream "$@"
}
[ "$(offers tr)" = train ] || die "bash offers: $(offers tr)"
[ "$(offers bench '')" = 'limits train' ] || die "bash offers: $(offers bench '')"
[ "$(offers train store --host)" = --host-memory ] || die "bash offers: $(offers train store --host)"
[ "$(offers train store --optimizer s)" = sgd ] || die "bash offers: $(offers train store --optimizer s)"
[ "$(offers train store --optimizer = adamw)" = adamw ] || die 'bash does not take --optimizer='
[ "$(offers train store --model gat)" = 'gat gatv2 gatedgcn' ] || die "bash offers: $(offers train store --model gat)"
[ "$(offers generate rm)" = rmat ] || die "bash offers: $(offers generate rm)"
[ "$(offers info bash.c)" = bash.completion ] || die "bash offers: $(offers info bash.c)"

if command -v fish >/dev/null; then
    gnnstream help --completion fish >fish.completion
    fish_offers() { HOME=$PWD fish -N -c ". ./fish.completion; complete -C '$1'" | cut -f 1 | tr '\n' ' '; }
    [ "$(fish_offers 'gnnstream train s --optimizer a')" = 'adam adamw ' ] || die 'fish does not offer adam'
    [ "$(fish_offers 'gnnstream bench train s --host')" = '--host-memory ' ] || die 'fish does not offer --host-memory'
else
    echo 'skipped: no fish'
fi
if command -v zsh >/dev/null; then
    gnnstream help --completion zsh >_gnnstream
    zsh -f -c 'fpath=($PWD $fpath); autoload -U compinit; compinit -u -d ./dump; autoload +X _gnnstream' ||
        die 'zsh does not take the completions'
    [ "$(grep -c -e "'--model=" _gnnstream)" = 4 ] || die 'zsh does not complete --model'
else
    echo 'skipped: no zsh'
fi
