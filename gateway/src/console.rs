//! The console: a page that shows two devices of a reader beside the reader's log, for people who run this server; and
//! the pages of the products of `examples/`, which show a store that the console has filled.
//!
//! ```text
//!   GET /                          the console         GET /console/…            its scripts and its style
//!   GET /console/products/NAME/    a product           GET /console/products/…   its scripts, its style and its world
//! ```
//!
//! Everything is part of this program, so the pages load nothing from anywhere else. The files hold no secret: a page
//! can see data only with a ticket, or with the key that the console got for a ticket. Invariants: whatever somebody
//! has published, the browser runs no script and shows no frame except those of this list, and makes no HTML from text
//! (`require-trusted-types-for`).

use axum::Router;
use axum::http::{HeaderName, header};
use axum::response::IntoResponse;
use axum::routing::get;

/// What a browser may do with the console. `lit-html` is the only script that may make HTML, from its own templates.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                      require-trusted-types-for 'script'; trusted-types lit-html";

/// What a browser may do with the page of a product. No script makes HTML; the page itself draws its pictures.
const PRODUCT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; \
                              connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                              require-trusted-types-for 'script'; trusted-types 'none'";

/// The headers of every file, besides its type and its policy. A browser asks again each time, so that no page stays in
/// use after an update.
const HEADERS: [(HeaderName, &str); 6] = [
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
const TEXT: &str = "text/plain; charset=utf-8";

/// The SDK as npm publishes it, and the reducer of the examples. Both the console and the products contain them.
const SDK: &str = include_str!("../console/vendor/centrifuge/centrifuge.js");
const REDUCER: &str = include_str!("../../examples/feed.js");

/// The files of the console.
const ASSETS: &[Asset] = &[
    ("/", HTML, include_str!("../console/index.html")),
    ("/console/console.css", CSS, include_str!("../console/console.css")),
    ("/console/icon.svg", SVG, include_str!("../console/icon.svg")),
    ("/console/main.js", JS, include_str!("../console/main.js")),
    ("/console/again.js", JS, include_str!("../../examples/shared/again.js")),
    ("/console/answer.js", JS, include_str!("../../examples/shared/answer.js")),
    ("/console/backend.js", JS, include_str!("../console/backend.js")),
    ("/console/chooser.js", JS, include_str!("../console/chooser.js")),
    ("/console/demo.js", JS, include_str!("../console/demo.js")),
    ("/console/feed.js", JS, REDUCER),
    ("/console/log.js", JS, include_str!("../console/log.js")),
    ("/console/log-view.js", JS, include_str!("../console/log-view.js")),
    ("/console/network.js", JS, include_str!("../console/network.js")),
    ("/console/node.js", JS, include_str!("../console/node.js")),
    ("/console/people.js", JS, include_str!("../console/people.js")),
    ("/console/phone.js", JS, include_str!("../console/phone.js")),
    ("/console/phone-view.js", JS, include_str!("../console/phone-view.js")),
    ("/console/products.js", JS, include_str!("../console/products.js")),
    ("/console/why.js", JS, include_str!("../console/why.js")),
    ("/console/vendor/centrifuge/centrifuge.js", JS, SDK),
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

/// A file of `examples/`. It has the same path below `/console/products/`.
macro_rules! example {
    ($file:expr, $kind:expr) => {
        (concat!("/console/products/", $file), $kind, include_str!(concat!("../../examples/", $file)))
    };
}

/// The files of the product of this name.
macro_rules! product {
    ($name:literal) => {
        [
            (
                concat!("/console/products/", $name, "/"),
                HTML,
                include_str!(concat!("../../examples/", $name, "/index.html")),
            ),
            example!(concat!($name, "/app.js"), JS),
            example!(concat!($name, "/feedgate.toml"), TEXT),
            example!(concat!($name, "/", $name, ".css"), CSS),
            example!(concat!($name, "/world.js"), JS),
        ]
    };
}

const PRODUCTS: &[[Asset; 5]] =
    &[product!("weibo"), product!("moments"), product!("notifications"), product!("headlines")];

/// The files that the pages of all products share. A page asks its backend through `shared/backend.js`; here a file of
/// the console takes its place.
const SHARED: &[Asset] = &[
    ("/console/products/frame.css", CSS, include_str!("../console/frame.css")),
    ("/console/products/shared/backend.js", JS, include_str!("../console/product-backend.js")),
    ("/console/products/centrifuge.js", JS, SDK),
    ("/console/products/feed.js", JS, REDUCER),
    example!("shared/again.js", JS),
    example!("shared/answer.js", JS),
    example!("shared/app.js", JS),
    example!("shared/comments.js", JS),
    example!("shared/draw.js", JS),
    example!("shared/page.css", CSS),
    example!("shared/pictures.js", JS),
    example!("shared/random.js", JS),
    example!("shared/reader.js", JS),
    example!("shared/world.js", JS),
    example!("ranker/rank.js", JS),
];

/// All files of the products.
fn products() -> impl Iterator<Item = &'static Asset> {
    SHARED.iter().chain(PRODUCTS.as_flattened())
}

/// The pages and their files as a router, to be merged with the API on a port that offers everything.
pub(crate) fn router() -> Router {
    let console = ASSETS.iter().map(|asset| (asset, POLICY));
    let products = products().map(|asset| (asset, PRODUCT_POLICY));
    console.chain(products).fold(Router::new(), |router, ((path, kind, text), policy)| {
        router.route(path, get(async || file(kind, policy, text)))
    })
}

fn file(kind: &'static str, policy: &'static str, text: &'static str) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, kind), (header::CONTENT_SECURITY_POLICY, policy)], HEADERS, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of some files.
    fn bytes<'a>(assets: impl IntoIterator<Item = &'a Asset>) -> usize {
        assets.into_iter().map(|(_, _, text)| text.len()).sum()
    }

    #[test]
    fn the_console_has_fewer_than_173_kilobytes_and_the_products_add_fewer_than_112() {
        let console = bytes(ASSETS);
        assert!(console < 173_000, "{console}");
        let products = bytes(products()) - SDK.len() - REDUCER.len();
        assert!(products < 112_000, "{products}");
    }

    /// Where a link of a file leads that stands at this path.
    fn target(from: &str, link: &str) -> String {
        let mut parts: Vec<&str> = if link.starts_with('/') { Vec::new() } else { from.split('/').collect() };
        parts.pop();
        for part in link.split('/') {
            match part {
                "." => {}
                ".." => drop(parts.pop()),
                part => parts.push(part),
            }
        }
        parts.join("/")
    }

    fn all() -> impl Iterator<Item = &'static Asset> {
        ASSETS.iter().chain(products())
    }

    /// Whether a link of a file leads to a file of this program.
    fn leads(from: &str, link: &str) -> bool {
        let target = target(from, link);
        all().any(|(path, _, _)| *path == target)
    }

    #[test]
    fn every_page_loads_files_of_this_program_alone_and_has_no_script_or_style_inside() {
        for (page, _, text) in all().filter(|(_, kind, _)| *kind == HTML) {
            let loads = |element: &&str| ["script ", "link ", "img "].iter().any(|tag| element.starts_with(tag));
            for element in text.split('<').filter(loads) {
                let link = element.split_once(" src=\"").or(element.split_once(" href=\"")).map(|(_, rest)| rest);
                let link = link.and_then(|rest| rest.split('"').next()).unwrap_or_default();
                assert!(link == "data:," || leads(page, link), "{page}: {element}");
            }
            for inside in ["<style", "<script>", " onclick", " onload", " style="] {
                assert!(!text.contains(inside), "{page}: {inside}");
            }
        }
    }

    #[test]
    fn every_module_imports_files_of_this_program_alone() {
        for (path, _, text) in all().filter(|(path, kind, _)| *kind == JS && !path.contains("/vendor/")) {
            for line in text.lines().filter(|line| line.starts_with("import ")) {
                let link = line.split('"').nth(1).unwrap_or_default();
                assert!(leads(path, link), "{path}: {line}");
            }
        }
    }
}
