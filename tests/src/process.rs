//! What a process costs, as the kernel counts it: processor time and memory.

use std::io;

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

/// User and system time of process `pid` so far, in seconds, all threads, in steps of a clock tick
/// (10 ms nearly everywhere).
pub fn cpu_seconds(pid: u32) -> anyhow::Result<f64> {
    let text = read(pid, "stat")?;
    // The second field is the program's name in brackets and may hold anything.
    let (_, fields) = text.rsplit_once(')').context("stat has no name")?;
    let mut ticks = fields.split_ascii_whitespace().skip(11).map(str::parse::<u64>);
    let mut next = || anyhow::Ok(ticks.next().context("stat ends early")??);
    let (user, system) = (next()?, next()?);
    Ok((user + system) as f64 / rustix::param::clock_ticks_per_second() as f64)
}

fn read(pid: u32, file: &str) -> anyhow::Result<String> {
    let path = format!("/proc/{pid}/{file}");
    std::fs::read_to_string(&path).map_err(|error: io::Error| anyhow!("{path}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_and_memory_of_this_process_are_seen() {
        let me = std::process::id();
        let (cpu, before) = (cpu_seconds(me).unwrap(), memory(me).unwrap());
        let held = vec![1u8; 64 << 20];
        let mut sum = 0u64;
        while cpu_seconds(me).unwrap() < cpu + 0.05 {
            sum = held.iter().fold(sum, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)));
        }
        let after = memory(me).unwrap();
        assert!(sum != 0 && after.anonymous >= before.anonymous + (60 << 20), "{before:?} {after:?}");
        assert!(after.rss >= after.anonymous && after.rss >= after.pss);
    }
}
