"""What is tried again and what is not, against scripted answers."""

from __future__ import annotations

import asyncio
import hashlib
import time

import httpx
import pytest

from upscale_api import (
    ApiError,
    AsyncUpscale,
    Damaged,
    GaveUp,
    Patience,
    Unexpected,
    Unreachable,
    Upscale,
)

QUICK = Patience(total=20, request=5, first_poll=0.01, slowest_poll=0.02)
PNG = b"picture"
SHA256 = hashlib.sha256(PNG).hexdigest()
Answer = httpx.Response | httpx.HTTPError


def refusal(status: int, code: str, **headers: str) -> httpx.Response:
    error = {"type": "api_error", "code": code, "message": "m", "request_id": "req_1"}
    return httpx.Response(status, json={"error": error}, headers=headers)


def processing(status: int) -> httpx.Response:
    usage = {"credits_reserved": 0.7, "credits_charged": 0}
    body = {"id": "ups_1", "status": "processing", "urls": {"get": "u"}, "usage": usage}
    return httpx.Response(status, json=body)


def succeeded(sha256: str = SHA256) -> httpx.Response:
    result = {"url": "https://files.example.com/1.png", "format": "png"}
    body = {"id": "ups_1", "status": "succeeded", "result": result, "usage": {"credits_charged": 0.7}}
    return httpx.Response(200, json=body, headers={"X-Result-SHA256": sha256})


def png(bytes_: bytes = PNG) -> httpx.Response:
    return httpx.Response(200, content=bytes_)


def scripted(*answers: Answer, patience: Patience = QUICK) -> tuple[Upscale, list[httpx.Request]]:
    """A client whose network gives these answers in turn."""
    left, seen = list(answers), []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        following = left.pop(0)
        if isinstance(following, httpx.HTTPError):
            raise following
        return following

    client = Upscale("https://api.example.com/", api_key="usk_live_x", patience=patience)
    transport = httpx.MockTransport(answer)
    client._api = httpx.Client(transport=transport, headers=client._api.headers)
    client._files = httpx.Client(transport=transport)
    return client, seen


def order(client: Upscale) -> bytes:
    return client.upscale("https://images.example.com/a.png", scale=4).download()


def test_a_lost_create_is_sent_again_under_the_same_key() -> None:
    client, seen = scripted(
        refusal(503, "service_unavailable"),
        httpx.ReadTimeout("lost"),
        processing(202),
        refusal(504, "upstream_timeout"),
        processing(200),
        succeeded(),
        png(),
    )
    assert order(client) == PNG
    keys = {request.headers["Idempotency-Key"] for request in seen[:3]}
    assert len(keys) == 1
    assert all(request.headers["Authorization"] == "Bearer usk_live_x" for request in seen[:6])
    assert "Authorization" not in seen[6].headers


def test_a_limit_is_waited_for_as_long_as_the_service_says() -> None:
    client, seen = scripted(refusal(429, "rate_limit_exceeded", **{"Retry-After": "1"}), processing(202))
    began = time.monotonic()
    client.create("https://images.example.com/a.png")
    assert time.monotonic() - began >= 1
    assert len(seen) == 2


def test_a_limit_longer_than_patience_is_said_at_once() -> None:
    client, seen = scripted(refusal(429, "daily_limit_exceeded", **{"Retry-After": "43200"}))
    with pytest.raises(ApiError, match="daily_limit_exceeded"):
        order(client)
    assert len(seen) == 1


@pytest.mark.parametrize("status", [400, 401, 402, 403, 409])
def test_what_will_not_change_is_not_tried_again(status: int) -> None:
    client, seen = scripted(refusal(status, "some_code"))
    with pytest.raises(ApiError) as refused:
        order(client)
    assert (refused.value.status, len(seen)) == (status, 1)


def test_giving_up_keeps_the_id() -> None:
    patience = Patience(total=0.05, request=5, first_poll=0.1, slowest_poll=0.1)
    client, _ = scripted(processing(202), patience=patience)
    with pytest.raises(GaveUp) as gave_up:
        order(client)
    assert gave_up.value.task_id == "ups_1"


def test_an_unknown_status_and_a_strange_answer_are_errors() -> None:
    paused = httpx.Response(200, json={"id": "ups_1", "status": "paused", "usage": {"credits_charged": 0}})
    for strange in (
        paused,
        httpx.Response(200, text="<html>"),
        httpx.Response(200, json=[]),
        processing(204),
    ):
        client, _ = scripted(processing(202), strange)
        with pytest.raises(Unexpected):
            order(client)


def test_a_damaged_or_stale_download_is_fetched_again_with_a_new_link() -> None:
    client, seen = scripted(
        succeeded(), png(b"pict"), succeeded(), refusal(403, "result_url_expired"), succeeded(), png()
    )
    assert client.read("ups_1").download() == PNG
    assert len(seen) == 6


def test_a_result_that_stays_damaged_is_gone_or_cannot_be_checked_is_an_error() -> None:
    client, _ = scripted(succeeded(), *[answer for _ in range(4) for answer in (png(b"pict"), succeeded())])
    with pytest.raises(Damaged):
        client.read("ups_1").download()
    client, _ = scripted(succeeded(), refusal(410, "result_expired"))
    with pytest.raises(ApiError, match="result_expired"):
        client.read("ups_1").download()
    client, _ = scripted(succeeded("unknown"), png())
    with pytest.raises(Unexpected):
        client.read("ups_1").download()


def test_no_secret_stands_in_an_error() -> None:
    patience = Patience(total=0.2, request=5)
    client, _ = scripted(*[httpx.ConnectError("https://x/?signature=secret") for _ in range(20)], patience=patience)
    with pytest.raises(Unreachable) as unreachable:
        order(client)
    assert "secret" not in str(unreachable.value)


def test_what_can_never_work_is_refused_before_it_is_sent() -> None:
    for base in ("", "api.example.com", "ftp://api.example.com"):
        with pytest.raises(ValueError, match="address"):
            Upscale(base, api_key="k")
    with pytest.raises(ValueError, match="ASCII"):
        Upscale("https://api.example.com", api_key="bad\nkey")
    client, seen = scripted()
    with pytest.raises(ValueError, match="8 to 128"):
        client.create("https://images.example.com/a.png", idempotency_key="short")
    assert seen == []


def test_the_asynchronous_client_dances_alike() -> None:
    answers = [
        refusal(503, "service_unavailable"),
        processing(202),
        succeeded(),
        png(b"pict"),
        succeeded(),
        png(),
    ]
    transport = httpx.MockTransport(lambda _: answers.pop(0))

    async def run() -> bytes:
        async with AsyncUpscale("https://api.example.com", api_key="k", patience=QUICK) as client:
            client._api = httpx.AsyncClient(transport=transport)
            client._files = httpx.AsyncClient(transport=transport)
            return await (await client.upscale("https://images.example.com/a.png")).download()

    assert asyncio.run(run()) == PNG
