//! What a query is answered with that no page of ours wrote: values that are missing, malformed, unknown or given twice.
//! A page ignores what it cannot read, so each such query has the answer of another one, to the letter.

use crate::{
    console::browser::Page,
    harness::{App, with_app},
};

/// A query, and others that must have the same answer.
pub(crate) type Alike<'a> = (&'a str, &'a [&'a str]);

/// Asks for a page by every query. Those of one group are answered alike, those of different groups are not.
pub(crate) async fn check_queries(
    path: &str,
    groups: &[Alike<'_>],
    mut get: impl AsyncFnMut(&str) -> Page,
) {
    let mut shown_before: Vec<(String, [String; 3])> = Vec::new();
    for (query, alike) in groups {
        let first = format!("{path}?{query}");
        let expected = reported(&get(&first).await);
        for (other, reported) in &shown_before {
            assert_ne!(&expected, reported, "{first} and {other}");
        }
        for query in *alike {
            let same = format!("{path}?{query}");
            assert_eq!(reported(&get(&same).await), expected, "{same} and {first}");
        }
        shown_before.push((first, expected));
    }
}

/// What a page says, without what is made anew each time it is shown.
fn reported(page: &Page) -> [String; 3] {
    let mut text = page.text.clone();
    for made in ["nonce", "idempotency_key"] {
        let mark = format!("name=\"{made}\" value=\"");
        let mut parts = text.split(&mark);
        let mut kept = parts.next().unwrap().to_owned();
        parts.for_each(|part| kept += part.split_once('"').unwrap().1);
        text = kept;
    }
    for made in ["signature=", "secret\" value=\""] {
        assert!(!text.contains(made), "{made} is made anew each time");
    }
    [
        page.status.to_string(),
        page.header("location").to_owned(),
        text,
    ]
}

#[tokio::test]
async fn the_api_reads_no_query_and_minds_none() {
    with_app(async |app: &App| {
        let id = app.created("asked-with-queries").await;
        for query in ["", "x", "x=1&x=2", "%zz=%ff", "&&=", "id=1"] {
            for path in [
                format!("/api/v1/upscales/{id}"),
                "/openapi.json".to_owned(),
                "/clients".to_owned(),
                "/healthz".to_owned(),
                "/readyz".to_owned(),
            ] {
                let plain = app.request("GET", &path).send().await;
                let asked = app.request("GET", &format!("{path}?{query}")).send().await;
                assert_eq!(
                    (asked.status, asked.text()),
                    (200, plain.text()),
                    "{path}?{query}"
                );
            }
            let path = format!("/api/v1/upscales?{query}");
            app.request("GET", &path)
                .send()
                .await
                .expect(405, "method_not_allowed");
        }
    })
    .await;
}

#[tokio::test]
async fn a_result_url_holds_its_three_claims_in_any_order_and_nothing_else() {
    with_app(async |app: &App| {
        let id = app.created("asked-for-by-url").await;
        app.succeed_next(b"png").await;
        let url = app.read(&id).await.json()["result"]["url"].clone();
        let (path, query) = url.as_str().unwrap().split_once('?').unwrap();
        let mut claims: Vec<&str> = query.split('&').collect();
        claims.reverse();
        let turned = claims.join("&");
        let without_last = claims[1..].join("&");
        for (query, status) in [
            (query.to_owned(), 200),
            (turned, 200),
            (without_last, 404),
            (String::new(), 404),
            (format!("{query}&"), 404),
            (format!("&{query}"), 404),
            (format!("{query}&x"), 404),
            (format!("{query}&{query}"), 404),
            (query.replace("expires=", "%65xpires="), 404),
            (query.replace("expires=", "expires=x"), 404),
            (query.replace("signature=", "signature=%zz"), 404),
            (query.replace("key=", "key=%ff"), 404),
        ] {
            let answer = app.download("GET", &format!("{path}?{query}")).send().await;
            let code = if status == 200 { "" } else { "not_found" };
            answer.expect(status, code);
        }
    })
    .await;
}
