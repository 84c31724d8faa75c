//! Carries out many operations in one request: all that are well-formed in one commit, with one result for each, in
//! order. A wrong operation has a problem as its result and stops no other.

use axum::Json;
use axum::response::{IntoResponse, Response};
use feedgate_common::archive::{Refused, Write, Written};
use serde::Serialize;
use serde_json::value::RawValue;

use super::fields::Fields;
use super::payload::Payload;
use super::problem::Problem;
use super::writer::Writer;

/// The most bytes of a batch.
pub(super) const BYTES_MAX: usize = 8 * 1024 * 1024;

/// The most operations of a batch.
pub(super) const OPS_MAX: usize = 1000;

/// The write of an operation, with what its result needs besides what was written; or the problem of the operation.
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

/// Reads `{"ops":[…]}` with `operation`, which gets each operation and the pointer to it.
pub(super) fn read<T>(
    payload: &Payload<BYTES_MAX>,
    mut operation: impl FnMut(&RawValue, String) -> Result<T, Problem>,
) -> Result<Vec<Result<T, Problem>>, Problem> {
    let ops = payload.fields(&["ops"])?.required("ops")?.list(OPS_MAX)?;
    Ok(ops.into_iter().enumerate().map(|(i, op)| operation(op, pointer(i))).collect())
}

/// Answers with the results of all operations, in order.
pub(super) fn answer<R: Serialize>(results: impl Iterator<Item = Result<R, Problem>>) -> Response {
    let outcome = |result| match result {
        Ok(done) => Outcome::Done(done),
        Err(problem) => Outcome::Refused(problem),
    };
    Json(Results { results: results.map(outcome).collect() }).into_response()
}

/// Whether an operation adds something or removes it, as its field `op` says.
pub(super) fn adds(op: &Fields<'_>) -> Result<bool, Problem> {
    let what = op.required("op")?;
    match &*what.string()? {
        "add" => Ok(true),
        "remove" => Ok(false),
        other => Err(what.refuse(format_args!("must be \"add\" or \"remove\", not {other:?}"))),
    }
}

/// The pointer to an operation.
pub(super) fn pointer(nth: usize) -> String {
    format!("/ops/{nth}")
}

/// Reads `{"ops":[…]}` with `read`, which gets each operation and the pointer to it; carries out all in one commit, and
/// makes the result of each that was written or refused with `answer`. If the future is dropped, the commit may still
/// be made.
pub(super) async fn carry_out<T, R: Serialize>(
    writer: &Writer,
    payload: Payload<BYTES_MAX>,
    mut read: impl FnMut(&RawValue, String) -> Operation<T>,
    answer: impl Fn(T, Result<Written, Refused>) -> Result<R, Refused>,
) -> Result<Response, Problem> {
    let mut writes = vec![];
    let places = self::read(&payload, |op, at| {
        let (context, write) = read(op, at)?;
        writes.push(write);
        Ok(context)
    })?;
    let written = if writes.is_empty() { vec![] } else { writer.write(writes).await? };
    let mut written = written.into_iter();
    let results = places.into_iter().enumerate().map(|(i, place)| {
        let context = place?;
        let written = written.next().expect("the Archive answers each write");
        answer(context, written).map_err(|refused| Problem::from(refused).within(&pointer(i)))
    });
    Ok(self::answer(results))
}
