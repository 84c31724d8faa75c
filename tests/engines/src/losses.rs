//! How a Redis loses what it was told: its files gone, older ones in their place, another's memory over its own.

use std::fs;
use std::path::{Path, PathBuf};

use crate::kinds::Redis;

impl Redis {
    /// Copies its append-only files to `to`, for [`Redis::roll_back`]. With `--appendfsync always` they hold whatever
    /// was answered.
    pub fn copy_files(&self, to: &Path) {
        copy(&self.files(), to);
    }

    /// Killed, and started again without its files.
    pub fn restart_without_files(&mut self) {
        self.kill();
        fs::remove_dir_all(self.files()).expect("the files of a killed Redis");
        self.restart();
    }

    /// Killed, and started again with the files that were copied to `from`.
    pub fn roll_back(&mut self, from: &Path) {
        self.kill();
        fs::remove_dir_all(self.files()).expect("the files of a killed Redis");
        copy(from, &self.files());
        self.restart();
    }

    /// Made a replica of `other` until it holds the same, and then a master again: the process and its connections
    /// stay.
    pub fn overwrite_with(&self, other: &Self) {
        self.cli(&["replicaof", "127.0.0.1", &other.port().to_string()]);
        while !self.cli(&["info", "replication"]).contains("master_link_status:up") {
            std::thread::yield_now();
        }
        self.cli(&["replicaof", "no", "one"]);
    }

    fn files(&self) -> PathBuf {
        self.directory().join("appendonlydir")
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory for a copy");
    for file in fs::read_dir(from).expect("files to copy") {
        let file = file.expect("a file to copy");
        fs::copy(file.path(), to.join(file.file_name())).expect("room for a copy");
    }
}
