//! The text that the server prints when it is ready: its addresses, and a tour to copy.

use std::fmt::Write;
use std::path::Path;

/// The paths that the commands of the tour need.
pub(crate) struct Tour<'a> {
    /// The data directory, as an absolute path.
    pub(crate) data: &'a Path,
    /// The path of this program, absolute.
    pub(crate) program: &'a Path,
    /// The current directory, in which the commands work as they are printed.
    pub(crate) here: &'a Path,
}

/// The name and the version of a program, its addresses and directories, and perhaps a tour; ends in a newline.
pub(crate) fn text(program: &str, places: &[(&str, String)], tour: Option<Tour<'_>>) -> String {
    let mut text = format!("{program} {}\n\n", env!("CARGO_PKG_VERSION"));
    for (what, place) in places {
        writeln!(text, "  {what:<11}{place}").expect("a String takes everything");
    }
    if let Some(tour) = tour {
        writeln!(text, "\nA tour, for another terminal in {}:\n", tour.here.display()).expect("as above");
        for command in tour.commands() {
            writeln!(text, "  {command}").expect("as above");
        }
    }
    text.push_str("\nCtrl-C stops the server.\n");
    text
}

impl Tour<'_> {
    /// Four commands: follow, watch, publish, read.
    fn commands(&self) -> [String; 4] {
        let program = quoted(self.shortest(self.program));
        let data = match self.shortest(self.data) {
            data if data == Path::new("data") => String::new(),
            data => format!(" --data {}", quoted(data)),
        };
        [
            format!("{program} follow bob ann{data}"),
            format!("{program} tail --user bob{data} &"),
            format!(r#"{program} publish --author ann '{{"text":"hello"}}'{data}"#),
            format!("{program} feed --user bob{data}"),
        ]
    }

    /// The path relative to the current directory, if the path is below that. A service runs in `/`, where nobody opens
    /// a terminal: there paths stay absolute.
    fn shortest<'a>(&self, path: &'a Path) -> &'a Path {
        if self.here == Path::new("/") { path } else { path.strip_prefix(self.here).unwrap_or(path) }
    }
}

/// Quotes a path as a word of a POSIX shell, with a slash in it so that no `PATH` is searched.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let text = if text.contains('/') { text } else { format!("./{text}") };
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tour<'a>(data: &'a str, program: &'a str) -> Tour<'a> {
        Tour { data: Path::new(data), program: Path::new(program), here: Path::new("/home/me/fg") }
    }

    #[test]
    fn the_tour_is_short_where_it_can_be_and_right_everywhere() {
        let near = tour("/home/me/fg/data", "/home/me/fg/target/release/feedgate");
        assert_eq!(near.commands()[0], "target/release/feedgate follow bob ann");
        assert_eq!(near.commands()[2], r#"target/release/feedgate publish --author ann '{"text":"hello"}'"#);
        let far = tour("/srv/it's", "/usr/bin/feedgate");
        assert_eq!(far.commands()[3], r"/usr/bin/feedgate feed --user bob --data '/srv/it'\''s'");
        let beside = tour("/home/me/fg/d", "/home/me/fg/feedgate");
        assert_eq!(beside.commands()[1], "./feedgate tail --user bob --data ./d &");
        let service = Tour { here: Path::new("/"), ..tour("/var/lib/feedgate", "/usr/bin/feedgate") };
        assert_eq!(service.commands()[0], "/usr/bin/feedgate follow bob ann --data /var/lib/feedgate");
    }

    #[test]
    fn the_readme_shows_the_same_tour() {
        let readme = include_str!("../../../README.md");
        for command in tour("/home/me/fg/data", "/home/me/fg/target/release/feedgate").commands() {
            assert!(readme.contains(&format!("$ {command}\n")), "{command}");
        }
    }

    #[test]
    fn the_banner_says_where_everything_is() {
        let places = [("WebSocket", "ws://127.0.0.1:8080".to_owned()), ("Data", "/srv/data".to_owned())];
        let alone = text("gateway", &places, None);
        assert!(alone.contains("  WebSocket  ws://127.0.0.1:8080\n  Data       /srv/data\n\nCtrl-C"), "{alone}");
        let toured = text("feedgate", &places, Some(tour("/home/me/fg/data", "/home/me/fg/feedgate")));
        assert!(toured.contains("in /home/me/fg:\n\n  ./feedgate follow bob ann\n"), "{toured}");
    }
}
