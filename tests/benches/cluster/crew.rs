//! Devices in a process of their own, because one process may open only so many sockets.
//!
//! ```text
//!   parent ──arguments: an address, a file of tokens──▶ child connects a device per token ──"connected"──▶ parent
//!          ──"expect"──▶ "expecting" … every device was told of one more change ──"p50 last", in ms──▶
//!          ──"tally"───▶ "missing repeated"
//! ```

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use feedgate_tests::load::{Deliver, Fleet, Plan, Wire, milliseconds};
use tokio::sync::mpsc::{Receiver, channel};
use tokio::time::timeout;

/// The argument that makes this program a crew.
pub(crate) const ROLE: &str = "crew";

/// The longest that a crew takes for one word of the parent.
const PATIENCE: Duration = Duration::from_secs(300);

/// Runs the child until its input ends.
pub(crate) async fn run(address: SocketAddr, tokens: &Path) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(tokens)?;
    let tokens: Vec<String> = text.lines().map(str::to_owned).collect();
    let all = 0..tokens.len();
    let fleet = Fleet::connect(Plan {
        addresses: &[address],
        deliver: Deliver::Items,
        wire: Wire::Json,
        tokens: &tokens,
        stalled: 0..0,
        tls: None,
    })
    .await?;
    say("connected")?;
    let mut words = lines(std::io::stdin());
    while let Some(word) = words.recv().await {
        if word == "tally" {
            let tally = fleet.tally()?;
            say(&format!("{} {}", tally.missing, tally.repeated))?;
            continue;
        }
        fleet.expect(all.clone(), 1);
        let told = Instant::now();
        say("expecting")?;
        let arrivals = fleet.arrived(all.clone()).await?;
        let [half, last] = [0.5, 1.0].map(|share| milliseconds(arrivals.quantile(share) - told));
        say(&format!("{half} {last}"))?;
    }
    Ok(())
}

fn say(line: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

/// How many lines may wait to be received; a crew and its parent answer each other, so there is one at a time.
const LINES: usize = 16;

/// The lines of `from`, read by a thread, because reading blocks.
fn lines(from: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (tell, told) = channel(LINES);
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if tell.blocking_send(line).is_err() {
                break;
            }
        }
    });
    told
}

/// The parent's side of a crew, which ends when this is dropped.
pub(crate) struct Crew {
    child: Child,
    input: ChildStdin,
    said: Receiver<String>,
}

impl Crew {
    /// Starts a crew with a device for each line of the file `tokens`, and waits until all are subscribed.
    pub(crate) async fn connect(address: SocketAddr, tokens: &Path) -> anyhow::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args([ROLE, &address.to_string()])
            .arg(tokens)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take().context("a crew has an input")?;
        let said = lines(child.stdout.take().context("a crew has an output")?);
        let mut crew = Self { child, input, said };
        crew.hear().await?;
        Ok(crew)
    }

    /// From now on every device waits for one more change.
    pub(crate) async fn expect(&mut self) -> anyhow::Result<()> {
        writeln!(self.input, "expect")?;
        self.hear().await.map(|_| ())
    }

    /// Waits until every device has it: the times after [`Crew::expect`] by which half of them and the last one had
    /// it, in milliseconds.
    pub(crate) async fn arrived(&mut self) -> anyhow::Result<(f64, f64)> {
        self.pair().await
    }

    /// Changes that devices were not told of, and those that they were told of again.
    pub(crate) async fn tally(&mut self) -> anyhow::Result<(u64, u64)> {
        writeln!(self.input, "tally")?;
        self.pair().await
    }

    async fn pair<T: std::str::FromStr<Err: std::error::Error + Send + Sync + 'static>>(
        &mut self,
    ) -> anyhow::Result<(T, T)> {
        let line = self.hear().await?;
        let (one, other) = line.split_once(' ').with_context(|| format!("a crew said {line:?}"))?;
        Ok((one.parse()?, other.parse()?))
    }

    async fn hear(&mut self) -> anyhow::Result<String> {
        let said = timeout(PATIENCE, self.said.recv()).await.context("a crew says nothing")?;
        said.ok_or_else(|| anyhow!("a crew has ended; its error stands above"))
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
