//! Changes loaded rows as a plan changes the store, for the writes that follow in the same call.

use super::is_own;
use super::plan::{Change, Plan};
use super::rows::Rows;
use crate::Op;
use crate::notify::lines::LineRow;

impl Rows {
    /// Changes the rows as the plan changes the store, for the writes that follow. The plan must have been made from
    /// these rows.
    pub fn apply(&mut self, plan: &Plan<'_>) {
        for change in &plan.changes {
            self.apply_one(change);
        }
    }

    /// Changes the rows as one change of a plan changes the store, in the order of the plan.
    pub fn apply_one(&mut self, change: &Change<'_>) {
        match change {
            Change::Append { author, record, aside } => {
                let row = self.authors.entry(*author).or_default();
                row.head = record.seq;
                match (record.op, aside) {
                    (Op::Add, false) => row.last_in_step = Some(record.key),
                    (Op::Add, true) => row.has_aside = true,
                    _ => {}
                }
            }
            Change::Address { readers, .. } => {
                for reader in readers {
                    self.readers.entry(*reader).or_default().direct += 1;
                }
            }
            Change::Make { id, item, publish } => {
                self.items.insert(*id, Some(item.clone()));
                if let Some(key) = &publish.foreign_id {
                    self.foreign_ids.insert(key.clone(), Some(*id));
                }
                self.new_id = None;
            }
            Change::Edit { id, version, mentions, .. } => {
                if let Some(Some(row)) = self.items.get_mut(id) {
                    row.version = *version;
                    if let Some(mentions) = mentions {
                        row.mentions = mentions.to_vec();
                    }
                }
            }
            Change::Move { id, item, .. } => {
                self.items.insert(*id, Some(item.clone()));
                // No record deletes the newest add of the item yet.
                self.ended.entry(*id).and_modify(|by| *by = None);
            }
            Change::End { id, by } => {
                if let Some(Some(row)) = self.items.get_mut(id) {
                    row.living = false;
                    row.mentions.clear();
                }
                self.ended.insert(*id, *by);
            }
            Change::Remember { author, key, retry } => {
                self.retries.insert((*author, (*key).clone()), Some(*retry));
            }
            Change::Edge { edge, before, now, .. } => {
                self.edges.insert(*edge, Some(*now));
                let counter = &mut self.readers.entry(edge.0).or_default().counter;
                *counter = now.generation.max(*counter);
                let author = self.authors.entry(edge.1).or_default();
                author.followers = author.followers.saturating_add_signed(Change::counted(*edge, *before, *now));
                author.lacks_own_edge &= !is_own(*edge);
            }
            Change::Line { id, line, begins, joined, left } => {
                let before = self.lines.remove(id).flatten().map_or_else(Vec::new, |row| row.newest);
                left.iter().for_each(|key| _ = self.members.insert(key.clone(), None));
                let stay = before.into_iter().filter(|member| !left.contains(&member.key));
                let newest: Vec<_> = joined.iter().rev().cloned().chain(stay).collect();
                joined.iter().for_each(|member| _ = self.members.insert(member.key.clone(), Some(*id)));
                let exists = line.count > 0;
                let group = (line.reader, line.group.clone());
                if *begins || (!exists && self.groups.get(&group) == Some(&Some(*id))) {
                    self.groups.insert(group, exists.then_some(*id));
                }
                self.lines.insert(*id, exists.then(|| LineRow { line: line.clone(), newest }));
            }
            Change::Narrow { id, readers } => _ = self.audiences.insert(*id, readers.clone()),
            Change::Shield { .. } | Change::Repost { .. } => {}
            Change::Classify { author, class, everyone_since } => {
                let row = self.authors.entry(*author).or_default();
                (row.class, row.everyone_since) = (*class, *everyone_since);
            }
            Change::Private { author, private } => _ = self.privates.insert(*author, *private),
        }
    }
}
