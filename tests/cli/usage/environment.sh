# Every environment variable that the sources ask for is in `help environment` and in docs/environment.md, and no other.
root=$(cd "$(dirname "$2")/../../.." && pwd)
asked=$(cd "$root" && grep -rhoE 'getenv\("[A-Z_]+' src tools partition cuda | cut -d '"' -f 2 | sort -u)
said=$(gnnstream help environment | grep -E '^  [A-Z]' | tr -d ' ' | tr ',' '\n' | sort -u)
[ "$asked" = "$said" ] || die "asked for: ${asked//$'\n'/ }; said: ${said//$'\n'/ }"
written=$(sed -n '/^## The program/,/^## Scripts/p' "$root/docs/environment.md" | grep -oE '^\| [^|]+' |
    grep -oE '`[A-Z_]+`' | tr -d '`' | sort -u)
[ "$asked" = "$written" ] || die "docs/environment.md has: ${written//$'\n'/ }; asked for: ${asked//$'\n'/ }"
