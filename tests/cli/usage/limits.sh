# Limits as help has them are the real ones: the library takes both ends, and what is beyond is refused in help's words.
printf '0 1\n1 2\n2 3\n' >edges.txt
gnnstream generate sbm graph --vertices 300 --edges 2000 --features 4 --classes 2 >out
gnnstream partition graph store --parts 2 --method random >out

# both_ends COMMAND ARGUMENTS: for each "1 to N" or "at most N" in the help of COMMAND, the rest being a run of it.
both_ends()
{
    local command=$1 option least most value found=0
    shift
    gnnstream help "$command" >help
    while read -r option least most; do
        found=$((found + 1))
        for value in $((least - 1)) $((most + 1)); do
            [ "$value" -ge 0 ] || continue
            refused 2 "$option $value: must be a whole number from $least to $most" \
                gnnstream "$command" "$@" "$option" "$value"
        done
        for value in "$least" "$most"; do # what goes wrong, if anything, is nothing that help could have said
            rm -rf new
            gnnstream "$command" "$@" "$option" "$value" >out 2>err ||
                ! grep -Eq -e "$option $value: .*(must|more than)" err ||
                die "help says $option takes $value: $(<err)"
        done
    done < <(tr '\n' ' ' <help | sed 's/  --/\n--/g' |
        sed -nE 's/^(--[a-z-]+) .*, ([0-9]+) to ([0-9]+)( \(default.*)?$/\1 \2 \3/p
                 s/^(--[a-z-]+) .*, at most ([0-9]+)( \(default.*)?$/\1 0 \2/p' | sed 's/ *$//')
    echo "$command: $found"
}
{
    both_ends plan store --model gat --hidden 4 --heads 1
    both_ends partition edges.txt new --method lp --memory 256M
    both_ends generate sbm new --vertices 2 --edges 1 --features 1
} >counts
grep -q 'plan: [4-9]' counts && grep -q 'partition: 4' counts && grep -q 'generate: 2' counts ||
    die "limits in help: $(<counts)"
