//! What `POST /api/v1/upscales` accepts, and which fault it names.

use crate::harness::{App, IMAGE, image_body, with_app};

#[tokio::test]
async fn an_accepted_create_is_202_with_exactly_the_contracts_processing_task() {
    with_app(async |app: &App| {
        let answer = app.create("create-first-1", &image_body("")).send().await;
        answer.expect(202, "");
        let id = answer.json()["id"].as_str().unwrap().to_owned();
        let url = format!("http://{}/api/v1/upscales/{id}", app.api);
        let expected = format!(
            r#"{{"id":"{id}","object":"upscale","status":"processing","urls":{{"get":"{url}"}},"usage":{{"credits_reserved":0.7,"credits_charged":0}}}}"#
        );
        assert_eq!(answer.text(), expected);
        assert!(id.starts_with("ups_") && id.len() == 30);
        assert_eq!(answer.header("location"), Some(url.as_str()));
        assert_eq!(answer.header("idempotent-replayed"), None);
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        assert_eq!(answer.number("retry-after"), 3);
        let account = app.account_now().await;
        assert_eq!(account.reserved.to_string(), "0.7");
        assert_eq!(account.available.to_string(), "99.3");
    })
    .await;
}

#[tokio::test]
async fn every_order_of_the_contract_is_accepted() {
    with_app(async |app: &App| {
        for (number, more) in [
            "",
            r#","scale":2"#,
            r#","scale":4"#,
            r#","scale":2.0"#,
            r#","face_enhance":true"#,
            r#","output_format":"png","scale":4,"face_enhance":false"#,
        ]
        .iter()
        .enumerate()
        {
            let key = format!("every-order-{number}");
            let answer = app.create(&key, &image_body(more)).send().await;
            answer.expect(202, "");
        }
        let typed = app
            .create("typed-in-full", &image_body(""))
            .headers("content-type", &[b"Application/JSON; charset=UTF-8"]);
        typed.send().await.expect(202, "");
    })
    .await;
}

#[tokio::test]
async fn each_fault_of_the_body_has_its_code_and_reserves_nothing() {
    with_app(async |app: &App| {
        for (body, code) in [
            (String::new(), "invalid_json"),
            ("[]".to_owned(), "invalid_json"),
            (image_body(r#","scale":2,"scale":2"#), "invalid_json"),
            (image_body("") + "x", "invalid_json"),
            (image_body(r#","quality":1"#), "unknown_parameter"),
            (
                image_body(r#","callback_url":"https://a.org""#),
                "callback_not_supported",
            ),
            (image_body(r#","webhook":null"#), "callback_not_supported"),
            ("{}".to_owned(), "missing_image_url"),
            (image_body(r#","scale":3"#), "invalid_scale"),
            (image_body(r#","scale":"2""#), "invalid_scale"),
            (image_body(r#","scale":null"#), "invalid_scale"),
            (image_body(r#","face_enhance":1"#), "invalid_face_enhance"),
            (
                image_body(r#","output_format":"webp""#),
                "invalid_output_format",
            ),
            (
                r#"{"image_url":"http://a.org/a.png"}"#.to_owned(),
                "invalid_image_url",
            ),
            (
                r#"{"image_url":"https://127.0.0.1/a.png"}"#.to_owned(),
                "invalid_image_url",
            ),
            (
                r#"{"image_url":"https://a.org/a.gif"}"#.to_owned(),
                "invalid_image_url",
            ),
            (r#"{"image_url":null}"#.to_owned(), "invalid_image_url"),
        ] {
            let answer = app.create("faulty-body-1", &body).send().await;
            answer.expect(400, code);
            assert_eq!(answer.json()["error"]["type"], "invalid_request_error");
            assert!(answer.header("x-ratelimit-remaining").is_some());
        }
        let account = app.account_now().await;
        assert_eq!(account.available.to_string(), "100");
        app.created("faulty-body-1").await;
    })
    .await;
}

#[tokio::test]
async fn the_messages_say_what_is_expected() {
    with_app(async |app: &App| {
        let answer = app
            .create("messages-1", &image_body(r#","scale":8"#))
            .send()
            .await;
        assert_eq!(answer.json()["error"]["message"], "scale must be 2 or 4.");
        let answer = app
            .create("messages-1", &image_body(r#","sclae":2"#))
            .send()
            .await;
        assert_eq!(
            answer.json()["error"]["message"],
            "Unknown parameter: sclae."
        );
    })
    .await;
}

#[tokio::test]
async fn the_idempotency_key_is_one_header_of_8_to_128_visible_characters() {
    with_app(async |app: &App| {
        let with = |values: &[&[u8]]| {
            app.create("unused-here", &image_body(""))
                .headers("idempotency-key", values)
        };
        with(&[])
            .send()
            .await
            .expect(400, "missing_idempotency_key");
        let long = [b'k'; 129];
        for values in [
            &[&b""[..]][..],
            &[b"seven-7"],
            &[&long],
            &[b"with space inside"],
            &[b"k\xc3\xa9y-in-utf-8"],
            &[b"twice-the-same", b"twice-the-same"],
        ] {
            with(values)
                .send()
                .await
                .expect(400, "invalid_idempotency_key");
        }
        with(&[b"eight-88"]).send().await.expect(202, "");
        with(&[&long[..128]]).send().await.expect(202, "");
    })
    .await;
}

#[tokio::test]
async fn the_media_type_must_be_json() {
    with_app(async |app: &App| {
        for values in [
            &[][..],
            &[&b"text/plain"[..]],
            &[b"application/x-www-form-urlencoded"],
        ] {
            let asking = app.create("media-type-1", &image_body(""));
            let answer = asking.headers("content-type", values).send().await;
            answer.expect(400, "invalid_content_type");
        }
    })
    .await;
}

#[tokio::test]
async fn a_packed_body_is_refused_by_the_name_of_its_header() {
    with_app(async |app: &App| {
        for (coding, status) in [
            ("gzip", 400),
            ("br", 400),
            ("gzip, identity", 400),
            ("identity", 202),
        ] {
            let asking = app.create(&format!("coding-{}", coding.len()), &image_body(""));
            let answer = asking.header("content-encoding", coding).send().await;
            assert_eq!(answer.status, status, "{coding}");
            if status == 400 {
                answer.expect(400, "invalid_content_type");
                let message = answer.json()["error"]["message"].to_string();
                assert!(message.contains("Content-Encoding"), "{message}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn of_several_faults_media_type_goes_before_body_before_key_before_address() {
    with_app(async |app: &App| {
        let all_wrong = r#"{"image_url":"ftp://x","scale":3}"#;
        let bad_address = r#"{"image_url":"ftp://x"}"#;
        let no_key: &[&[u8]] = &[];
        let asking = app.create("", all_wrong).headers("idempotency-key", no_key);
        let answer = asking.headers("content-type", &[b"text/html"]).send().await;
        answer.expect(400, "invalid_content_type");
        let asking = app.create("", all_wrong).headers("idempotency-key", no_key);
        asking.send().await.expect(400, "invalid_scale");
        let asking = app
            .create("", bad_address)
            .headers("idempotency-key", no_key);
        asking.send().await.expect(400, "missing_idempotency_key");
        let asking = app.create("short", bad_address);
        asking.send().await.expect(400, "invalid_idempotency_key");
        let asking = app.create("long-enough-1", bad_address);
        asking.send().await.expect(400, "invalid_image_url");
    })
    .await;
}

#[tokio::test]
async fn a_body_of_16_kib_is_read_and_one_byte_more_is_not() {
    with_app(async |app: &App| {
        let padded = |bytes: usize| {
            let body = image_body("");
            let padding = " ".repeat(bytes - body.len());
            body + &padding
        };
        app.create("largest-body-1", &padded(16_384))
            .send()
            .await
            .expect(202, "");
        app.create("largest-body-2", &padded(16_385))
            .send()
            .await
            .expect(400, "request_too_large");
        // The answer arrives although the client is still sending.
        app.create("largest-body-3", &padded(900_000))
            .send()
            .await
            .expect(400, "request_too_large");
    })
    .await;
}

#[tokio::test]
async fn the_image_url_is_kept_byte_for_byte() {
    with_app(async |app: &App| {
        let escaped = r#"{"image_url":"https:\/\/images.example.org/\u0061.png"}"#;
        let first = app.create("byte-for-byte-1", escaped).send().await;
        first.expect(202, "");
        let replay = app.create("byte-for-byte-1", &image_body("")).send().await;
        assert_eq!(
            replay.json()["id"],
            first.json()["id"],
            "JSON escapes are not the URL"
        );
        let other = format!(r#"{{"image_url":"{}"}}"#, IMAGE.replace("https", "HTTPS"));
        let conflict = app.create("byte-for-byte-1", &other).send().await;
        conflict.expect(409, "idempotency_conflict");
    })
    .await;
}
