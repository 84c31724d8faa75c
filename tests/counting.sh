# shellcheck shell=bash
# Counts tests by the machine-readable lines of each runner, for tests/run and .ci/run.
#
# A runner that failed without naming a failed test counts as one failure, so that a compile error,
# a crash or a changed format can never look like success.

passed=0
failed=0

# The exit status of what could not be looked at, through no fault of the change. It counts neither as passed nor as failed.
# What it was, and why, goes to `unchecked`, which is told above the last line.
unknown=99
unchecked=()

tell_unchecked() { [[ ${#unchecked[@]} -eq 0 ]] || printf '\nNOT CHECKED: %s\n' "${unchecked[@]}"; }

say() { printf '   %s\n' "$*"; }

# count PASSED FAILED: adds to the totals.
count() {
    passed=$((passed + $1))
    failed=$((failed + $2))
}

# cpu_seconds VARIABLE: the seconds of processor time that the children of this shell took until they ended. `times` speaks
# of the shell that runs it, so it must not run in a subshell.
cpu_seconds() {
    local file
    file=$(mktemp) && times >"$file"
    printf -v "$1" '%d' "$(awk 'NR == 2 { split($0, t, /[ms ]+/); print int(t[1] * 60 + t[2] + t[3] * 60 + t[4]) }' "$file")"
    rm -f "$file"
}

# The names of failed tests, each with the first lines of its message, go to the file that `failures` names, if it names one.
failures=
message_lines=15

# failed_in PART: takes from stdin what a part says of its failures.
failed_in() {
    [[ -n $failures ]] || { cat >/dev/null && return; }
    { printf -- '-- %s\n' "$1" && cat; } >>"$failures"
}

# The failed tests of a log of cargo: "---- NAME stdout ----" stands above a message.
messages_of_cargo() {
    awk -v most="$message_lines" '
        /^---- .* stdout ----$/ { print "FAILED  " $2; left = most; next }
        /^failures:$/ || /^test result: / { left = 0 }
        left > 0 && NF { print "        " $0; left-- }' "$1"
}

# The failed tests of a TAP file: "not ok 3 - NAME", and the message as YAML between "---" and "...". A test that failed
# only because one inside it did says nothing new.
messages_of_node() {
    awk -v most="$message_lines" '
        function tell() { if (name != "" && !outer) printf "FAILED  %s\n%s", name, message; name = "" }
        /^ *not ok [0-9]+ - / { tell(); name = $0; sub(/^ *not ok [0-9]+ - /, "", name); message = ""; left = most; outer = 0; next }
        /^ *\.\.\.$/ { tell(); next }
        /failureType: .subtestsFailed/ { outer = 1 }
        name == "" || /^ *---$/ || /^ *(duration_ms|type|location|failureType|operator):/ { next }
        left > 0 && NF { sub(/^ +/, ""); message = message "        " $0 "\n"; left-- }
        END { tell() }' "$1"
}

# The failed mutants of a log, each above what its test printed.
messages_of_mutants() {
    awk -v most="$message_lines" '
        /^FAILED / { print; left = most; next }
        !/^        / { left = 0 }
        left > 0 { print; left-- }' "$1"
}

# note_failures PART MESSAGES LOG: MESSAGES is one of the functions above. A log that names no failed test is shown by its end.
note_failures() {
    local found
    found=$("$2" "$3" 2>/dev/null)
    [[ -n $found ]] || found=$(tail -n "$message_lines" "$3" 2>/dev/null)
    printf '%s\n' "${found:-FAILED  without a report}" | failed_in "$1"
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
