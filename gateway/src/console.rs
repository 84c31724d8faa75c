//! The console: a page that shows two devices of a reader beside the reader's log, for people who run this server.
//!
//! ```text
//!   GET /                 the page        GET /console/…    its scripts and its style
//! ```
//!
//! Everything is part of this program, so the page loads nothing from anywhere else. The files hold no secret: the page
//! has to bring a ticket to see anything. Invariants: the browser runs no script and shows no frame but those of this
//! list, and makes no HTML of text (`require-trusted-types-for`), whatever somebody has published.

use axum::Router;
use axum::http::{HeaderName, header};
use axum::response::IntoResponse;
use axum::routing::get;

/// What a browser may do with the page. `lit-html` is the only script that may make HTML, of its own templates.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                      require-trusted-types-for 'script'; trusted-types lit-html";

/// The headers of every file, besides its type. A browser asks again each time, so that no page outlives an update.
const HEADERS: [(HeaderName, &str); 7] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-cache"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// A path, the type of its file, and the file.
type Asset = (&'static str, &'static str, &'static str);

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

/// The files of the page. The reducer is the one that the examples show.
const ASSETS: &[Asset] = &[
    ("/", HTML, include_str!("../console/index.html")),
    ("/console/console.css", CSS, include_str!("../console/console.css")),
    ("/console/icon.svg", SVG, include_str!("../console/icon.svg")),
    ("/console/main.js", JS, include_str!("../console/main.js")),
    ("/console/backend.js", JS, include_str!("../console/backend.js")),
    ("/console/chooser.js", JS, include_str!("../console/chooser.js")),
    ("/console/demo.js", JS, include_str!("../console/demo.js")),
    ("/console/feed.js", JS, include_str!("../../examples/feed.js")),
    ("/console/log.js", JS, include_str!("../console/log.js")),
    ("/console/log-view.js", JS, include_str!("../console/log-view.js")),
    ("/console/network.js", JS, include_str!("../console/network.js")),
    ("/console/node.js", JS, include_str!("../console/node.js")),
    ("/console/people.js", JS, include_str!("../console/people.js")),
    ("/console/phone.js", JS, include_str!("../console/phone.js")),
    ("/console/phone-view.js", JS, include_str!("../console/phone-view.js")),
    ("/console/why.js", JS, include_str!("../console/why.js")),
    ("/console/vendor/centrifuge/centrifuge.js", JS, include_str!("../console/vendor/centrifuge/centrifuge.js")),
    ("/console/vendor/lit-html/lit-html.js", JS, include_str!("../console/vendor/lit-html/lit-html.js")),
    ("/console/vendor/lit-html/directive.js", JS, include_str!("../console/vendor/lit-html/directive.js")),
    (
        "/console/vendor/lit-html/directive-helpers.js",
        JS,
        include_str!("../console/vendor/lit-html/directive-helpers.js"),
    ),
    (
        "/console/vendor/lit-html/directives/repeat.js",
        JS,
        include_str!("../console/vendor/lit-html/directives/repeat.js"),
    ),
];

/// The page and its files as a router, to be merged with the API on a port that offers everything.
pub(crate) fn router() -> Router {
    ASSETS.iter().fold(Router::new(), |router, (path, kind, text)| router.route(path, get(async || file(kind, text))))
}

fn file(kind: &'static str, text: &'static str) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, kind)], HEADERS, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_and_all_its_files_have_fewer_than_165_kilobytes() {
        let bytes: usize = ASSETS.iter().map(|(_, _, text)| text.len()).sum();
        assert!(bytes < 165_000, "{bytes}");
    }

    #[test]
    fn the_page_has_no_script_or_style_of_its_own_and_loads_nothing_from_elsewhere() {
        let (_, _, page) = ASSETS[0];
        for tag in ["script", "link", "img"] {
            for element in page.split(&format!("<{tag} ")).skip(1) {
                let address = element.split(['"']).find(|part| part.starts_with('/'));
                let known = ASSETS.iter().any(|(path, _, _)| Some(*path) == address);
                assert!(known, "<{tag} {}", element.lines().next().unwrap_or_default());
            }
        }
        assert!(
            !page.contains("<style") && !page.contains("<script>") && !page.contains(" on") && !page.contains("style=")
        );
    }
}
