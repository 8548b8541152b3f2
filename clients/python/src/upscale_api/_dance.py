"""What both clients do alike: requests as data, what an answer means, and how long to wait. No input or output here, so
that the synchronous and the asynchronous client differ only in how they send and sleep."""

from __future__ import annotations

import hashlib
import json
import random
import re
import secrets
import time
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

import httpx

from ._errors import ApiError, Damaged, GaveUp, TaskFailed, Unexpected, Unreachable, UpscaleError
from ._state import State, read_state

RESULT_BYTES_MAX = 128 << 20
"""The largest result: 12 MP of 16-bit RGBA that does not compress."""
DOWNLOAD_TRIES = 4
BACKOFF_BASE, BACKOFF_CAP = 0.5, 10.0


@dataclass(frozen=True)
class Patience:
    """How long things may take, in seconds. The defaults are the contract's."""

    total: float = 300.0
    """One call, retries and waits included. The service ends every task within 270 s."""
    request: float = 30.0
    """Silence of a connection."""
    first_poll: float = 3.0
    slowest_poll: float = 10.0


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


def checked_base(base_url: str) -> str:
    """Raises `ValueError` unless it can be a service's address."""
    parts = urlsplit(base_url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{base_url!r} is no address such as https://api.example.com")
    return base_url.rstrip("/")


def checked_headers(api_key: str) -> dict[str, str]:
    """Raises `ValueError` for a key that cannot stand in a header."""
    if not re.fullmatch(r"[!-~]+", api_key):
        raise ValueError("an API key has visible ASCII characters only")
    return {"Authorization": f"Bearer {api_key}", "User-Agent": "upscale-client-python/0.1.0"}


def create_request(http: httpx.Client | httpx.AsyncClient, base: str, order: Order) -> httpx.Request:
    headers = {"Idempotency-Key": order.key, "Content-Type": "application/json"}
    return http.build_request("POST", f"{base}/api/v1/upscales", content=order.body(), headers=headers)


def read_request(http: httpx.Client | httpx.AsyncClient, base: str, task_id: str) -> httpx.Request:
    return http.build_request("GET", f"{base}/api/v1/upscales/{quote(task_id, safe='')}")


@dataclass(frozen=True)
class Reading:
    """A state, and what its headers said."""

    state: State
    is_replay: bool
    retry_after: float | None


def understand(response: httpx.Response, expected: int) -> Reading:
    """Raises `ApiError` for a refusal and `Unexpected` for what is no task."""
    if response.status_code >= 400:
        raise refusal(response.status_code, response.headers, response.content)
    if response.status_code != expected:
        raise Unexpected(f"answered {response.status_code}, not {expected}")
    try:
        state = read_state(response.content, response.headers.get("X-Result-SHA256"))
    except ValueError as error:
        raise Unexpected(f"no task: {error}") from error
    is_replay = "Idempotent-Replayed" in response.headers
    return Reading(state, is_replay, asked_wait(response.headers))


def refusal(status: int, headers: httpx.Headers, body: bytes) -> ApiError:
    """A body that is not the service's (a proxy's, say) becomes the message, shortened."""
    wait = asked_wait(headers)
    try:
        error = json.loads(body)["error"]
        return ApiError(status, error["type"], error["code"], error["message"], error.get("request_id"), wait)
    except (ValueError, KeyError, TypeError, AttributeError):
        text = body.decode(errors="replace")[:200]
        return ApiError(status, "unknown", "unknown", text, None, wait)


def asked_wait(headers: httpx.Headers) -> float | None:
    text = headers.get("Retry-After", "")
    return float(text) if re.fullmatch(r"[0-9]{1,9}", text) else None


def gave_up(task_id: str, pause: float, tries: Tries, patience: Patience) -> None:
    """Raises `GaveUp` when the pause would pass the end of patience."""
    if tries.waited + pause > patience.total:
        raise GaveUp(task_id, tries.waited)


def ended(state: State) -> State:
    """Raises `TaskFailed` for a task that failed."""
    if state.failure is not None:
        raise TaskFailed(state.id, state.failure)
    return state


def link(state: State) -> str:
    """Raises `ValueError` for a task without a result."""
    if state.result_url is None:
        raise ValueError(f"task {state.id} has no result: it is {state.status.value}")
    return state.result_url


def unreachable(error: httpx.HTTPError) -> Unreachable:
    """Without the address: a result's holds a signature."""
    return Unreachable(f"the service cannot be reached: {type(error).__name__}")


class Tries:
    """Counts the tries of one request and says how long to wait before the next: what the service asks for, else
    exponential with full jitter, so that clients that failed together do not come back together."""

    def __init__(self, patience: Patience, most: int | None = None) -> None:
        self.started = time.monotonic()
        self._patience, self._most, self._count = patience, most, 0

    @property
    def waited(self) -> float:
        return time.monotonic() - self.started

    def wait_after(self, error: UpscaleError) -> float:
        """Raises the error again when it is not temporary or patience would end."""
        refused = error if isinstance(error, ApiError) else None
        is_temporary = isinstance(error, (Unreachable, Damaged)) or (refused is not None and refused.is_temporary)
        # Only a result's link is refused so, once its hour is over: a new reading gives a new one.
        is_stale = refused is not None and refused.code == "result_url_expired"
        asked = refused.retry_after if refused is not None else None
        ceiling = min(BACKOFF_BASE * 2 ** min(self._count, 10), BACKOFF_CAP)
        wait = asked + random.random() if asked is not None else random.random() * ceiling
        self._count += 1
        is_last = self._most is not None and self._count >= self._most
        if not (is_temporary or is_stale) or is_last or self.waited + wait > self._patience.total:
            raise error
        return wait


def next_pause(pause: float, reading: Reading, patience: Patience) -> float:
    asked = reading.retry_after if reading.retry_after is not None else pause * 1.5
    return max(min(asked, patience.slowest_poll), patience.first_poll)


def check(png: bytes, told: str | None, tag: str | None) -> bytes:
    """Against what the task said, else against the result's ETag where that is a SHA-256."""
    for expected in (told, (tag or "").strip('"')):
        if expected and re.fullmatch(r"[0-9a-f]{64}", expected):
            found = hashlib.sha256(png).hexdigest()
            if found != expected:
                raise Damaged(f"the result's SHA-256 is {found}, not {expected}")
            return png
    raise Unexpected("the service told no SHA-256 of the result")
