"""Client of the Upscale API.

    from upscale_api import Upscale

    with Upscale() as client:  # UPSCALE_API and UPSCALE_API_KEY
        task = client.upscales.run("https://images.example.com/cat.jpg", scale=4)
        client.upscales.download(task, "cat-4x.png")

`AsyncUpscale` is the same for asyncio.
"""

from ._client import AsyncUpscale, Upscale
from ._errors import (
    APIConnectionError,
    APIStatusError,
    AuthenticationError,
    BadRequestError,
    ChecksumError,
    ConflictError,
    GoneError,
    InsufficientCreditsError,
    InternalServerError,
    NotFoundError,
    PermissionDeniedError,
    PollTimeoutError,
    RateLimitError,
    TaskFailedError,
    UnexpectedResponseError,
    UpscaleError,
)
from ._protocol import mint_key
from ._task import FailedTask, Failure, ProcessingTask, Result, SucceededTask, Task
from ._upscales import AsyncUpscales, Upscales

__all__ = [
    "APIConnectionError",
    "APIStatusError",
    "AsyncUpscale",
    "AsyncUpscales",
    "AuthenticationError",
    "BadRequestError",
    "ChecksumError",
    "ConflictError",
    "FailedTask",
    "Failure",
    "GoneError",
    "InsufficientCreditsError",
    "InternalServerError",
    "NotFoundError",
    "PermissionDeniedError",
    "PollTimeoutError",
    "ProcessingTask",
    "RateLimitError",
    "Result",
    "SucceededTask",
    "Task",
    "TaskFailedError",
    "UnexpectedResponseError",
    "Upscale",
    "UpscaleError",
    "Upscales",
    "mint_key",
]
