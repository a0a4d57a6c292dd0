//! Search services: what is asked, what is read, what is said of failures, and a key that nobody else sees.

use std::time::Duration;

use sluice_harness::cancel::{Cancel, CancelCause};
use sluice_harness::seam::web::{MOST_SOURCES, Provider as _, SearchProvider as _, Source, WebFault, WebQuery};
use sluice_providers::secret::Secret;
use sluice_providers::web::{ProxySettings, SearchConfig, SearchKind, WebSearch};

use crate::server::{Act, Server, json_answer};

const KEY: &str = "search-key-5f2d1c0b9a88";

fn service(kind: SearchKind, server: &Server, key: Option<&str>) -> WebSearch {
    WebSearch::new(SearchConfig {
        name: "mine".to_owned(),
        kind,
        base_url: server.url(),
        key: key.map(|key| Ok(Secret::new(key))),
        proxies: ProxySettings::default(),
    })
    .unwrap()
}

fn query(text: &str) -> WebQuery {
    WebQuery { text: text.to_owned(), ..WebQuery::default() }
}

async fn search(service: &WebSearch, query: &WebQuery) -> Result<Vec<Source>, WebFault> {
    service.search(query, &Cancel::new()).await
}

#[tokio::test]
async fn searxng_is_asked_for_json_and_needs_no_key() {
    let body = r#"{"query":"q","results":[
        {"title":"One","url":"https://a.org/1","content":"first  page","engine":"x"},
        {"title":"","url":"https://b.org/2"}],"unresponsive_engines":[]}"#;
    let server = Server::start(vec![json_answer(200, &[], body)]);
    let service = service(SearchKind::SearXng, &server, None);
    assert_eq!(service.unusable(), None);
    let found = search(&service, &query("rust & más")).await.unwrap();
    let source = |title: &str, url: &str, snippet: &str| Source {
        title: title.to_owned(),
        url: url.to_owned(),
        snippet: snippet.to_owned(),
    };
    assert_eq!(
        found,
        [source("One", "https://a.org/1", "first page"), source("https://b.org/2", "https://b.org/2", "")]
    );
    assert_eq!(server.requests()[0].line, "GET /v1/search?q=rust+%26+m%C3%A1s&format=json HTTP/1.1");
}

#[tokio::test]
async fn brave_gets_its_key_in_its_own_header_and_an_empty_answer_is_no_failure() {
    let body = r#"{"type":"search","web":{"results":[
        {"title":"One","url":"https://a.org/1","description":"the <strong>first</strong> page"}]}}"#;
    let server = Server::start(vec![json_answer(200, &[], body), json_answer(200, &[], r#"{"type":"search"}"#)]);
    let service = service(SearchKind::Brave, &server, Some(KEY));
    let found = search(&service, &query("q")).await.unwrap();
    assert_eq!(found[0].snippet, "the first page");
    assert_eq!(search(&service, &query("q")).await.unwrap(), []);
    let seen = &server.requests()[0];
    assert_eq!(seen.line, "GET /v1/res/v1/web/search?q=q&count=20 HTTP/1.1");
    assert_eq!(seen.header("x-subscription-token"), Some(KEY));
}

#[tokio::test]
async fn tavily_is_told_the_domains_in_its_own_members() {
    let body = r#"{"results":[{"title":"One","url":"https://a.org/1","content":"c","score":0.5}]}"#;
    let server = Server::start(vec![json_answer(200, &[], body)]);
    let service = service(SearchKind::Tavily, &server, Some(KEY));
    let asked = WebQuery { allowed_domains: vec!["a.org".to_owned()], ..query("q") };
    assert_eq!(search(&service, &asked).await.unwrap().len(), 1);
    let seen = &server.requests()[0];
    assert_eq!(seen.line, "POST /v1/search HTTP/1.1");
    assert_eq!(seen.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    let body: serde_json::Value = serde_json::from_str(&seen.body).unwrap();
    assert_eq!((&body["query"], &body["include_domains"][0]), (&"q".into(), &"a.org".into()));
}

#[tokio::test]
async fn r_468_domains_are_kept_to_and_at_most_so_many_sources_come_back() {
    let results: Vec<String> = (0..15)
        .map(|n| format!(r#"{{"title":"t{n}","url":"https://w{n}.{}.org/"}}"#, if n % 5 == 0 { "bad" } else { "good" }))
        .collect();
    let body = format!(r#"{{"results":[{},{{"title":"x","url":"no url"}}]}}"#, results.join(","));
    let server = Server::start(vec![json_answer(200, &[], &body); 3]);
    let service = service(SearchKind::SearXng, &server, None);
    assert_eq!(search(&service, &query("q")).await.unwrap().len(), MOST_SOURCES);
    let blocked = WebQuery { blocked_domains: vec!["good.org".to_owned()], ..query("q") };
    assert_eq!(search(&service, &blocked).await.unwrap().len(), 3);
    let allowed = WebQuery { allowed_domains: vec!["w5.bad.org".to_owned(), "w10.bad.org".to_owned()], ..query("q") };
    assert_eq!(search(&service, &allowed).await.unwrap().len(), 2);
    let line = &server.requests()[2].line;
    assert!(line.contains("q=q+site%3Aw5.bad.org+OR+site%3Aw10.bad.org&"), "{line}");
}

#[tokio::test]
async fn a_refusal_is_said_with_the_services_words_and_never_with_the_key() {
    let table: [(SearchKind, u16, &str, &str); 6] = [
        (SearchKind::Brave, 401, r#"{"error":"bad token search-key-5f2d1c0b9a88"}"#, "it refused the key (status 401)"),
        (SearchKind::Brave, 403, "", "it refused the key (status 403)"),
        (SearchKind::SearXng, 403, "", "search.formats"),
        (SearchKind::Tavily, 429, "slow down", "limit of requests is reached (status 429): slow down"),
        (SearchKind::SearXng, 404, "<html>", "check base_url"),
        (SearchKind::SearXng, 502, "", "it failed (status 502)"),
    ];
    for (kind, status, body, words) in table {
        let server = Server::start(vec![json_answer(status, &[], body)]);
        let fault = search(&service(kind, &server, Some(KEY)), &query("q")).await.unwrap_err();
        assert_eq!(fault.code(), "WEB_BAD_RESPONSE");
        let text = fault.to_string();
        assert!(text.starts_with("the answer of the search provider `mine`") && text.contains(words), "{text}");
        assert!(!text.contains(KEY), "{text}");
    }
}

#[tokio::test]
async fn an_answer_of_another_shape_is_said() {
    let server = Server::start(vec![json_answer(200, &[], "<html>"), json_answer(200, &[], r#"{"items":[]}"#)]);
    let service = service(SearchKind::SearXng, &server, None);
    for _ in 0..2 {
        let fault = search(&service, &query("q")).await.unwrap_err();
        assert!(fault.to_string().contains("not what such a service answers"), "{fault}");
    }
}

#[tokio::test]
async fn a_missing_key_makes_a_service_unusable() {
    let server = Server::start(Vec::new());
    assert!(service(SearchKind::Brave, &server, None).unusable().unwrap().contains("api_key_env"));
    assert_eq!(service(SearchKind::Brave, &server, Some(KEY)).unusable(), None);
}

#[tokio::test]
async fn r_468_a_search_ends_at_its_limit_and_with_its_signal() {
    let server = Server::start(vec![vec![Act::HoldOpen]]);
    let quick = service(SearchKind::SearXng, &server, None).within(Duration::from_millis(300));
    assert_eq!(search(&quick, &query("q")).await.unwrap_err().code(), "WEB_TIMEOUT");
    server.wait_closed().await;
    let server = Server::start(vec![vec![Act::HoldOpen]]);
    let (service, cancel, query) = (service(SearchKind::SearXng, &server, None), Cancel::new(), query("q"));
    let (done, ()) = tokio::join!(service.search(&query, &cancel), async {
        server.wait_request().await;
        cancel.cancel(CancelCause::User);
    });
    assert_eq!(done.unwrap_err().code(), "WEB_ABORTED");
}
