# shellcheck shell=bash
# Lets a shell run behind all other processes, for tests/run and .ci/run.

# The group of processes that run when no other process wants to. Its folder, by version 1 or 2 of Linux's groups.
idle_groups=(/sys/fs/cgroup/{cpu/,}feedgate-tests)

# fall_behind: from now on this shell, and what it runs, runs behind all others. A process of the lowest priority yields the
# processor only when its turn is over, which may be milliseconds after another one wants it; one of an idle group yields at
# once. It takes root to make the group; without it there is the lowest priority.
fall_behind() {
    local group
    for group in "${idle_groups[@]}"; do
        { [[ -d $group ]] || mkdir "$group"; } 2>/dev/null && [[ -w $group/cpu.idle ]] || continue
        echo 1 >"$group/cpu.idle" && echo "$BASHPID" >"$group/cgroup.procs" && return
    done
    renice -n 19 "$BASHPID" >/dev/null
}

# Removes the group, unless another run is in it.
remove_idle_group() { rmdir "${idle_groups[@]}" 2>/dev/null; }
