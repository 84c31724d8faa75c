//! Carries out many operations in one request: all that are well-formed in one commit, with one result for each, in
//! order. A wrong operation has a problem as its result and stops no other.

use axum::Json;
use axum::response::{IntoResponse, Response};
use feedgate_common::archive::{Write, Written};
use serde::Serialize;
use serde_json::value::RawValue;

use super::payload::Payload;
use super::problem::Problem;
use super::writer::Writer;

/// The most bytes of a batch.
pub(super) const BYTES_MAX: usize = 8 * 1024 * 1024;

/// The most operations of a batch.
pub(super) const OPS_MAX: usize = 1000;

/// The write of an operation, with what its result needs besides what was written; or what is wrong with the operation.
pub(super) type Operation<T> = Result<(T, Write), Problem>;

#[derive(Serialize)]
#[serde(untagged)]
enum Outcome<R> {
    Done(R),
    Refused(Problem),
}

#[derive(Serialize)]
struct Results<R> {
    results: Vec<Outcome<R>>,
}

/// Reads `{"ops":[…]}` with `read`, which gets each operation and the pointer to it; carries out all in one commit, and
/// makes the result of each that was done with `answer`. If the future is dropped, the commit may still be made.
pub(super) async fn carry_out<T, R: Serialize>(
    writer: &Writer,
    payload: Payload<BYTES_MAX>,
    mut read: impl FnMut(&RawValue, String) -> Operation<T>,
    answer: impl Fn(T, Written) -> R,
) -> Result<Response, Problem> {
    let ops = payload.fields(&["ops"])?.required("ops")?.list(OPS_MAX)?;
    let mut writes = Vec::with_capacity(ops.len());
    let places: Vec<Result<T, Problem>> = ops
        .into_iter()
        .enumerate()
        .map(|(i, op)| {
            let (context, write) = read(op, format!("/ops/{i}"))?;
            writes.push(write);
            Ok(context)
        })
        .collect();
    let written = if writes.is_empty() { vec![] } else { writer.write(writes).await? };
    let mut written = written.into_iter();
    let results = places.into_iter().enumerate().map(|(i, place)| {
        let context = match place {
            Ok(context) => context,
            Err(problem) => return Outcome::Refused(problem),
        };
        match written.next().expect("the Archive answers each write") {
            Ok(written) => Outcome::Done(answer(context, written)),
            Err(refused) => Outcome::Refused(Problem::from(refused).within(&format!("/ops/{i}"))),
        }
    });
    Ok(Json(Results { results: results.collect() }).into_response())
}
