"""What can go wrong, apart by what the caller can do about it. Every error can be pickled: pools of processes do."""

from __future__ import annotations

from typing import Any

from ._task import Failure


class UpscaleError(Exception):
    """The root of every error of this package."""

    idempotency_key: str | None = None
    """Of the order, minted or your own: sent again under it, the order is the same task and the same charge."""
    task_id: str | None = None
    """Of the task, once it was known."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _revived, (type(self), self.args, self.__dict__)


def _revived(kind: type[UpscaleError], args: tuple[Any, ...], attributes: dict[str, Any]) -> UpscaleError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(attributes)
    return error


class APIConnectionError(UpscaleError):
    """The service could not be reached, or the connection broke."""


class UnexpectedResponseError(UpscaleError):
    """An answer that this client does not understand, such as an unknown status."""


class ChecksumError(UpscaleError):
    """The result did not arrive as the service made it."""


class PollTimeoutError(UpscaleError, TimeoutError):
    """The timeout passed first. The task goes on: wait for `task_id` later; that costs nothing."""

    def __init__(self, task_id: str, waited: float) -> None:
        super().__init__(f"task {task_id} is not over after {waited:.0f} s; it goes on and can be waited for later")
        self.task_id = task_id


class TaskFailedError(UpscaleError):
    """The task ended without a result and without a charge."""

    def __init__(self, task_id: str, failure: Failure) -> None:
        super().__init__(f"task {task_id} failed: {failure.message}")
        self.task_id = task_id
        self.failure = failure


class APIStatusError(UpscaleError):
    """An answer of the service that is no success."""

    def __init__(
        self,
        status: int,
        type: str,
        code: str,
        message: str,
        request_id: str | None,
        retry_after: float | None,
    ) -> None:
        request = f" (request {request_id})" if request_id else ""
        super().__init__(f"{status} {code}: {message}{request}")
        self.status = status
        """HTTP status."""
        self.type = type
        """Such as `invalid_request_error`."""
        self.code = code
        """Such as `invalid_scale`."""
        self.message = message
        self.request_id = request_id
        """For support."""
        self.retry_after = retry_after
        """Seconds the service asks to wait."""

    @property
    def is_temporary(self) -> bool:
        """Whether the same request may succeed later."""
        return self.status in (408, 429, 500, 502, 503, 504)


class BadRequestError(APIStatusError):
    """400: mend the request."""


class AuthenticationError(APIStatusError):
    """401: the key is missing, wrong or revoked."""


class InsufficientCreditsError(APIStatusError):
    """402: buy credits."""


class PermissionDeniedError(APIStatusError):
    """403: the account or the key may not."""


class NotFoundError(APIStatusError):
    """404: no such task of this account."""


class ConflictError(APIStatusError):
    """409: the idempotency key belongs to another order."""


class GoneError(APIStatusError):
    """410: the result is no longer kept."""


class RateLimitError(APIStatusError):
    """429: later, as `retry_after` says."""


class InternalServerError(APIStatusError):
    """5xx: not your fault."""


_BY_STATUS: dict[int, type[APIStatusError]] = {
    400: BadRequestError,
    401: AuthenticationError,
    402: InsufficientCreditsError,
    403: PermissionDeniedError,
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
    429: RateLimitError,
}


def class_of(status: int) -> type[APIStatusError]:
    """Which error a status is."""
    return InternalServerError if status >= 500 else _BY_STATUS.get(status, APIStatusError)
