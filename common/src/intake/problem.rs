//! What a backend is told of its calls that were refused.

use serde_json::Value;
use serde_json::value::RawValue;

/// The most characters of a text in a problem that goes into a header: names that a backend has sent stand in it.
const TEXT_MAX: usize = 1024;

/// A problem document in one line of a header: texts that are too long for that are cut.
pub fn fitted(problem: &[u8]) -> String {
    let mut problem: Value = serde_json::from_slice(problem).unwrap_or_default();
    for value in problem.as_object_mut().into_iter().flat_map(|members| members.values_mut()) {
        if let Value::String(text) = value
            && let Some((end, _)) = text.char_indices().nth(TEXT_MAX)
        {
            text.truncate(end);
            text.push('…');
        }
    }
    problem.to_string()
}

/// The operations of a batch that were refused: the place of each from 0, a batch with that operation alone, and its
/// problem. `asked` is the body of the batch, and `answer` that of its answer.
pub fn refused_operations(asked: &[u8], answer: &[u8]) -> Vec<(usize, Vec<u8>, String)> {
    #[derive(serde::Deserialize)]
    struct Asked<'a> {
        #[serde(borrow)]
        ops: Vec<&'a RawValue>,
    }
    #[derive(serde::Deserialize)]
    struct Answered<'a> {
        #[serde(borrow)]
        results: Vec<&'a RawValue>,
    }
    #[derive(serde::Deserialize)]
    struct Outcome {
        status: u16,
    }
    let (Ok(asked), Ok(answer)) =
        (serde_json::from_slice::<Asked<'_>>(asked), serde_json::from_slice::<Answered<'_>>(answer))
    else {
        return vec![];
    };
    let is_refused =
        |result: &RawValue| serde_json::from_str(result.get()).is_ok_and(|Outcome { status }| status >= 400);
    let both = asked.ops.iter().zip(answer.results).enumerate();
    let refused = both.filter(|(_, (_, result))| is_refused(result));
    let alone = |op: &RawValue| format!("{{\"ops\":[{}]}}", op.get()).into_bytes();
    refused.map(|(at, (op, result))| (at, alone(op), fitted(result.get().as_bytes()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refused_operation_is_a_batch_of_its_own_with_its_problem() {
        let asked = br#"{"ops":[{"author":"ann","body":1}, {"author" : "b b"},{"author":"eve","body":2}]}"#;
        let answer = br#"{"results":[{"status":201,"id":"1"},{"type":"/problems/x","status":422},{"status":200}]}"#;
        let refused = refused_operations(asked, answer);
        let [(1, alone, problem)] = &refused[..] else { panic!("{refused:?}") };
        assert_eq!(String::from_utf8_lossy(alone), r#"{"ops":[{"author" : "b b"}]}"#);
        assert_eq!(serde_json::from_str::<Value>(problem).unwrap()["type"], "/problems/x");
    }

    #[test]
    fn a_problem_with_a_name_of_any_length_fits_into_a_header() {
        let problem = serde_json::json!({ "status": 422, "pointer": format!("/{}", "ä".repeat(100_000)) });
        let fitted = fitted(problem.to_string().as_bytes());
        assert!(fitted.len() < 4096 && !fitted.contains('\n'), "{}", fitted.len());
        assert_eq!(serde_json::from_str::<Value>(&fitted).unwrap()["status"], 422);
    }
}
