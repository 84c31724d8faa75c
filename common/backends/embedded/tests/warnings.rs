//! What a start warns of. The test has a program of its own: a place in the code whose first visitor is the thread of
//! another test may stay silent for this one.

#![allow(clippy::unwrap_used, reason = "a test: what fails says where")]

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use feedgate_embedded::Embedded;
use tracing::field::Field;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Keeps the warnings of its thread.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::WARN
    }
    fn event(&self, event: &Event<'_>) {
        let mut text = String::new();
        event.record(&mut |field: &Field, value: &dyn Debug| text += &format!("{field}: {value:?}"));
        self.0.lock().expect("no test panics here").push(text);
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn a_number_of_buckets_that_has_no_effect_is_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    let warnings = Warnings::default();
    let _listening = tracing::subscriber::set_default(warnings.clone());
    for buckets in [2, 2, 5] {
        drop(Embedded::open(dir.path(), buckets).unwrap());
    }
    let warnings = warnings.0.lock().unwrap();
    let [warning] = &warnings[..] else { panic!("{warnings:?}") };
    assert!(warning.contains("buckets = 2") && warning.contains("buckets = 5 has no effect"), "{warning}");
}
