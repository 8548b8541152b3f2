"""A task as one answer told it: a class for each status, so that a type checker knows what is there. An unknown
status, or one without what belongs to it, is an error."""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal


@dataclass(frozen=True)
class Result:
    """What a success left."""

    url: str
    """Where the PNG is, for an hour; every reading of the task gives a new address."""
    sha256: str | None
    """Of the PNG, in hexadecimal digits, where the service told it."""

    def __repr__(self) -> str:
        """Without the signature: anyone who has it can download the result."""
        return f"Result(url={self.url.partition('?')[0] + '?…'!r}, sha256={self.sha256!r})"


@dataclass(frozen=True)
class Failure:
    """Why there is no result."""

    code: str
    message: str
    refund_status: str
    """`pending` or `refunded`."""


@dataclass(frozen=True)
class ProcessingTask:
    """Waiting or being worked on."""

    id: str
    credits_reserved: Decimal
    credits_charged: Decimal
    idempotency_key: str | None = None
    """Under which this client ordered it."""
    is_replay: bool = False
    """Whether an earlier request had made it: nothing more was reserved."""
    status: Literal["processing"] = "processing"


@dataclass(frozen=True)
class SucceededTask:
    """Done and charged."""

    id: str
    result: Result
    credits_charged: Decimal
    idempotency_key: str | None = None
    """Under which this client ordered it."""
    is_replay: bool = False
    """Whether an earlier request had made it: nothing more was reserved."""
    status: Literal["succeeded"] = "succeeded"


@dataclass(frozen=True)
class FailedTask:
    """Not done; the credits are back, or on their way."""

    id: str
    failure: Failure
    credits_charged: Decimal
    idempotency_key: str | None = None
    """Under which this client ordered it."""
    is_replay: bool = False
    """Whether an earlier request had made it: nothing more was reserved."""
    status: Literal["failed"] = "failed"


Task = ProcessingTask | SucceededTask | FailedTask


def read_task(body: bytes, sha256: str | None, key: str | None, is_replay: bool) -> Task:
    """Raises `ValueError` when the body is no task."""
    try:
        raw = json.loads(body, parse_float=Decimal, parse_int=Decimal)
        return _read(raw, sha256, key, is_replay)
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"the task lacks {error}") from error


def _read(raw: dict[str, Any], sha256: str | None, key: str | None, is_replay: bool) -> Task:
    status, name, usage = raw["status"], str(raw["id"]), raw["usage"]
    charged = Decimal(usage["credits_charged"])
    if status == "processing":
        return ProcessingTask(name, Decimal(usage["credits_reserved"]), charged, key, is_replay)
    if status == "succeeded":
        return SucceededTask(name, Result(raw["result"]["url"], sha256), charged, key, is_replay)
    if status == "failed":
        failure = Failure(raw["error"]["code"], raw["error"]["message"], usage["refund_status"])
        return FailedTask(name, failure, charged, key, is_replay)
    raise ValueError(f"task {name} has the unknown status {status!r}")
