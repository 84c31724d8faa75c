//! Finds circles of imports between files. A file and the files of the modules inside its own module count as one: they
//! are cut by length, and may use each other.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::Peekable;
use std::str::Chars;

/// Where a file is in the tree of modules: the folder of its crate, then the names of modules.
type Place = Vec<String>;

/// The files that import each other in a circle, each with what it imports within circles. `files` are paths with their
/// texts; only those below a folder `src` are looked at.
pub(crate) fn circles(files: &[(String, String)]) -> BTreeMap<String, BTreeSet<String>> {
    let places: BTreeMap<Place, &str> = files.iter().filter_map(|(path, _)| Some((place(path)?, &**path))).collect();
    let imports = |(path, text): &(String, String)| {
        let from = place(path)?;
        let files = named(text).into_iter().filter_map(|name| file_of(&places, &from, &name));
        Some((path.clone(), files.map(str::to_owned).collect()))
    };
    let mut circles: BTreeMap<String, BTreeSet<String>> = files.iter().filter_map(imports).collect();
    // A file that imports no other file that is left, or is imported by none, is in no circle.
    let mut before = usize::MAX;
    while circles.len() < before {
        before = circles.len();
        let imported: BTreeSet<String> = circles.values().flatten().cloned().collect();
        circles.retain(|file, imports| !imports.is_empty() && imported.contains(file));
        let left: BTreeSet<String> = circles.keys().cloned().collect();
        circles.values_mut().for_each(|imports| imports.retain(|file| left.contains(file)));
    }
    circles
}

fn place(path: &str) -> Option<Place> {
    let (home, inside) = path.strip_suffix(".rs")?.split_once("/src/")?;
    let mut place: Place = std::iter::once(home).chain(inside.split('/')).map(str::to_owned).collect();
    if place.last().is_some_and(|last| ["lib", "main", "mod"].contains(&&**last)) {
        place.pop();
    }
    Some(place)
}

/// The file of another module that this path names, seen from `from`.
fn file_of<'a>(places: &BTreeMap<Place, &'a str>, from: &Place, name: &[String]) -> Option<&'a str> {
    let ups = name.iter().take_while(|segment| *segment == "super").count();
    let (mut to, rest) = match &*name[0] {
        "crate" => (from[..1].to_vec(), &name[1..]),
        _ => (from[..from.len().checked_sub(ups)?].to_vec(), &name[ups..]),
    };
    for segment in rest {
        to.push(segment.clone());
        if !places.contains_key(&to) {
            to.pop();
            break;
        }
    }
    let is_one = to.starts_with(from) || from.starts_with(&to);
    places.get(&to).copied().filter(|_| !is_one)
}

/// All paths in a source that begin with `crate` or `super`, in its imports and elsewhere; not those of its tests.
fn named(text: &str) -> Vec<Vec<String>> {
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let code: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let code = code.join("\n");
    let mut found = vec![];
    for start in ["crate::", "super::"] {
        for (at, _) in code.match_indices(start) {
            let is_begin = !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
            if is_begin {
                tree(&mut code[at..].chars().peekable(), &[], &mut found);
            }
        }
    }
    found
}

/// Reads a path, or several with braces, and adds them to `found`, each behind `before`.
fn tree(code: &mut Peekable<Chars<'_>>, before: &[String], found: &mut Vec<Vec<String>>) {
    while code.next_if(|c| c.is_whitespace()).is_some() {}
    if code.next_if_eq(&'{').is_some() {
        loop {
            tree(code, before, found);
            // What follows a name in a list is a comma, the end of the list, or another name for it.
            if code.by_ref().find(|c| ",}".contains(*c)) != Some(',') {
                return;
            }
        }
    }
    let mut name = String::new();
    while let Some(c) = code.next_if(|c| c.is_alphanumeric() || *c == '_') {
        name.push(c);
    }
    let path = [before, &[name]].concat();
    if code.next_if_eq(&':').is_some() && code.next_if_eq(&':').is_some() {
        return tree(code, &path, found);
    }
    found.push(path);
}

#[test]
fn a_circle_of_imports_is_found_and_a_module_with_its_parts_is_none() {
    let file = |path: &str, text: &str| (format!("a/src/{path}.rs"), text.to_owned());
    let files = [
        file("lib", "mod b; mod c; mod d; mod e;"),
        file("b", "use crate::{c::C as Other, e::{E, F}};\nmod inner;"),
        file("b/inner", "use super::super::e::E; use super::B;"),
        file("c", "/// No import: [`crate::e`].\nfn c() { crate::d::d() }"),
        file("d", "use super::{c, b::inner::{self}};\n#[cfg(test)]\nmod tests { use crate::e; }"),
        file("e", "use std::fmt;"),
    ];
    let found: Vec<_> = circles(&files).into_keys().collect();
    assert_eq!(found, ["a/src/c.rs", "a/src/d.rs"]);
}
