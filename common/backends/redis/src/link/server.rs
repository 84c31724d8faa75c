//! Judges by the `INFO` of a server, without IO, whether Feedgate can use the server.

use feedgate_common::StoreError;
use feedgate_common::error::Result;

/// Judges a server by its `INFO`. Answers whether it is a node of a cluster.
///
/// # Errors
/// `Misconfigured` if the server is too old, or a replica outside a cluster.
pub(super) fn check(info: &str) -> Result<bool> {
    let field = |name: &str| field(info, name);
    let version = field("redis_version");
    if version.split('.').next().and_then(|major| major.parse().ok()).is_none_or(|major: u32| major < 7) {
        let wanted = format_args!("Redis is version {version:?}; Feedgate needs 7.0 or later");
        return Err(StoreError::misconfigured(wanted));
    }
    let cluster = field("cluster_enabled") == "1";
    if field("role") != "master" && !cluster {
        let master = (field("master_host"), field("master_port"));
        return Err(StoreError::misconfigured(format_args!(
            "inbox_url names a replica; it must name its master, {}:{}",
            master.0, master.1
        )));
    }
    Ok(cluster)
}

/// Warns if one of the servers with these `INFO`s throws keys away when its memory is full.
pub(super) fn warn_of_eviction(infos: &[String]) {
    if let Some((policy, port)) = evicting(infos) {
        tracing::warn!(
            policy,
            port,
            "Redis may evict inboxes: nothing is lost, but each is rebuilt from the Archive and its devices are reset; \
             set maxmemory-policy to noeviction"
        );
    }
}

/// The policy and the port of the first server that may evict keys.
fn evicting(infos: &[String]) -> Option<(&str, &str)> {
    let policies = infos.iter().map(|info| (field(info, "maxmemory_policy"), field(info, "tcp_port")));
    policies.into_iter().find(|(policy, _)| *policy != "noeviction")
}

fn field<'a>(info: &'a str, name: &str) -> &'a str {
    let value = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    value.map(str::trim).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(version: &str, role: &str, cluster: &str) -> String {
        format!(
            "# Server\r\nredis_version:{version}\r\n# Memory\r\nmaxmemory_policy:noeviction\r\n# Replication\r\nrole:{role}\r\n\
             master_host:10.0.0.1\r\nmaster_port:6379\r\n# Cluster\r\ncluster_enabled:{cluster}\r\n"
        )
    }

    #[test]
    fn each_master_of_a_cluster_is_asked_whether_it_evicts() {
        let right = info("7.0.15", "master", "1");
        assert_eq!(evicting(&[right.clone(), right.clone()]), None);
        let other = right.replace("noeviction", "allkeys-lru").replace("# Memory", "tcp_port:7001\r\n# Memory");
        assert_eq!(evicting(&[right, other]), Some(("allkeys-lru", "7001")));
    }

    #[test]
    fn a_server_that_is_too_old_or_a_replica_is_refused_by_name() {
        assert!(!check(&info("7.0.15", "master", "0")).unwrap());
        assert!(check(&info("10.2.0", "master", "1")).unwrap());
        for (info, words) in [
            (info("6.2.14", "master", "0"), "7.0 or later"),
            (info("", "master", "0"), "7.0 or later"),
            (info("7.2.0", "slave", "0"), "its master, 10.0.0.1:6379"),
        ] {
            let refused = check(&info).unwrap_err();
            assert!(matches!(&refused, StoreError::Misconfigured(why) if why.contains(words)), "{refused}");
        }
    }
}
