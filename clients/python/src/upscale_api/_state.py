"""A task as one answer told it. An unknown status, or one without what belongs to it, is an error."""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any


class Status(str, Enum):
    """Where a task stands."""

    PROCESSING = "processing"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


@dataclass(frozen=True)
class Failure:
    """Why there is no result."""

    code: str
    message: str
    refund_status: str
    """`pending` or `refunded`."""


@dataclass(frozen=True)
class State:
    """A task at one moment."""

    id: str
    status: Status
    credits_charged: Decimal
    credits_reserved: Decimal | None = None
    """While processing."""
    result_url: str | None = None
    """After success; good for an hour."""
    sha256: str | None = None
    """Of the result, in hexadecimal digits, where the service told it."""
    failure: Failure | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing will change any more."""
        return self.status is not Status.PROCESSING


def read_state(body: bytes, sha256: str | None) -> State:
    """Raises `ValueError` when the body is no task."""
    try:
        raw = json.loads(body, parse_float=Decimal, parse_int=Decimal)
        return _read(raw, sha256)
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"the task lacks {error}") from error


def _read(raw: dict[str, Any], sha256: str | None) -> State:
    status, usage = Status(raw["status"]), raw["usage"]
    charged = Decimal(usage["credits_charged"])
    if status is Status.PROCESSING:
        return State(raw["id"], status, charged, credits_reserved=Decimal(usage["credits_reserved"]))
    if status is Status.SUCCEEDED:
        return State(raw["id"], status, charged, result_url=raw["result"]["url"], sha256=sha256)
    failure = Failure(raw["error"]["code"], raw["error"]["message"], usage["refund_status"])
    return State(raw["id"], status, charged, failure=failure)
