//! Names to addresses, judged on the way: what a connection is made to is what was judged, so that a name which answers
//! differently the second time (DNS rebinding) gains nothing.
//!
//! Addresses that stand in the URL itself never come here; they are judged before the request.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use sluice_harness::Fut;

use super::address::{PrivateHosts, not_public};

/// Looks a name up; the machine's own resolver outside tests.
pub(super) trait Lookup: Send + Sync + 'static {
    /// Its addresses; ports mean nothing.
    fn lookup(&self, name: String) -> Fut<'static, io::Result<Vec<SocketAddr>>>;
}

/// The machine's own resolver.
pub(super) struct System;

impl Lookup for System {
    fn lookup(&self, name: String) -> Fut<'static, io::Result<Vec<SocketAddr>>> {
        Box::pin(async move { Ok(tokio::net::lookup_host((name.as_str(), 0)).await?.collect()) })
    }
}

/// A name that stands for no public address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) host: String,
    pub(super) why: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.host, self.why)
    }
}

impl std::error::Error for Refused {}

/// A resolver that answers with judged addresses alone.
pub(super) struct Judging<L> {
    private: Arc<PrivateHosts>,
    lookup: L,
}

impl<L: Lookup> Judging<L> {
    pub(super) fn new(private: Arc<PrivateHosts>, lookup: L) -> Self {
        Self { private, lookup }
    }
}

impl<L: Lookup> Resolve for Judging<L> {
    fn resolve(&self, name: Name) -> Resolving {
        let host = name.as_str().to_owned();
        let looking = self.lookup.lookup(host.clone());
        let private = Arc::clone(&self.private);
        Box::pin(async move {
            let found = looking.await?;
            let judged = if private.hold(&host) { found } else { judge(&host, found)? };
            let addresses: Addrs = Box::new(judged.into_iter());
            Ok(addresses)
        })
    }
}

/// The public ones of these addresses.
fn judge(host: &str, found: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, Refused> {
    let mut why = None;
    let public: Vec<SocketAddr> = found
        .into_iter()
        .filter(|address| match not_public(address.ip()) {
            Some(what) => {
                why.get_or_insert(format!("stands for {}, {what}", address.ip()));
                false
            }
            None => true,
        })
        .collect();
    match why {
        Some(why) if public.is_empty() => Err(Refused { host: host.to_owned(), why }),
        _ => Ok(public),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use std::sync::Mutex;

    use super::*;

    /// Answers in turn, as a name does whose owner changes it between two questions.
    struct Changing(Mutex<Vec<&'static [&'static str]>>);

    impl Lookup for Changing {
        fn lookup(&self, _name: String) -> Fut<'static, io::Result<Vec<SocketAddr>>> {
            let answer = self.0.lock().unwrap().remove(0);
            let addresses = answer.iter().map(|text| SocketAddr::new(text.parse().unwrap(), 0)).collect();
            Box::pin(std::future::ready(Ok(addresses)))
        }
    }

    async fn answers(private: PrivateHosts, turns: &[&'static [&'static str]]) -> Vec<Result<Vec<String>, String>> {
        let resolver = Judging::new(Arc::new(private), Changing(Mutex::new(turns.to_vec())));
        let mut seen = Vec::new();
        for _ in turns {
            let answer = resolver.resolve("rebind.example".parse().unwrap()).await;
            seen.push(match answer {
                Ok(addresses) => Ok(addresses.map(|address| address.ip().to_string()).collect()),
                Err(fault) => Err(fault.downcast::<Refused>().unwrap().to_string()),
            });
        }
        seen
    }

    #[tokio::test]
    async fn r_442_each_answer_of_a_name_is_judged_and_only_judged_addresses_are_connected_to() {
        let turns: &[&[&str]] = &[&["93.184.216.34"], &["127.0.0.1"], &["10.0.0.1", "8.8.8.8"]];
        let seen = answers(PrivateHosts::none(), turns).await;
        assert_eq!(seen[0], Ok(vec!["93.184.216.34".to_owned()]));
        assert_eq!(seen[1], Err("rebind.example stands for 127.0.0.1, a loopback address".to_owned()));
        assert_eq!(seen[2], Ok(vec!["8.8.8.8".to_owned()]), "only what is public of it");
        let seen = answers(PrivateHosts::these(["rebind.example"]), &[&["127.0.0.1"]]).await;
        assert_eq!(seen[0], Ok(vec!["127.0.0.1".to_owned()]));
    }
}
