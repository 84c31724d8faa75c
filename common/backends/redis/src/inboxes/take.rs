//! Writes a step that brings records which no push brings as the arguments of a script: no IO.

use feedgate_common::error::Result;
use feedgate_common::inboxes::Take;

use super::layout::{entry_bytes, mark_author, number, watermarks};
use super::packed;

/// All arguments of the script except the layout.
pub(super) fn arguments(step: &Take) -> Result<Vec<Vec<u8>>> {
    let mut edges = Vec::with_capacity(5 + 10 * step.entries.len());
    packed::list(&mut edges, 2 * step.entries.len());
    for entry in &step.entries {
        let author = mark_author(entry.author);
        packed::string(&mut edges, if entry.is_direct() { &[] } else { &author });
        packed::number(&mut edges, number(entry.generation)?);
    }
    let mut arguments = vec![
        b"epoch".to_vec(),
        step.epoch.0.to_string().into_bytes(),
        watermarks(step.expected)?,
        watermarks(step.next)?,
        number(step.counter)?.to_string().into_bytes(),
        edges,
    ];
    arguments.extend(step.entries.iter().map(entry_bytes));
    Ok(arguments)
}
