//! Explains the types of problems that answers of this API name.

use axum::Json;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::problem::{Kind, Problem};
use super::query::{NoQuery, Segment};

/// Answers `GET /problems/{name}`: explains a `type`.
pub(crate) async fn explain(Segment(name): Segment<String>, _: NoQuery) -> Result<Response, Problem> {
    #[derive(Serialize)]
    struct About {
        r#type: String,
        title: &'static str,
        status: u16,
        about: &'static str,
    }
    let Some(kind) = Kind::ALL.iter().find(|kind| kind.name() == name) else {
        return Err(Problem::new(Kind::NotFound, "there is no such problem type; /openapi.json lists them"));
    };
    let about = About {
        r#type: format!("/problems/{name}"),
        title: kind.title(),
        status: kind.status().as_u16(),
        about: kind.about(),
    };
    Ok(Json(about).into_response())
}
