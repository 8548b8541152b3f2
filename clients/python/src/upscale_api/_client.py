"""The two clients: one account's key and where to use it. They differ only in `await`."""

from __future__ import annotations

import ssl
from types import TracebackType

import httpx

from . import _protocol as protocol
from ._protocol import Limits
from ._upscales import AsyncUpscales, Upscales


class Upscale:
    """The API of one service with one account's key. Use it on a server, never in an app: the key is a secret.

    `base_url` and `api_key` are by default the variables `UPSCALE_API` and `UPSCALE_API_KEY`. `timeout` is for a whole
    call, retries and waiting included: the service ends every task within 270 s. `max_retries` is for one request: ten
    ride out a service that restarts in half a minute. `verify` is httpx's: an `ssl.SSLContext` where the service's
    certificate has a root of your own."""

    def __init__(
        self,
        base_url: str | None = None,
        *,
        api_key: str | None = None,
        timeout: float = 300.0,
        max_retries: int = 10,
        request_timeout: float = 30.0,
        verify: ssl.SSLContext | bool = True,
    ) -> None:
        base, headers = protocol.checked_base(base_url), protocol.checked_headers(api_key)
        self._api = httpx.Client(headers=headers, verify=verify)
        # The host of the results must not see the key.
        self._files = httpx.Client(timeout=request_timeout, verify=verify)
        limits = Limits(timeout, max_retries, request_timeout)
        self.upscales = Upscales(self._api, self._files, base, limits)
        """The tasks of this account: create, retrieve, wait, run, download."""

    def __enter__(self) -> Upscale:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections."""
        self._api.close()
        self._files.close()


class AsyncUpscale:
    """`Upscale` for asyncio; every method does the same."""

    def __init__(
        self,
        base_url: str | None = None,
        *,
        api_key: str | None = None,
        timeout: float = 300.0,
        max_retries: int = 10,
        request_timeout: float = 30.0,
        verify: ssl.SSLContext | bool = True,
    ) -> None:
        base, headers = protocol.checked_base(base_url), protocol.checked_headers(api_key)
        self._api = httpx.AsyncClient(headers=headers, verify=verify)
        # The host of the results must not see the key.
        self._files = httpx.AsyncClient(timeout=request_timeout, verify=verify)
        limits = Limits(timeout, max_retries, request_timeout)
        self.upscales = AsyncUpscales(self._api, self._files, base, limits)
        """The tasks of this account: create, retrieve, wait, run, download."""

    async def __aenter__(self) -> AsyncUpscale:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """As the synchronous one."""
        await self._api.aclose()
        await self._files.aclose()
