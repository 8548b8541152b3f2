"""What can go wrong, apart by what the caller can do about it."""

from __future__ import annotations

from dataclasses import dataclass

from ._state import Failure


class UpscaleError(Exception):
    """The root of every error of this package."""


@dataclass
class ApiError(UpscaleError):
    """An answer of the service that is no success."""

    status: int
    """HTTP status."""
    type: str
    """Such as `invalid_request_error`."""
    code: str
    """Such as `invalid_scale`."""
    message: str
    request_id: str | None
    """For support."""
    retry_after: float | None
    """Seconds the service asks to wait."""

    def __str__(self) -> str:
        request = f" (request {self.request_id})" if self.request_id else ""
        return f"{self.status} {self.code}: {self.message}{request}"

    @property
    def is_temporary(self) -> bool:
        """Whether the same request may succeed later."""
        return self.status in (408, 429, 500, 502, 503, 504)


class Unreachable(UpscaleError):
    """The service could not be reached, or the connection broke, until patience ended."""


class Unexpected(UpscaleError):
    """An answer that this client does not understand, such as an unknown status."""


class Damaged(UpscaleError):
    """The result did not arrive as the service made it."""


class GaveUp(UpscaleError):
    """Patience ended first. The task goes on: read it later by `task_id`; that costs nothing."""

    def __init__(self, task_id: str, waited: float) -> None:
        super().__init__(f"task {task_id} is not over after {waited:.0f} s; it goes on and can be read later")
        self.task_id = task_id


class TaskFailed(UpscaleError):
    """The task ended without a result and without a charge."""

    def __init__(self, task_id: str, failure: Failure) -> None:
        super().__init__(f"task {task_id} failed: {failure.message}")
        self.task_id = task_id
        self.failure = failure
