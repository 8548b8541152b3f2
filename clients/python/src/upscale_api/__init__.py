"""Client of the Upscale API.

    from upscale_api import Upscale

    with Upscale("https://api.example.com", api_key="usk_live_…") as upscale:
        png = upscale.upscale("https://images.example.com/cat.jpg", scale=4).download()

`AsyncUpscale` is the same for asyncio.
"""

from ._client import AsyncTask, AsyncUpscale, Task, Upscale
from ._dance import Patience, mint_key
from ._errors import ApiError, Damaged, GaveUp, TaskFailed, Unexpected, Unreachable, UpscaleError
from ._state import Failure, State, Status

__all__ = [
    "ApiError",
    "AsyncTask",
    "AsyncUpscale",
    "Damaged",
    "Failure",
    "GaveUp",
    "Patience",
    "State",
    "Status",
    "Task",
    "TaskFailed",
    "Unexpected",
    "Unreachable",
    "Upscale",
    "UpscaleError",
    "mint_key",
]
