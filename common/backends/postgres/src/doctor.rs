//! Looks whether the rows of a database agree with each other, and changes nothing. Servers may go on meanwhile: all
//! checks read one snapshot.
//!
//! Each check is a statement that gives one sentence for each row that is wrong. The statements are meant for a whole
//! store, so they leave the planner its own choice, unlike those of the Archive.

mod checks;

use feedgate_common::doctor::{Check, Report, SHOWN};
use feedgate_common::error::{Result, StoreError};
use feedgate_tls::StoreTls;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};

use crate::{connect, fault, pool, rows};
use checks::{CHECKS, Rule};

const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// The number of the last migration.
const OUTSTANDING: &str = "
SELECT count(*), min(due) FILTER (WHERE due > 0) FROM (
    SELECT due FROM authors WHERE due IS NOT NULL
    UNION ALL SELECT due FROM edges WHERE due IS NOT NULL
    UNION ALL SELECT direct_due FROM readers WHERE direct_due IS NOT NULL
) AS events";

/// Checks the database of `url` as of now. A check takes the time to read the whole database, and a share of the memory
/// and the disk of the server for sorting. Cancel safe: nothing is written.
///
/// # Errors
/// `Misconfigured` if the URL is wrong, or if the database was not made by this version. `Unavailable` if the server
/// does not answer. What is wrong with the rows is no error but a finding.
pub async fn check(url: &str) -> Result<Report> {
    check_with(url, &StoreTls::default()).await
}

/// As [`check`], with files for TLS.
///
/// # Errors
/// As [`check`], and `Misconfigured` if there is no TLS with the server.
pub async fn check_with(url: &str, tls: &StoreTls) -> Result<Report> {
    let options = connect::by_tls(connect::parse(url)?, tls);
    let mut connection = options.connect().await.map_err(|error| pool::unreachable(&options, error))?;
    expect_tables(&mut connection).await?;
    let report = look(&mut connection).await.map_err(fault::store_error)?;
    _ = connection.close().await;
    Ok(report)
}

/// Fails unless the tables have this version, since the checks name the tables and columns of this version.
async fn expect_tables(connection: &mut PgConnection) -> Result<()> {
    let newest = connect::newest();
    let why = match connect::version(connection).await? {
        Some(version) if version == newest => return Ok(()),
        Some(version) if version > newest => format!(
            "the tables have version {version} of a later program, and this one looks at version {newest}; run the doctor of \
             the later program"
        ),
        Some(version) => format!(
            "the tables have version {version}, and this program looks at version {newest}; a server of this version brings \
             them to it as it starts"
        ),
        None => "the database has no tables of Feedgate; a server makes them as it starts".to_owned(),
    };
    Err(StoreError::misconfigured(why))
}

async fn look(connection: &mut PgConnection) -> sqlx::Result<Report> {
    sqlx::query(SNAPSHOT).execute(&mut *connection).await?;
    let mut report = Report::default();
    for rule in &CHECKS {
        report.checks.push(run(connection, rule).await?);
    }
    let (outstanding, oldest): (i64, Option<i64>) = sqlx::query_as(OUTSTANDING).fetch_one(&mut *connection).await?;
    (report.outstanding, report.oldest) = (rows::count_of(outstanding)?, oldest);
    sqlx::query("COMMIT").execute(connection).await?;
    Ok(report)
}

async fn run(connection: &mut PgConnection, rule: &Rule) -> sqlx::Result<Check> {
    let Rule { name, rows: looked_at, wrong } = rule;
    let statement = format!(
        "WITH wrong AS MATERIALIZED ({wrong})
        SELECT (SELECT count(*) FROM {looked_at}), (SELECT count(*) FROM wrong),
               ARRAY(SELECT finding FROM wrong LIMIT {SHOWN})"
    );
    let query = sqlx::query_as(AssertSqlSafe(statement));
    let (looked_at, wrong, findings): (i64, i64, Vec<String>) = query.fetch_one(connection).await?;
    Ok(Check { name, looked_at: rows::count_of(looked_at)?, wrong: rows::count_of(wrong)?, findings })
}
