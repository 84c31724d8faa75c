//! What the server says when it is ready: where it is, and a tour to copy.

use std::fmt::Write;
use std::path::Path;

use crate::secrets;

/// What the banner tells of.
pub(crate) struct Banner<'a> {
    /// Where devices connect, `HOST:PORT`.
    pub(crate) devices: &'a str,
    /// Where backends connect, `HOST:PORT`.
    pub(crate) backends: &'a str,
    /// Absolute.
    pub(crate) data: &'a Path,
    /// This program, absolute.
    pub(crate) program: &'a Path,
    /// Where the tour is printed, and where it works as printed.
    pub(crate) here: &'a Path,
}

impl Banner<'_> {
    /// The text, ending in a newline.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("feedgate {}\n\n", env!("CARGO_PKG_VERSION"));
        let lines = [
            ("WebSocket", format!("ws://{}/connection/websocket", self.devices)),
            ("HTTP API", format!("http://{}/v1", self.backends)),
            ("Data", self.data.display().to_string()),
            ("Secrets", secrets::directory(self.data).display().to_string()),
        ];
        for (what, place) in lines {
            writeln!(text, "  {what:<11}{place}").expect("a String takes everything");
        }
        writeln!(text, "\nA tour, for another terminal in {}:\n", self.here.display()).expect("as above");
        for command in self.tour() {
            writeln!(text, "  {command}").expect("as above");
        }
        text.push_str("\nCtrl-C stops the server.\n");
        text
    }

    /// Four commands: follow, watch, publish, read.
    fn tour(&self) -> [String; 4] {
        let program = quoted(self.program.strip_prefix(self.here).unwrap_or(self.program));
        let data = match self.data.strip_prefix(self.here) {
            Ok(data) if data == Path::new("data") => String::new(),
            Ok(data) => format!(" --data {}", quoted(data)),
            Err(_) => format!(" --data {}", quoted(self.data)),
        };
        [
            format!("{program} follow bob ann{data}"),
            format!("{program} tail --user bob{data} &"),
            format!(r#"{program} publish --author ann '{{"text":"hello"}}'{data}"#),
            format!("{program} feed --user bob{data}"),
        ]
    }
}

/// A path as a word of a POSIX shell, with a slash in it so that no `PATH` is searched.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let text = if text.contains('/') { text } else { format!("./{text}") };
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn banner<'a>(data: &'a str, program: &'a str) -> Banner<'a> {
        let (data, program) = (Path::new(data), Path::new(program));
        Banner { devices: "127.0.0.1:8080", backends: "127.0.0.1:8080", data, program, here: Path::new("/home/me/fg") }
    }

    #[test]
    fn the_tour_is_short_where_it_can_be_and_right_everywhere() {
        let near = banner("/home/me/fg/data", "/home/me/fg/target/release/feedgate");
        assert_eq!(near.tour()[0], "target/release/feedgate follow bob ann");
        assert_eq!(near.tour()[2], r#"target/release/feedgate publish --author ann '{"text":"hello"}'"#);
        let far = banner("/srv/it's", "/usr/bin/feedgate");
        assert_eq!(far.tour()[3], r"/usr/bin/feedgate feed --user bob --data '/srv/it'\''s'");
        let beside = banner("/home/me/fg/d", "/home/me/fg/feedgate");
        assert_eq!(beside.tour()[1], "./feedgate tail --user bob --data ./d &");
    }

    #[test]
    fn the_readme_shows_the_same_tour() {
        let readme = include_str!("../../../README.md");
        for command in banner("/home/me/fg/data", "/home/me/fg/target/release/feedgate").tour() {
            assert!(readme.contains(&format!("$ {command}\n")), "{command}");
        }
    }

    #[test]
    fn the_banner_says_where_everything_is() {
        let text = banner("/home/me/fg/data", "/home/me/fg/feedgate").text();
        for right in
            ["ws://127.0.0.1:8080/connection/websocket", "http://127.0.0.1:8080/v1", "/home/me/fg/data/secrets"]
        {
            assert!(text.contains(right), "{text}");
        }
    }
}
