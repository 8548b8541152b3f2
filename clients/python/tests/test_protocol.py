"""What is tried again and what is not, against scripted answers."""

from __future__ import annotations

import asyncio
import hashlib
import pickle
import time
from pathlib import Path

import httpx
import pytest

from upscale_api import (
    APIConnectionError,
    APIStatusError,
    AsyncUpscale,
    AuthenticationError,
    BadRequestError,
    ChecksumError,
    ConflictError,
    FailedTask,
    Failure,
    GoneError,
    InsufficientCreditsError,
    InternalServerError,
    PermissionDeniedError,
    PollTimeoutError,
    ProcessingTask,
    RateLimitError,
    SucceededTask,
    TaskFailedError,
    UnexpectedResponseError,
    Upscale,
    UpscaleError,
    _protocol,
)

PNG = b"picture"
SHA256 = hashlib.sha256(PNG).hexdigest()
Answer = httpx.Response | httpx.HTTPError
HELD = {"Preference-Applied": "wait=20"}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scripted answers come at once, those of a service that holds requests as well."""
    monkeypatch.setattr(_protocol, "FIRST_POLL", 0.01)
    monkeypatch.setattr(_protocol, "SLOWEST_POLL", 0.02)
    monkeypatch.setattr(_protocol, "HELD_AT_LEAST", 0.0)


def refusal(status: int, code: str, **headers: str) -> httpx.Response:
    error = {"type": "api_error", "code": code, "message": "m", "request_id": "req_1"}
    return httpx.Response(status, json={"error": error}, headers=headers)


def processing(status: int, headers: dict[str, str] | None = None) -> httpx.Response:
    usage = {"credits_reserved": 0.7, "credits_charged": 0}
    body = {"id": "ups_1", "status": "processing", "urls": {"get": "u"}, "usage": usage}
    return httpx.Response(status, json=body, headers=headers)


def failed() -> httpx.Response:
    error = {"code": "image_processing_failed", "message": "No image. No credits were charged."}
    usage = {"credits_charged": 0, "refund_status": "refunded"}
    return httpx.Response(200, json={"id": "ups_1", "status": "failed", "error": error, "usage": usage})


def succeeded(sha256: str = SHA256) -> httpx.Response:
    result = {"url": "https://files.example.com/1.png?signature=secret", "format": "png"}
    body = {"id": "ups_1", "status": "succeeded", "result": result, "usage": {"credits_charged": 0.7}}
    return httpx.Response(200, json=body, headers={"X-Result-SHA256": sha256})


def succeeded_as(status: int) -> httpx.Response:
    answer = succeeded()
    answer.status_code = status
    return answer


def png(bytes_: bytes = PNG) -> httpx.Response:
    return httpx.Response(200, content=bytes_)


def scripted(*answers: Answer, timeout: float = 20, max_retries: int = 10) -> tuple[Upscale, list[httpx.Request]]:
    """A client whose network gives these answers in turn."""
    left, seen = list(answers), []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        following = left.pop(0)
        if isinstance(following, httpx.HTTPError):
            raise following
        return following

    client = Upscale("https://api.example.com/", api_key="usk_live_x", timeout=timeout, max_retries=max_retries)
    transport = httpx.MockTransport(answer)
    client.upscales._api = httpx.Client(transport=transport, headers=client._api.headers)
    client.upscales._files = httpx.Client(transport=transport)
    return client, seen


def run(client: Upscale) -> bytes:
    return client.upscales.download(client.upscales.run("https://images.example.com/a.png", scale=4))


def retrieved(client: Upscale) -> SucceededTask:
    task = client.upscales.retrieve("ups_1")
    assert task.status == "succeeded"
    return task


def test_a_lost_create_is_sent_again_under_the_same_key() -> None:
    client, seen = scripted(
        refusal(503, "service_unavailable"),
        httpx.ReadTimeout("lost"),
        processing(202, HELD),
        refusal(504, "upstream_timeout"),
        processing(200),
        succeeded(),
        png(),
    )
    assert run(client) == PNG
    keys = {request.headers["Idempotency-Key"] for request in seen[:3]}
    assert len(keys) == 1
    assert all(request.headers["Authorization"] == "Bearer usk_live_x" for request in seen[:6])
    assert "Authorization" not in seen[6].headers


def test_the_service_is_asked_to_hold_what_waits_and_nothing_else() -> None:
    client, seen = scripted(processing(202), processing(202, HELD), succeeded(), png(), succeeded(), timeout=9.5)
    task = client.upscales.create("https://images.example.com/a.png")
    assert isinstance(task, ProcessingTask)
    assert task.idempotency_key == seen[0].headers["Idempotency-Key"]
    assert run(client) == PNG
    assert client.upscales.wait(task).idempotency_key == task.idempotency_key
    waits = [request.headers.get("Prefer") for request in seen]
    assert waits == [None, "wait=9", "wait=9", None, "wait=9"]


def test_a_service_that_holds_nothing_is_asked_after_the_contracts_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_protocol, "FIRST_POLL", 0.3)
    monkeypatch.setattr(_protocol, "HELD_AT_LEAST", 5.0)
    # It says that it held the request, and answered at once: no reason to ask again without a pause.
    client, seen = scripted(processing(202, HELD), succeeded())
    began = time.monotonic()
    client.upscales.run("https://images.example.com/a.png")
    assert time.monotonic() - began >= 0.3
    assert len(seen) == 2


def test_a_limit_is_waited_for_as_long_as_the_service_says() -> None:
    client, seen = scripted(refusal(429, "rate_limit_exceeded", **{"Retry-After": "1"}), processing(202))
    began = time.monotonic()
    client.upscales.create("https://images.example.com/a.png")
    assert time.monotonic() - began >= 1
    assert len(seen) == 2


def test_a_limit_longer_than_the_timeout_is_said_at_once() -> None:
    client, seen = scripted(refusal(429, "daily_limit_exceeded", **{"Retry-After": "43200"}))
    with pytest.raises(RateLimitError, match="daily_limit_exceeded") as refused:
        run(client)
    assert refused.value.retry_after == 43200
    assert len(seen) == 1


def test_retries_end_with_their_number() -> None:
    client, seen = scripted(*[refusal(503, "service_unavailable") for _ in range(4)], max_retries=1)
    with pytest.raises(InternalServerError):
        run(client)
    assert len(seen) == 2


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, BadRequestError),
        (401, AuthenticationError),
        (402, InsufficientCreditsError),
        (403, PermissionDeniedError),
        (409, ConflictError),
    ],
)
def test_what_will_not_change_is_not_tried_again(status: int, kind: type[APIStatusError]) -> None:
    client, seen = scripted(refusal(status, "some_code"))
    with pytest.raises(kind) as refused:
        run(client)
    assert (refused.value.status, len(seen)) == (status, 1)
    assert refused.value.idempotency_key == seen[0].headers["Idempotency-Key"]


def test_a_timeout_keeps_the_id_and_the_key() -> None:
    client, seen = scripted(processing(202), timeout=0.005)
    with pytest.raises(PollTimeoutError) as late:
        run(client)
    assert late.value.task_id == "ups_1"
    assert late.value.idempotency_key == seen[0].headers["Idempotency-Key"]
    assert isinstance(late.value, TimeoutError)


def test_a_failed_task_is_an_error_where_it_was_waited_for_and_a_value_where_it_was_read() -> None:
    client, _ = scripted(processing(202, HELD), failed(), failed())
    with pytest.raises(TaskFailedError, match="No credits were charged") as error:
        run(client)
    assert error.value.failure.refund_status == "refunded"
    task = client.upscales.retrieve("ups_1")
    assert isinstance(task, FailedTask)
    assert task.failure.code == "image_processing_failed"


def test_an_unknown_status_and_a_strange_answer_are_errors() -> None:
    paused = httpx.Response(200, json={"id": "ups_1", "status": "paused", "usage": {"credits_charged": 0}})
    for strange in (
        paused,
        httpx.Response(200, text="<html>"),
        httpx.Response(200, json=[]),
        processing(204),
    ):
        client, _ = scripted(processing(202), strange)
        with pytest.raises(UnexpectedResponseError):
            run(client)


def test_a_damaged_or_stale_download_is_fetched_again_with_a_new_link() -> None:
    client, seen = scripted(
        succeeded(), png(b"pict"), succeeded(), refusal(403, "result_url_expired"), succeeded(), png()
    )
    assert client.upscales.download(retrieved(client)) == PNG
    assert len(seen) == 6


def test_a_result_that_stays_damaged_is_gone_or_cannot_be_checked_is_an_error() -> None:
    client, _ = scripted(succeeded(), *[answer for _ in range(4) for answer in (png(b"pict"), succeeded())])
    with pytest.raises(ChecksumError):
        client.upscales.download(retrieved(client))
    client, _ = scripted(succeeded(), refusal(410, "result_expired"))
    with pytest.raises(GoneError, match="result_expired"):
        client.upscales.download(retrieved(client))
    client, _ = scripted(succeeded("unknown"), png())
    with pytest.raises(UnexpectedResponseError):
        client.upscales.download(retrieved(client))


def test_a_result_is_written_to_a_file_whole_and_its_progress_is_told(tmp_path: Path) -> None:
    client, _ = scripted(succeeded(), png())
    told: list[tuple[int, int | None]] = []
    path = client.upscales.download(
        retrieved(client), tmp_path / "cat.png", on_progress=lambda come, of: told.append((come, of))
    )
    assert path.read_bytes() == PNG
    assert list(tmp_path.iterdir()) == [path]
    assert told[-1] == (len(PNG), len(PNG))


def test_progress_tells_of_each_reading() -> None:
    client, _ = scripted(processing(202, HELD), processing(200, HELD), succeeded())
    seen: list[str] = []
    client.upscales.run("https://images.example.com/a.png", on_progress=lambda task: seen.append(task.status))
    assert seen == ["processing", "processing", "succeeded"]


def test_many_come_as_they_end_each_with_its_address_and_failures_among_them() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        is_bad = b"bad" in request.content
        return refusal(400, "invalid_image_url") if is_bad else succeeded_as(202)

    client, _ = scripted()
    client.upscales._api = httpx.Client(transport=httpx.MockTransport(answer))
    urls = [f"https://images.example.com/{name}.png" for name in ("a", "bad", "b", "c")]
    outcomes = dict(client.upscales.run_many(urls, concurrency=2))
    assert list(sorted(outcomes)) == sorted(urls)
    assert isinstance(outcomes[urls[1]], BadRequestError)
    assert all(isinstance(outcomes[url], SucceededTask) for url in (urls[0], urls[2], urls[3]))


def test_no_secret_stands_in_an_error_or_a_repr() -> None:
    client, _ = scripted(*[httpx.ConnectError("https://x/?signature=secret") for _ in range(20)], timeout=0.2)
    with pytest.raises(APIConnectionError) as unreachable:
        run(client)
    assert "secret" not in str(unreachable.value)
    assert unreachable.value.__cause__ is not None
    client, _ = scripted(succeeded())
    assert "secret" not in repr(retrieved(client))


def test_every_error_can_be_pickled_and_hashed() -> None:
    errors: list[UpscaleError] = [
        PollTimeoutError("ups_1", 3.2),
        TaskFailedError("ups_1", Failure("c", "m", "refunded")),
        RateLimitError(429, "rate_limit_error", "rate_limit_exceeded", "m", "req_1", 2.0),
        APIConnectionError("gone"),
        ChecksumError("x"),
    ]
    for error in errors:
        error.idempotency_key = "a-key-of-mine"
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), again.__dict__) == (type(error), str(error), error.__dict__)
        assert len({error, again}) == 2


def test_what_can_never_work_is_refused_before_it_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UPSCALE_API", raising=False)
    monkeypatch.delenv("UPSCALE_API_KEY", raising=False)
    for base in ("", "api.example.com", "ftp://api.example.com"):
        with pytest.raises(ValueError, match="address"):
            Upscale(base, api_key="k")
    with pytest.raises(ValueError, match="ASCII"):
        Upscale("https://api.example.com", api_key="bad\nkey")
    with pytest.raises(ValueError, match="UPSCALE_API_KEY"):
        Upscale("https://api.example.com")
    with pytest.raises(ValueError, match="set UPSCALE_API"):
        Upscale(api_key="k")
    client, seen = scripted()
    with pytest.raises(ValueError, match="8 to 128"):
        client.upscales.create("https://images.example.com/a.png", idempotency_key="short")
    assert seen == []


def test_address_and_key_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UPSCALE_API", "https://api.example.com/")
    monkeypatch.setenv("UPSCALE_API_KEY", "usk_live_y")
    with Upscale() as client:
        assert client.upscales._base == "https://api.example.com"
        assert client._api.headers["Authorization"] == "Bearer usk_live_y"


def test_the_asynchronous_client_does_alike(tmp_path: Path) -> None:
    answers = [
        refusal(503, "service_unavailable"),
        processing(202, HELD),
        succeeded(),
        png(b"pict"),
        succeeded(),
        png(),
        succeeded_as(202),
        refusal(400, "invalid_image_url"),
    ]
    transport = httpx.MockTransport(lambda _: answers.pop(0))

    async def run() -> None:
        async with AsyncUpscale("https://api.example.com", api_key="k", timeout=20) as client:
            client.upscales._api = httpx.AsyncClient(transport=transport)
            client.upscales._files = httpx.AsyncClient(transport=transport)
            task = await client.upscales.run("https://images.example.com/a.png")
            path = await client.upscales.download(task, tmp_path / "cat.png")
            assert path.read_bytes() == PNG
            urls = ["https://images.example.com/a.png", "https://images.example.com/b.png"]
            outcomes = [outcome async for _, outcome in client.upscales.run_many(urls, concurrency=1)]
            assert isinstance(outcomes[0], SucceededTask)
            assert isinstance(outcomes[1], BadRequestError)

    asyncio.run(run())
