//! The other ways to append, beside which ours has to stand.

use redis::{Pipeline, Script, Value, cmd, pipe};

use crate::ours::{entry, record};
use crate::server::Server;
use crate::{APPENDS, READERS, Table};

pub(crate) const BARE: &str = "bare pipelined XADD";

/// What one recipient's step would be by itself: the header is compared, then the entry appended.
const ONE: &str = "local h = redis.call('LINDEX', KEYS[1], 0)
if not h or struct.unpack('<I7', h, 2) < 1 then return 0 end
return redis.call('RPUSH', KEYS[1], ARGV[1])";

fn key(reader: u32) -> String {
    format!("{{b000}}:{reader}:0")
}

/// An entry as we pack it.
fn packed(seq: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    feedgate_common::packing::put(&mut bytes, &entry(seq), &mut { feedgate_common::packing::START });
    bytes
}

fn pipeline(seq: u64, mut append: impl FnMut(&mut Pipeline, String, Vec<u8>)) -> Pipeline {
    let mut pipeline = pipe();
    (1..=READERS).for_each(|reader| append(&mut pipeline, key(reader), packed(seq)));
    pipeline
}

pub(crate) async fn measure(table: &mut Table) {
    let rounds = APPENDS / u64::from(READERS);
    type Append = fn(&mut Pipeline, String, Vec<u8>);
    let bare: [(&str, Append); 3] = [
        (BARE, |pipeline, key, entry| _ = pipeline.cmd("XADD").arg(key).arg("7-*").arg("e").arg(entry)),
        ("bare pipelined RPUSH", |pipeline, key, entry| _ = pipeline.cmd("RPUSH").arg(key).arg(entry)),
        ("bare pipelined APPEND", |pipeline, key, entry| _ = pipeline.cmd("APPEND").arg(key).arg(entry)),
    ];
    for (name, append) in bare {
        let server = Server::start().await;
        let run = async {
            for seq in 1..=rounds {
                server.send(&pipeline(seq, append)).await;
            }
        };
        table.line(name, APPENDS, &server, run).await;
    }
    per_recipient(table, rounds).await;
    optimistic(table, rounds).await;
}

async fn with_headers() -> Server {
    let server = Server::start().await;
    server.send(&pipeline(0, |pipeline, key, _| _ = pipeline.cmd("RPUSH").arg(key).arg(vec![1_u8; 39]))).await;
    server
}

async fn per_recipient(table: &mut Table, rounds: u64) {
    let server = with_headers().await;
    let hash = Script::new(ONE).get_hash().to_owned();
    server.ask::<String>(cmd("SCRIPT").arg("LOAD").arg(ONE)).await;
    let run = async {
        for seq in 1..=rounds {
            let append = |pipeline: &mut Pipeline, key, entry| {
                pipeline.cmd("EVALSHA").arg(&hash).arg(1).arg(key).arg(entry);
            };
            server.send(&pipeline(seq, append)).await;
        }
    };
    table.line("a script per recipient, pipelined", APPENDS, &server, run).await;
}

/// WATCH what is compared, read it, then MULTI and EXEC; three round trips a step.
async fn optimistic(table: &mut Table, rounds: u64) {
    let server = with_headers().await;
    let run = async {
        for seq in 1..=rounds {
            let mut watch = pipe();
            let watched = watch.cmd("WATCH").arg("{b000}");
            (1..=READERS).for_each(|reader| _ = watched.arg(key(reader)));
            watch.cmd("HMGET").arg("{b000}").arg("life").arg("1").cmd("INFO").arg("replication");
            server.send(&watch).await;
            server.send(&pipeline(seq, |pipeline, key, _| _ = pipeline.cmd("LINDEX").arg(key).arg(0))).await;
            let mut step = pipeline(seq, |pipeline, key, entry| _ = pipeline.cmd("RPUSH").arg(key).arg(entry));
            step.cmd("HSET").arg("{b000}").arg("1").arg(record(seq).seq).atomic();
            server.send(&step).await;
        }
    };
    table.line("WATCH, reads, MULTI and EXEC", APPENDS, &server, run).await;
    let length: Value = server.ask(cmd("LLEN").arg(key(1))).await;
    assert_eq!(length, Value::Int(rounds as i64 + 1));
}
