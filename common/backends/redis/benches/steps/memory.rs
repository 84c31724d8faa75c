//! What an inbox weighs: as we keep it, and as a stream or one string.

use feedgate_common::{InboxKey, UserNo};
use redis::{Cmd, cmd};

use crate::ours::{build, entry, open};
use crate::server::Server;

const ENTRIES: [u64; 4] = [1, 20, 100, 1000];

pub(crate) async fn measure() {
    println!("{:<46} {:>8} {:>8} {:>8} {:>8}", "entries", ENTRIES[0], ENTRIES[1], ENTRIES[2], ENTRIES[3]);
    let server = Server::start().await;
    let store = open(&server).await;
    let mut ours = Vec::new();
    for (reader, entries) in (5000..).zip(ENTRIES) {
        build(&store, InboxKey::main(UserNo(reader)), (1..=entries).map(entry).collect()).await;
        ours.push(weight(&server, &format!("{{b000}}:{reader}:0")).await);
    }
    line("a list, as we keep it, built at once", &ours);
    type Arguments = fn(&mut Cmd, Vec<u8>);
    let other: [(&str, Arguments); 3] = [
        ("RPUSH", |command, entry| _ = command.arg(entry)),
        ("XADD", |command, entry| _ = command.arg("7-*").arg("e").arg(entry)),
        ("APPEND", |command, entry| _ = command.arg(entry)),
    ];
    for (name, arguments) in other {
        let mut weights = Vec::new();
        for entries in ENTRIES {
            let key = format!("{{b000}}:{name}:{entries}");
            for seq in 1..=entries {
                let mut bytes = Vec::new();
                feedgate_common::packing::put(&mut bytes, &entry(seq), &mut { feedgate_common::packing::START });
                let mut command = cmd(name);
                arguments(command.arg(&key), bytes);
                server.ask::<redis::Value>(&command).await;
            }
            weights.push(weight(&server, &key).await);
        }
        line(&format!("{name}, one at a time, no header"), &weights);
    }
}

async fn weight(server: &Server, key: &str) -> u64 {
    server.ask(cmd("MEMORY").arg("USAGE").arg(key).arg("SAMPLES").arg(0)).await
}

fn line(name: &str, weights: &[u64]) {
    println!("{name:<46} {:>8} {:>8} {:>8} {:>8}", weights[0], weights[1], weights[2], weights[3]);
}
