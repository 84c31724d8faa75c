//! What a process costs, as the kernel counts it: processor time, memory and files; and how busy the machine is.

use std::io;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, anyhow};

/// User memory of a process, in bytes. Kernel buffers of its sockets are not part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Resident pages, shared ones counted whole.
    pub rss: u64,
    /// Resident pages, shared ones counted by their share.
    pub pss: u64,
    /// Of these, what no file stands behind: heap and stacks. The program's own code is not in it.
    pub anonymous: u64,
}

/// The memory of process `pid` now.
pub fn memory(pid: u32) -> anyhow::Result<Memory> {
    let text = read(pid, "smaps_rollup")?;
    let bytes = |name: &str| {
        let kb = text.lines().find_map(|line| line.strip_prefix(name)?.trim().strip_suffix(" kB"));
        let kb: u64 = kb.ok_or_else(|| anyhow!("smaps_rollup has no {name}"))?.trim().parse()?;
        anyhow::Ok(kb * 1024)
    };
    Ok(Memory { rss: bytes("Rss:")?, pss: bytes("Pss:")?, anonymous: bytes("Anonymous:")? })
}

/// The most resident memory that process `pid` has had so far, in bytes.
pub fn peak_memory(pid: u32) -> anyhow::Result<u64> {
    let text = read(pid, "status")?;
    let peak = text.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    Ok(peak.context("status has no VmHWM")?.trim().parse::<u64>()? * 1024)
}

/// User and system time of process `pid` so far, in seconds, all threads, in steps of a clock tick
/// (10 ms nearly everywhere).
pub fn cpu_seconds(pid: u32) -> anyhow::Result<f64> {
    Ok(Stat::of(pid)?.own)
}

/// User and system time of process `pid` and of all its children so far, in seconds, also of children that have ended.
pub fn cpu_seconds_with_children(pid: u32) -> anyhow::Result<f64> {
    let parent = Stat::of(pid)?;
    let processes = std::fs::read_dir("/proc")?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    // One that ends meanwhile is no longer there to be read.
    let children = processes.filter_map(|other| Stat::of(other).ok()).filter(|other| other.parent == u64::from(pid));
    Ok(parent.own + parent.ended_children + children.map(|child| child.own).sum::<f64>())
}

/// Processor time of this process, from a moment on.
#[derive(Debug, Clone, Copy)]
pub struct Used(f64);

impl Used {
    /// Begins to measure now.
    pub fn now() -> anyhow::Result<Self> {
        cpu_seconds(std::process::id()).map(Self)
    }

    /// The seconds of processor time that were used since [`now`](Self::now).
    pub fn since(&self) -> anyhow::Result<f64> {
        Ok(cpu_seconds(std::process::id())? - self.0)
    }
}

/// The commit that is measured, and whether there are changes beside it.
pub fn commit() -> String {
    let git = |words: &[&str]| {
        let output = Command::new("git").args(words).output().ok().filter(|output| output.status.success());
        output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let changed = git(&["status", "--porcelain"]).is_none_or(|lines| !lines.is_empty());
    let commit = git(&["rev-parse", "HEAD"]).unwrap_or_else(|| "unknown".into());
    if changed { format!("{commit} and changes") } else { commit }
}

/// How many tasks wanted a processor in the last minute, by the kernel's reckoning.
pub fn load_average() -> anyhow::Result<String> {
    let text = std::fs::read_to_string("/proc/loadavg")?;
    Ok(text.split(' ').next().context("the first of several")?.to_owned())
}

/// Bytes that this process has given to `write(2)` and its like so far, to whatever.
pub fn written_bytes() -> anyhow::Result<u64> {
    let text = read(std::process::id(), "io")?;
    let bytes = text.lines().find_map(|line| line.strip_prefix("wchar:")).context("io has no wchar")?;
    Ok(bytes.trim().parse()?)
}

/// Bytes of the files in a directory and below it.
pub fn directory_size(dir: &Path) -> anyhow::Result<u64> {
    let mut size = 0;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let is = entry.metadata()?;
        size += if is.is_dir() { directory_size(&entry.path())? } else { is.len() };
    }
    Ok(size)
}

/// What the kernel says of a process, times in seconds.
struct Stat {
    parent: u64,
    own: f64,
    ended_children: f64,
}

impl Stat {
    fn of(pid: u32) -> anyhow::Result<Self> {
        let text = read(pid, "stat")?;
        // The second field is the program's name in brackets and may hold anything; the third is a letter.
        let (_, fields) = text.rsplit_once(')').context("stat has no name")?;
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        let number = |at: usize| anyhow::Ok(fields.get(at).context("stat ends early")?.parse::<u64>()?);
        let seconds =
            |at| anyhow::Ok((number(at)? + number(at + 1)?) as f64 / rustix::param::clock_ticks_per_second() as f64);
        Ok(Self { parent: number(1)?, own: seconds(11)?, ended_children: seconds(13)? })
    }
}

fn read(pid: u32, file: &str) -> anyhow::Result<String> {
    let path = format!("/proc/{pid}/{file}");
    std::fs::read_to_string(&path).map_err(|error: io::Error| anyhow!("{path}: {error}"))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::process::Stdio;

    use super::*;

    #[test]
    fn work_and_memory_of_this_process_are_seen() {
        let me = std::process::id();
        let (cpu, before) = (cpu_seconds(me).unwrap(), memory(me).unwrap());
        let held = vec![1u8; 64 << 20];
        let mut sum = 0u64;
        loop {
            sum = held.iter().fold(sum, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)));
            if cpu_seconds(me).unwrap() >= cpu + 0.05 {
                break;
            }
        }
        let after = memory(me).unwrap();
        assert!(peak_memory(me).unwrap() >= after.rss.min(before.rss + (60 << 20)));
        assert!(sum != 0 && after.anonymous >= before.anonymous + (60 << 20), "{before:?} {after:?}");
        assert!(after.rss >= after.anonymous && after.rss >= after.pss);
    }

    #[test]
    fn work_of_children_is_seen_while_they_live_and_afterwards() {
        // A child of the shell works, says so and waits; it ends, and the shell says so and waits.
        let work = "(i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo worked; read go); echo ended; read go";
        let mut shell =
            Command::new("sh").args(["-c", work]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (mut go, said) = (shell.stdin.take().unwrap(), BufReader::new(shell.stdout.take().unwrap()));
        for word in said.lines() {
            let (all, own) = (cpu_seconds_with_children(shell.id()).unwrap(), cpu_seconds(shell.id()).unwrap());
            assert!(all > own + 0.03, "{} {all} {own}", word.unwrap());
            writeln!(go, "on").unwrap();
        }
        assert!(shell.wait().unwrap().success());
    }
}
