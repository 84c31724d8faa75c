//! Gives the corpus of a fuzz target to the target: a part of the tests of each crate that has targets.

use std::path::Path;

/// Makes the test that gives these targets, which stand beside it, their corpus.
macro_rules! corpus_of {
    ($($target:ident)*) => {
        mod tests {
            #[test]
            fn the_corpus_breaks_no_target() {
                $(super::replay::replay(stringify!($target), super::$target);)*
            }
        }
    };
}
pub(super) use corpus_of;

/// Calls `target` with every file of `tests/fuzz/corpus/NAME`. Fails if there is none.
pub(super) fn replay(name: &str, target: fn(&[u8])) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().find(|folder| folder.join("tests/fuzz").is_dir());
    let folder = root.expect("a crate lies in the tree of the project").join("tests/fuzz/corpus").join(name);
    let entries = folder.read_dir().unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let inputs: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    assert!(!inputs.is_empty(), "{} has no input", folder.display());
    for input in inputs {
        // A target that fails says nothing of its input, so the name of the input stands before that.
        println!("{}", input.display());
        target(&std::fs::read(&input).unwrap());
    }
}
