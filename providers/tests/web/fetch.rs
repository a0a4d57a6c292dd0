//! One page: its text, its redirects, its limits.

use std::time::Duration;

use sluice_harness::cancel::{Cancel, CancelCause};
use sluice_harness::seam::web::{FetchProvider as _, Fetched, LARGEST_BODY, MOST_REDIRECTS, WebFault};
use sluice_providers::web::{HttpFetch, PrivateHosts, ProxySettings};

use crate::server::{Act, Server};

fn answer(status: &str, headers: &[&str], body: &[u8]) -> Vec<Act> {
    let mut head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n", body.len());
    for header in headers {
        head.push_str(&format!("{header}\r\n"));
    }
    vec![Act::Send(format!("{head}\r\n").into_bytes()), Act::Send(body.to_vec()), Act::Close]
}

fn html(body: &str) -> Vec<Act> {
    answer("200 OK", &["content-type: text/html; charset=utf-8"], body.as_bytes())
}

fn redirect(to: &str) -> Vec<Act> {
    answer("302 Found", &[&format!("location: {to}")], b"")
}

fn fetcher() -> HttpFetch {
    HttpFetch::new(PrivateHosts::these(["127.0.0.1"]), ProxySettings::default())
}

async fn fetch(url: &str) -> Result<Fetched, WebFault> {
    fetcher().fetch(url, &Cancel::new()).await
}

fn code(fetched: &Result<Fetched, WebFault>) -> &'static str {
    fetched.as_ref().err().map_or("fine", WebFault::code)
}

#[tokio::test]
async fn a_page_comes_as_markdown_with_its_facts() {
    let server = Server::start(vec![html("<h1>Hi</h1><p>a <em>b</em></p>")]);
    let fetched = fetch(&format!("{}/page?q=1#part", server.url())).await.unwrap();
    assert_eq!((fetched.code, fetched.code_text.as_str(), fetched.bytes), (200, "OK", 30));
    assert_eq!((fetched.text.as_str(), fetched.moved_to), ("# Hi\n\na *b*", None));
    let seen = server.requests();
    assert_eq!(seen[0].line, "GET /v1/page?q=1 HTTP/1.1", "the fragment stays here");
    assert!(seen[0].header("user-agent").unwrap().starts_with("sluice/"));
    assert_eq!((seen[0].header("cookie"), seen[0].header("authorization")), (None, None));
}

#[tokio::test]
async fn r_441_any_status_is_a_result() {
    let server = Server::start(vec![
        answer("404 Not Found", &["content-type: text/plain"], b"no such page"),
        answer("500 Oops", &["content-type: image/png"], b"\x89PNG"),
        answer("204 No Content", &[], b""),
    ]);
    let missing = fetch(&server.url()).await.unwrap();
    assert_eq!((missing.code, missing.text.as_str()), (404, "no such page"));
    let broken = fetch(&server.url()).await.unwrap();
    assert_eq!((broken.code, broken.text.as_str(), broken.notes.len()), (500, "", 1));
    assert_eq!(fetch(&server.url()).await.unwrap().code, 204);
}

#[tokio::test]
async fn r_441_redirects_are_followed_on_the_site_and_so_often() {
    let hops = |many: usize| (0..many).map(|n| redirect(&format!("/hop{n}"))).chain([html("there")]).collect();
    let server = Server::start(hops(MOST_REDIRECTS));
    let fetched = fetch(&server.url()).await.unwrap();
    assert_eq!(fetched.text, "there");
    assert!(fetched.url.ends_with("/hop4"), "{}", fetched.url);
    let server = Server::start(hops(MOST_REDIRECTS + 1));
    assert_eq!(code(&fetch(&server.url()).await), "WEB_TOO_MANY_REDIRECTS");
    assert_eq!(server.requests().len(), MOST_REDIRECTS + 1);
}

#[tokio::test]
async fn r_441_a_redirect_to_another_site_is_the_result_and_nothing_is_asked_there() {
    let other = Server::start(vec![html("secret")]);
    let server = Server::start(vec![
        redirect(&format!("{}/inner", other.url())),
        redirect("http://169.254.169.254/latest/meta-data"),
        redirect("file:///etc/passwd"),
    ]);
    for expected in [format!("{}/inner", other.url()), "http://169.254.169.254/latest/meta-data".to_owned()] {
        let fetched = fetch(&server.url()).await.unwrap();
        assert_eq!((fetched.code, fetched.moved_to), (302, Some(expected)));
    }
    assert_eq!(fetch(&server.url()).await.unwrap().moved_to.as_deref(), Some("file:///etc/passwd"));
    assert_eq!(other.requests().len(), 0);
}

#[tokio::test]
async fn r_441_what_is_no_text_is_refused() {
    let server = Server::start(vec![
        answer("200 OK", &["content-type: application/pdf"], b"%PDF"),
        answer("200 OK", &[], b"\x7fELF\0\0"),
        answer("200 OK", &["content-type: text/html", "content-encoding: gzip"], b"\x1f\x8b"),
    ]);
    let refused = fetch(&server.url()).await;
    assert!(refused.as_ref().unwrap_err().to_string().ends_with("is application/pdf, not text"), "{refused:?}");
    assert_eq!(code(&refused), "WEB_UNSUPPORTED_TYPE");
    assert_eq!(code(&fetch(&server.url()).await), "WEB_UNSUPPORTED_TYPE");
    assert_eq!(code(&fetch(&server.url()).await), "WEB_BAD_RESPONSE");
}

#[tokio::test]
async fn r_441_a_body_beyond_the_limit_is_refused_announced_or_not() {
    let large = vec![b'a'; LARGEST_BODY + 1];
    let unannounced = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n".to_vec();
    let server = Server::start(vec![
        answer("200 OK", &["content-type: text/plain"], &large),
        vec![Act::Send(unannounced), Act::Send(large.clone()), Act::Close],
        answer("200 OK", &["content-type: text/plain"], &large[1..]),
    ]);
    assert_eq!(code(&fetch(&server.url()).await), "WEB_TOO_LARGE");
    assert_eq!(code(&fetch(&server.url()).await), "WEB_TOO_LARGE");
    let whole = fetch(&server.url()).await.unwrap();
    assert_eq!((whole.bytes, whole.text.len()), (LARGEST_BODY, 100_000));
}

#[tokio::test]
async fn r_441_a_server_that_says_nothing_is_given_up_after_the_limit() {
    let server = Server::start(vec![vec![Act::HoldOpen]]);
    let quick = fetcher().within(Duration::from_millis(300));
    let done = quick.fetch(&server.url(), &Cancel::new()).await;
    assert_eq!(code(&done), "WEB_TIMEOUT");
    server.wait_closed().await;
}

#[tokio::test]
async fn cancelling_drops_the_request_also_while_its_body_comes() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\nbegun".to_vec();
    let server = Server::start(vec![vec![Act::Send(head), Act::HoldOpen]]);
    let cancel = Cancel::new();
    let (fetcher, url) = (fetcher(), server.url());
    let (done, ()) = tokio::join!(fetcher.fetch(&url, &cancel), async {
        server.wait_request().await;
        cancel.cancel(CancelCause::User);
    });
    assert_eq!(code(&done), "WEB_ABORTED");
    server.wait_closed().await;
}

#[tokio::test]
async fn r_442_what_is_not_public_is_refused_before_anything_is_sent() {
    let server = Server::start(vec![html("secret")]);
    let port = server.url().trim_end_matches("/v1").rsplit(':').next().unwrap().to_owned();
    let public = HttpFetch::new(PrivateHosts::none(), ProxySettings::default());
    for host in ["127.0.0.1", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "localhost"] {
        let refused = public.fetch(&format!("http://{host}:{port}/"), &Cancel::new()).await;
        assert_eq!(code(&refused), "WEB_ADDRESS_BLOCKED", "{host}: {refused:?}");
        assert!(refused.unwrap_err().to_string().contains("web.private_hosts"));
    }
    assert_eq!(server.requests().len(), 0);
}

#[tokio::test]
async fn r_442_a_host_that_the_user_allows_is_fetched_by_its_name() {
    let server = Server::start(vec![html("mine")]);
    let url = server.url().replace("127.0.0.1", "localhost");
    let mine = HttpFetch::new(PrivateHosts::these(["localhost"]), ProxySettings::default());
    assert_eq!(mine.fetch(&url, &Cancel::new()).await.unwrap().text, "mine");
}

#[tokio::test]
async fn r_442_through_a_proxy_private_addresses_and_names_stay_refused() {
    let proxy = Server::start(vec![html("by proxy")]);
    let address = proxy.url().trim_end_matches("/v1").to_owned();
    let by_proxy = HttpFetch::new(PrivateHosts::none(), ProxySettings { all: address, ..ProxySettings::default() });
    for host in ["127.0.0.1", "localhost", "metadata.google.internal", "intranet", "169.254.169.254"] {
        let refused = by_proxy.fetch(&format!("http://{host}/"), &Cancel::new()).await;
        assert_eq!(code(&refused), "WEB_ADDRESS_BLOCKED", "{host}: {refused:?}");
    }
    let fetched = by_proxy.fetch("http://example.com/x", &Cancel::new()).await.unwrap();
    assert_eq!(fetched.text, "by proxy");
    assert_eq!(proxy.requests()[0].line, "GET http://example.com/x HTTP/1.1");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_said() {
    let url = Server::start(Vec::new()).url();
    assert_eq!(code(&fetch(&url).await), "WEB_UNREACHABLE");
}
