# shellcheck shell=bash
# Counts tests by the machine-readable lines of each runner, for tests/run and .ci/run.
#
# A runner that failed without naming a failed test counts as one failure, so that a compile error,
# a crash or a changed format can never look like success.

passed=0
failed=0

say() { printf '   %s\n' "$*"; }

# count PASSED FAILED: adds to the totals.
count() {
    passed=$((passed + $1))
    failed=$((failed + $2))
}

# checked STATUS PASSED FAILED: adds them, and a failure if the runner failed and named none.
checked() {
    local status=$1 good=$2 bad=$3
    [[ $status -eq 0 || $bad -gt 0 ]] || bad=1
    count "$good" "$bad"
}

# Sums "test result: ok. 3 passed; 0 failed; 1 ignored; ..."; an ignored test counts as failed.
count_cargo() {
    local status=$1 log=$2 good bad
    read -r good bad < <(awk '/^test result: /{good += $4; bad += $6 + $8} END {print good + 0, bad + 0}' "$log")
    checked "$status" "$good" "$bad"
}

# Sums "# pass 3", "# fail 0", ... at the end of TAP; cancelled, skipped and todo count as failed.
count_node() {
    local status=$1 tap=$2 good bad
    [[ -f $tap ]] || { count 0 1 && return; }
    read -r good bad < <(awk '/^# pass [0-9]+$/{good += $3}
        /^# (fail|cancelled|skipped|todo) [0-9]+$/{bad += $3} END {print good + 0, bad + 0}' "$tap")
    checked "$status" "$good" "$bad"
}

# Takes over "3 passed, 0 failed" from the last line of another script.
count_last_line() {
    local status=$1 log=$2 good bad rest
    read -r good _ bad rest < <(tail -n 1 "$log")
    if [[ $good =~ ^[0-9]+$ && $bad =~ ^[0-9]+$ && $rest == failed ]]; then
        checked "$status" "$good" "$bad"
    else
        count 0 1
    fi
}
