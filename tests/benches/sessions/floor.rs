//! The floor under every figure: a loop that calls `send(2)` with the same bytes on as many raw
//! sockets, and nothing else. It runs as a process of its own, so that its time is its own.
//!
//! ```text
//!   parent ──"hex of a frame"──▶ child: for each socket, send ──"sent"──▶ parent
//! ```

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, ensure};
use feedgate_tests::load::GREETING;
use feedgate_tests::process;

/// The argument that makes this program the sender.
pub(crate) const ROLE: &str = "bare-send-loop";

/// The child: accepts as many sockets as its argument says, then sends as told until its input ends.
pub(crate) fn run(sockets: usize) -> anyhow::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    say(&listener.local_addr()?.to_string())?;
    let mut peers = Vec::with_capacity(sockets);
    while peers.len() < sockets {
        let (mut peer, _) = listener.accept()?;
        peer.set_nodelay(true)?;
        peer.write_all(GREETING)?;
        peers.push(peer);
    }
    say("ready")?;
    for line in std::io::stdin().lines() {
        let frame = unhex(&line?)?;
        for peer in &mut peers {
            // One call takes a frame whole: the socket is empty.
            ensure!(peer.write(&frame)? == frame.len(), "a socket took only a part");
        }
        say("sent")?;
    }
    Ok(())
}

fn say(line: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

/// The process of the bare send loop, as the benchmark sees it.
pub(crate) struct Floor {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// The address on which the bare send loop listens.
    pub(crate) address: SocketAddr,
}

impl Floor {
    /// Starts a sender to `sockets` sockets.
    pub(crate) fn start(sockets: usize) -> anyhow::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args([ROLE, &sockets.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take().context("the sender has an input")?;
        let mut output = BufReader::new(child.stdout.take().context("the sender has an output")?);
        let mut address = String::new();
        output.read_line(&mut address)?;
        Ok(Self { child, input, output, address: address.trim().parse()? })
    }

    /// Blocks until every socket has been accepted. Connect them first.
    pub(crate) fn ready(&mut self) -> anyhow::Result<()> {
        self.hear("ready")
    }

    /// Starts sending `frame` to every socket.
    pub(crate) fn send(&mut self, frame: &[u8]) -> anyhow::Result<()> {
        let hex: String = frame.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(writeln!(self.input, "{hex}")?)
    }

    /// Blocks until it has sent to all.
    pub(crate) fn sent(&mut self) -> anyhow::Result<()> {
        self.hear("sent")
    }

    /// The processor time of the send loop so far, in seconds.
    pub(crate) fn cpu_seconds(&self) -> anyhow::Result<f64> {
        process::cpu_seconds(self.child.id())
    }

    fn hear(&mut self, word: &str) -> anyhow::Result<()> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        ensure!(line.trim() == word, "the sender said {line:?} instead of {word:?}");
        Ok(())
    }
}

impl Drop for Floor {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn unhex(text: &str) -> anyhow::Result<Vec<u8>> {
    let digits: Vec<u8> = text.chars().filter_map(|c| c.to_digit(16)).map(|d| d as u8).collect();
    ensure!(digits.len() == text.len() && text.len().is_multiple_of(2), "not hex: {text:?}");
    Ok(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}
