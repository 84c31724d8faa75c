//! What a number of posts cost: processor time of each process, and what the engines were asked.
//!
//! What runs anyway (leases, sweeps, health) is in the figures; a longer measurement has more of it.

use feedgate_tests::load::{Calls, Report};

use crate::world::World;

/// Calls rarer than this per post are not worth a line.
const RARE: f64 = 0.2;

/// A statement is known by its beginning.
const NAME_CHARS: usize = 70;

/// The counters of processor time and of calls at one moment. The cost of posts is the difference of two.
pub(crate) struct Spent {
    cpu: Vec<(String, f64)>,
    calls: Calls,
}

impl Spent {
    pub(crate) async fn so_far(world: &World) -> anyhow::Result<Self> {
        let mut cpu = Vec::new();
        for server in &world.servers {
            cpu.push((server.name().to_owned(), server.cpu_seconds()?));
        }
        let Some(engines) = &world.engines else { return Ok(Self { cpu, calls: Calls::new() }) };
        cpu.extend(engines.cpu_seconds()?);
        Ok(Self { cpu, calls: engines.calls().await? })
    }

    /// Processor time since then, per one of `changes` that were delivered.
    pub(crate) async fn tell_cpu(
        &self,
        world: &World,
        name: &str,
        changes: u64,
        report: &mut Report,
    ) -> anyhow::Result<f64> {
        let now = Self::so_far(world).await?;
        let mut sum = 0.0;
        for ((process, before), (_, after)) in self.cpu.iter().zip(&now.cpu) {
            let each = (after - before) * 1e6 / changes as f64;
            report.figure(&format!("{name}: {process}"), each, "CPU-us/change");
            sum += each;
        }
        report.figure(&format!("{name}: all processes"), sum, "CPU-us/change");
        Ok(sum)
    }

    /// What the engines were asked since then, for each of `posts`.
    pub(crate) async fn tell_calls(
        &self,
        world: &World,
        name: &str,
        posts: usize,
        report: &mut Report,
    ) -> anyhow::Result<()> {
        let now = Self::so_far(world).await?;
        let mut statements = 0.0;
        for (call, after) in &now.calls {
            let each = (after - self.calls.get(call).unwrap_or(&0)) as f64 / posts as f64;
            statements += if call.starts_with("PostgreSQL") { each } else { 0.0 };
            if each >= RARE {
                let call: String = call.chars().take(NAME_CHARS).collect();
                report.figure(&format!("{name}: {call}"), each, "per post");
            }
        }
        if world.engines.is_some() {
            report.figure(&format!("{name}: PostgreSQL, all statements"), statements, "per post");
        }
        Ok(())
    }
}
