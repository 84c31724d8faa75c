//! A Lua script, by its hash or whole.

use redis::Cmd;

use super::verb::Verb;

/// A script. A program has few scripts, and they never change: the server keeps scripts until it restarts or is told to
/// flush them.
#[derive(Debug)]
pub(crate) struct Script {
    /// The kind of call under which calls of this script are counted.
    pub(super) verb: Verb,
    code: String,
    hash: String,
}

impl Script {
    /// The script with this text, whose calls are counted as `verb`. If the text begins with `#!lua`, a server that may
    /// not write refuses the script before the script has begun, not half way.
    pub(crate) fn new(verb: Verb, code: impl Into<String>) -> Self {
        let code = code.into();
        let hash = redis::Script::new(&code).get_hash().to_owned();
        Self { verb, code, hash }
    }

    pub(super) fn by_hash<K: AsRef<[u8]>, A: AsRef<[u8]>>(&self, keys: &[K], arguments: &[A]) -> Cmd {
        command("EVALSHA", &self.hash, keys, arguments)
    }

    pub(super) fn whole<K: AsRef<[u8]>, A: AsRef<[u8]>>(&self, keys: &[K], arguments: &[A]) -> Cmd {
        command("EVAL", &self.code, keys, arguments)
    }
}

fn command<K: AsRef<[u8]>, A: AsRef<[u8]>>(name: &str, script: &str, keys: &[K], arguments: &[A]) -> Cmd {
    let (keys, arguments) = (keys.iter().map(AsRef::as_ref), arguments.iter().map(AsRef::as_ref));
    let count = keys.len();
    let words = keys.chain(arguments);
    let bytes: usize = words.clone().map(<[u8]>::len).sum();
    let mut command = Cmd::with_capacity(3 + words.clone().count(), bytes + script.len() + 16);
    command.arg(name).arg(script).arg(count);
    words.for_each(|word| _ = command.arg(word));
    command
}
