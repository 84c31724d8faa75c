# shellcheck shell=bash
# What the launchers of the engines share.
#
# An engine lives in one directory. A process belongs to it when its working directory is that one
# or lies below it: so the whole family is found, even after its first process has died.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

# One sentence to stderr; the launcher ends.
fail() { printf '%s: %s\n' "${0##*/}" "$*" >&2 && exit 1; }

# take_arguments USAGE PORT DIR: sets `port` and `dir`, makes the directory and goes there.
take_arguments() {
    [[ $# -ge 3 && $2 =~ ^[0-9]+$ ]] || fail "usage: tests/engines/$1"
    port=$2
    mkdir -p "$3" && cd -P "$3" || fail "$3 must be a directory that can be entered"
    dir=$PWD
}

# family DIR: the processes that belong to the engine there.
family() {
    # Processes come and go while find looks; that is no failure.
    { find /proc/[0-9]*/cwd -maxdepth 0 \( -lname "$1" -o -lname "$1/*" \) 2>/dev/null || true; } | cut -d / -f 3
}

# Puts the programs of PostgreSQL first in PATH: those of the server that is there already, or the newest of Debian's. What
# Debian has in PATH itself is a script in Perl that looks for them each time.
find_postgres() {
    local server
    server=$(command -v postgres || printf '%s\n' /usr/lib/postgresql/*/bin/postgres | sort -V | tail -n 1)
    [[ -x $server ]] || fail "there is no PostgreSQL server in PATH or /usr/lib/postgresql; the Debian package postgresql brings it"
    server=$(realpath "$server")
    PATH=${server%/*}:$PATH
}
