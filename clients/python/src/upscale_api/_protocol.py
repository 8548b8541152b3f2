"""What both clients do alike: requests as data, what an answer means, and how long to wait. No input or output here, so
that the synchronous and the asynchronous client differ only in how they send and sleep."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import secrets
import time
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

import httpx

from ._errors import (
    APIConnectionError,
    APIStatusError,
    ChecksumError,
    PollTimeoutError,
    TaskFailedError,
    UnexpectedResponseError,
    UpscaleError,
    class_of,
)
from ._task import FailedTask, ProcessingTask, SucceededTask, Task, read_task

RESULT_BYTES_MAX = 128 << 20
"""The largest result: 12 MP of 16-bit RGBA that does not compress."""
DOWNLOAD_RETRIES = 3
BACKOFF_BASE, BACKOFF_CAP = 0.5, 10.0
HELD_MAX = 30
"""The service holds a request for so many seconds at most."""
HELD_AT_LEAST = 0.5
"""A service that says it held a request and answers sooner is not believed: asked again at once, it would be a loop
without a pause."""
FIRST_POLL, SLOWEST_POLL = 3.0, 10.0
"""Where the service holds nothing: the contract's pauses between two questions."""


@dataclass(frozen=True)
class Limits:
    """What one call may take."""

    timeout: float
    """Seconds from its first request to its end, retries and waiting included."""
    max_retries: int
    """How often one request is sent again."""
    request_timeout: float
    """Seconds of silence of a connection, besides the time for which a request asks to be held."""


@dataclass(frozen=True)
class Order:
    """One image to upscale and the key that names the order."""

    image_url: str
    scale: int
    face_enhance: bool
    key: str

    def body(self) -> bytes:
        fields = {"image_url": self.image_url, "scale": self.scale, "face_enhance": self.face_enhance}
        return json.dumps(fields).encode()


def mint_key() -> str:
    """A new idempotency key of 128 random bits."""
    return secrets.token_hex(16)


def checked_key(key: str | None) -> str:
    """Raises `ValueError` for a key that the service would refuse."""
    if key is None:
        return mint_key()
    if not re.fullmatch(r"[!-~]{8,128}", key):
        raise ValueError(f"an idempotency key has 8 to 128 visible ASCII characters; this one has {len(key)}")
    return key


def checked_base(base_url: str | None) -> str:
    """By default `UPSCALE_API`. Raises `ValueError` unless it can be a service's address."""
    base = os.environ.get("UPSCALE_API", "") if base_url is None else base_url
    parts = urlsplit(base)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        hint = "" if base else "; give base_url or set UPSCALE_API"
        raise ValueError(f"{base!r} is no address such as https://api.example.com{hint}")
    return base.rstrip("/")


def checked_headers(api_key: str | None) -> dict[str, str]:
    """By default `UPSCALE_API_KEY`. Raises `ValueError` for a key that cannot stand in a header."""
    key = os.environ.get("UPSCALE_API_KEY", "") if api_key is None else api_key
    if not key:
        raise ValueError("there is no API key; give api_key or set UPSCALE_API_KEY")
    if not re.fullmatch(r"[!-~]+", key):
        raise ValueError("an API key has visible ASCII characters only")
    return {"Authorization": f"Bearer {key}", "User-Agent": "upscale-client-python/0.1.0"}


@dataclass(frozen=True)
class Question:
    """A request, as what both kinds of client build theirs from."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes | None
    expected: int
    silence: float
    key: str | None

    def request(self, http: httpx.Client | httpx.AsyncClient, base: str) -> httpx.Request:
        return http.build_request(
            self.method, base + self.path, content=self.body, headers=self.headers, timeout=self.silence
        )


def create_question(order: Order, held: int, limits: Limits) -> Question:
    headers = {"Idempotency-Key": order.key, "Content-Type": "application/json", **prefer(held)}
    silence = limits.request_timeout + held
    return Question("POST", "/api/v1/upscales", headers, order.body(), 202, silence, order.key)


def read_question(task_id: str, held: int, limits: Limits, key: str | None = None) -> Question:
    path = f"/api/v1/upscales/{quote(task_id, safe='')}"
    return Question("GET", path, prefer(held), None, 200, limits.request_timeout + held, key)


def prefer(held: int) -> dict[str, str]:
    return {"Prefer": f"wait={held}"} if held > 0 else {}


@dataclass(frozen=True)
class Reading:
    """A task, and what its answer said of the next one."""

    task: Task
    was_held: bool
    retry_after: float | None


def understand(question: Question, response: httpx.Response, took: float) -> Reading:
    """Raises `APIStatusError` for a refusal and `UnexpectedResponseError` for what is no task."""
    if response.status_code >= 400:
        raise refusal(response.status_code, response.headers, response.content)
    if response.status_code != question.expected:
        raise UnexpectedResponseError(f"answered {response.status_code}, not {question.expected}")
    headers = response.headers
    try:
        is_replay = "Idempotent-Replayed" in headers
        task = read_task(response.content, headers.get("X-Result-SHA256"), question.key, is_replay)
    except ValueError as error:
        raise UnexpectedResponseError(f"no task: {error}") from error
    was_held = "Preference-Applied" in headers and took >= HELD_AT_LEAST
    return Reading(task, was_held, asked_wait(headers))


def refusal(status: int, headers: httpx.Headers, body: bytes) -> APIStatusError:
    """A body that is not the service's (a proxy's, say) becomes the message, shortened."""
    wait = asked_wait(headers)
    try:
        error = json.loads(body)["error"]
        words = (error["type"], error["code"], error["message"], error.get("request_id"))
    except (ValueError, KeyError, TypeError, AttributeError):
        words = ("unknown", "unknown", body.decode(errors="replace")[:200], None)
    return class_of(status)(status, *words, wait)


def asked_wait(headers: httpx.Headers) -> float | None:
    text = headers.get("Retry-After", "")
    return float(text) if re.fullmatch(r"[0-9]{1,9}", text) else None


def unreachable(error: httpx.HTTPError) -> APIConnectionError:
    """Without the address: a result's holds a signature."""
    return APIConnectionError(f"the service cannot be reached: {type(error).__name__}")


class Clock:
    """The time of one call."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._started = time.monotonic()

    @property
    def waited(self) -> float:
        return time.monotonic() - self._started

    def hold(self) -> int:
        """How long the next request may be held: whole seconds of what is left."""
        return max(0, min(HELD_MAX, int(self.limits.timeout - self.waited)))

    def pause(self, task: ProcessingTask, reading: Reading | None, before: float) -> float:
        """Before the next question. Raises `PollTimeoutError` when that would be too late."""
        if reading is not None and reading.was_held:
            pause = 0.0
        else:
            asked = reading.retry_after if reading is not None else None
            pause = max(min(before * 1.5 if asked is None else asked, SLOWEST_POLL), FIRST_POLL)
        if self.waited + pause >= self.limits.timeout:
            raise PollTimeoutError(task.id, self.waited)
        return pause


class Tries:
    """Counts the tries of one request and says how long to wait before the next: what the service asks for, else
    exponential with full jitter, so that clients that failed together do not come back together."""

    def __init__(self, clock: Clock, most: int) -> None:
        self._clock, self._most, self._count = clock, most, 0

    def wait_after(self, error: UpscaleError) -> float:
        """Raises the error again when it is not temporary, or tries or time are used up."""
        refused = error if isinstance(error, APIStatusError) else None
        is_broken = isinstance(error, (APIConnectionError, ChecksumError))
        is_temporary = is_broken or (refused is not None and refused.is_temporary)
        # Only a result's link is refused so, once its hour is over: a new reading gives a new one.
        is_stale = refused is not None and refused.code == "result_url_expired"
        asked = refused.retry_after if refused is not None else None
        ceiling = min(BACKOFF_BASE * 2 ** min(self._count, 10), BACKOFF_CAP)
        wait = asked + random.random() if asked is not None else random.random() * ceiling
        self._count += 1
        is_late = self._clock.waited + wait > self._clock.limits.timeout
        if not (is_temporary or is_stale) or self._count > self._most or is_late:
            raise error
        return wait


def ended(task: SucceededTask | FailedTask) -> SucceededTask:
    """Raises `TaskFailedError` for a task that failed."""
    if isinstance(task, FailedTask):
        raise TaskFailedError(task.id, task.failure)
    return task


def check(png: bytes, told: str | None, tag: str | None) -> bytes:
    """Against what the task said, else against the result's ETag where that is a SHA-256."""
    for expected in (told, (tag or "").strip('"')):
        if expected and re.fullmatch(r"[0-9a-f]{64}", expected):
            found = hashlib.sha256(png).hexdigest()
            if found != expected:
                raise ChecksumError(f"the result's SHA-256 is {found}, not {expected}")
            return png
    raise UnexpectedResponseError("the service sent no SHA-256 of the result")
