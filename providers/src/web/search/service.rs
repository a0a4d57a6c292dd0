//! What each service is asked, and how its answer is read; as their public documentations describe them.
//!
//! More sources are asked for than are shown, because domains are filtered here whatever a service makes of them.

use reqwest::header::{ACCEPT, HeaderValue};
use reqwest::{Client, RequestBuilder, Url};
use serde::Deserialize;
use serde_json::json;
use sluice_harness::seam::web::{Source, WebQuery};

use super::SearchKind;
use crate::secret::Secret;

/// How many sources are asked for.
const ASKED: usize = 20;

/// The request for a query.
pub(super) fn request(
    kind: SearchKind,
    client: &Client,
    base: &Url,
    key: Option<&Secret>,
    query: &WebQuery,
) -> Result<RequestBuilder, String> {
    let at = |path: &str| {
        let mut url = base.clone();
        let above = url.path().trim_end_matches('/').to_owned();
        url.set_path(&format!("{above}/{path}"));
        url
    };
    let secret = |text: String| {
        let mut value = HeaderValue::from_str(&text).map_err(|_| "its key has characters that no header can carry")?;
        value.set_sensitive(true);
        Ok::<_, String>(value)
    };
    let asked = |url: Url, words: &[(&str, &str)]| {
        let mut url = url;
        url.query_pairs_mut().extend_pairs(words);
        client.get(url).header(ACCEPT, "application/json")
    };
    Ok(match kind {
        SearchKind::SearXng => {
            let request = asked(at("search"), &[("q", &with_sites(query)), ("format", "json")]);
            match key {
                Some(key) => request.header("authorization", secret(format!("Bearer {}", key.expose()))?),
                None => request,
            }
        }
        SearchKind::Brave => {
            let words = with_sites(query);
            let request = asked(at("res/v1/web/search"), &[("q", &words), ("count", &ASKED.to_string())]);
            match key {
                Some(key) => request.header("x-subscription-token", secret(key.expose().to_owned())?),
                None => request,
            }
        }
        SearchKind::Tavily => {
            let body = json!({
                "query": query.text, "max_results": ASKED,
                "include_domains": query.allowed_domains, "exclude_domains": query.blocked_domains,
            });
            let request = client.post(at("search")).json(&body);
            match key {
                Some(key) => request.header("authorization", secret(format!("Bearer {}", key.expose()))?),
                None => request,
            }
        }
    })
}

/// The words with the allowed domains as engines understand them.
fn with_sites(query: &WebQuery) -> String {
    let sites: Vec<String> = query.allowed_domains.iter().map(|domain| format!("site:{}", domain.trim())).collect();
    if sites.is_empty() { query.text.clone() } else { format!("{} {}", query.text, sites.join(" OR ")) }
}

#[derive(Deserialize)]
struct Flat {
    results: Vec<Found>,
}

#[derive(Deserialize)]
struct Brave {
    /// Left out where nothing was found.
    web: Option<Flat>,
}

#[derive(Deserialize)]
struct Found {
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    url: Option<String>,
    #[serde(default, alias = "description")]
    content: Option<String>,
}

/// The sources of an answer.
pub(super) fn sources(kind: SearchKind, body: &[u8]) -> Result<Vec<Source>, String> {
    let wrong = |error: serde_json::Error| format!("it is not what such a service answers ({error})");
    let found = match kind {
        SearchKind::SearXng | SearchKind::Tavily => serde_json::from_slice::<Flat>(body).map_err(wrong)?.results,
        SearchKind::Brave => {
            serde_json::from_slice::<Brave>(body).map_err(wrong)?.web.map(|web| web.results).unwrap_or_default()
        }
    };
    // One without an address leads nowhere.
    let source = |found: Found| {
        let url = found.url?;
        Some(Source {
            title: plain(&found.title.filter(|title| !title.trim().is_empty()).unwrap_or_else(|| url.clone())),
            snippet: plain(&found.content.unwrap_or_default()),
            url,
        })
    };
    Ok(found.into_iter().filter_map(source).collect())
}

/// One line without the marks that services put around found words.
fn plain(text: &str) -> String {
    let bare = text.replace("<strong>", "").replace("</strong>", "");
    bare.split_whitespace().collect::<Vec<_>>().join(" ")
}
