"""The two clients. They differ only in `await`; what they do stands in `_dance`."""

from __future__ import annotations

import asyncio
import ssl
import time
from dataclasses import dataclass
from types import TracebackType

import httpx

from . import _dance as dance
from ._dance import Order, Patience, Reading, Tries
from ._errors import Unexpected, UpscaleError
from ._state import State


@dataclass
class Task:
    """A task and the client that knows it."""

    client: Upscale
    state: State
    is_replay: bool = False
    """Whether an earlier request had made it: nothing more was reserved."""

    @property
    def id(self) -> str:
        """Names the task for ever."""
        return self.state.id

    def refresh(self) -> Task:
        """Reads it once."""
        self.state = self.client.read(self.id).state
        return self

    def wait(self) -> Task:
        """Until it is over: the first poll after 3 s, later ones up to 10 s apart, as the service asks. Raises
        `TaskFailed`, or `GaveUp` when patience ends (the task goes on)."""
        patience = self.client.patience
        tries, pause = Tries(patience), patience.first_poll
        while not self.state.is_over:
            dance.gave_up(self.id, pause, tries, patience)
            time.sleep(pause)
            reading = self.client._read(self.id)
            self.state, pause = reading.state, dance.next_pause(pause, reading, patience)
        dance.ended(self.state)
        return self

    def download(self) -> bytes:
        """The PNG, whole: its SHA-256 is checked, and a broken or stale download is tried again with a new link."""
        tries = Tries(self.client.patience, dance.DOWNLOAD_TRIES)
        while True:
            try:
                return self.client._fetch(self.state)
            except UpscaleError as error:
                time.sleep(tries.wait_after(error))
            self.refresh()


class Upscale:
    """The API of one service with one account's key. Use it on a server, never in an app: the key is a secret.

    `verify` is httpx's: an `ssl.SSLContext` where the service's certificate has a root of your own."""

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str,
        patience: Patience | None = None,
        verify: ssl.SSLContext | bool = True,
    ) -> None:
        self._base, self.patience = dance.checked_base(base_url), patience or Patience()
        headers, timeout = dance.checked_headers(api_key), self.patience.request
        self._api = httpx.Client(headers=headers, timeout=timeout, verify=verify)
        # The host of the results must not see the key.
        self._files = httpx.Client(timeout=timeout, verify=verify)

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

    def upscale(
        self,
        image_url: str,
        *,
        scale: int = 2,
        face_enhance: bool = False,
        idempotency_key: str | None = None,
    ) -> Task:
        """Orders and waits for the end; raises as `create` and `Task.wait`."""
        task = self.create(image_url, scale=scale, face_enhance=face_enhance, idempotency_key=idempotency_key)
        return task.wait()

    def create(
        self,
        image_url: str,
        *,
        scale: int = 2,
        face_enhance: bool = False,
        idempotency_key: str | None = None,
    ) -> Task:
        """Creates the task, or finds the one that this key made before. What is temporary is tried again under the
        same key, so nothing is paid twice. Raises `ApiError` with the service's words, or `Unreachable`."""
        order = Order(image_url, scale, face_enhance, dance.checked_key(idempotency_key))
        reading = self._persist(dance.create_request(self._api, self._base, order), 202)
        return Task(self, reading.state, reading.is_replay)

    def read(self, task_id: str) -> Task:
        """Reads a task once; `ApiError` 404 when this account has none of this id."""
        return Task(self, self._read(task_id).state)

    def _read(self, task_id: str) -> Reading:
        return self._persist(dance.read_request(self._api, self._base, task_id), 200)

    def _persist(self, request: httpx.Request, expected: int) -> Reading:
        tries = Tries(self.patience)
        while True:
            try:
                return dance.understand(self._send(request), expected)
            except UpscaleError as error:
                time.sleep(tries.wait_after(error))

    def _send(self, request: httpx.Request) -> httpx.Response:
        try:
            return self._api.send(request)
        except httpx.HTTPError as error:
            raise dance.unreachable(error) from error

    def _fetch(self, state: State) -> bytes:
        png = bytearray()
        try:
            with self._files.stream("GET", dance.link(state)) as response:
                if response.status_code != 200:
                    raise dance.refusal(response.status_code, response.headers, response.read())
                for piece in response.iter_bytes():
                    png += piece
                    if len(png) > dance.RESULT_BYTES_MAX:
                        raise Unexpected(f"a result of more than {dance.RESULT_BYTES_MAX} bytes")
        except httpx.HTTPError as error:
            raise dance.unreachable(error) from error
        return dance.check(bytes(png), state.sha256, response.headers.get("ETag"))


@dataclass
class AsyncTask:
    """`Task` for asyncio."""

    client: AsyncUpscale
    state: State
    is_replay: bool = False
    """Whether an earlier request had made it: nothing more was reserved."""

    @property
    def id(self) -> str:
        """Names the task for ever."""
        return self.state.id

    async def refresh(self) -> AsyncTask:
        """As the synchronous one."""
        self.state = (await self.client.read(self.id)).state
        return self

    async def wait(self) -> AsyncTask:
        """As the synchronous one."""
        patience = self.client.patience
        tries, pause = Tries(patience), patience.first_poll
        while not self.state.is_over:
            dance.gave_up(self.id, pause, tries, patience)
            await asyncio.sleep(pause)
            reading = await self.client._read(self.id)
            self.state, pause = reading.state, dance.next_pause(pause, reading, patience)
        dance.ended(self.state)
        return self

    async def download(self) -> bytes:
        """As the synchronous one."""
        tries = Tries(self.client.patience, dance.DOWNLOAD_TRIES)
        while True:
            try:
                return await self.client._fetch(self.state)
            except UpscaleError as error:
                await asyncio.sleep(tries.wait_after(error))
            await self.refresh()


class AsyncUpscale:
    """`Upscale` for asyncio; every method does the same."""

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str,
        patience: Patience | None = None,
        verify: ssl.SSLContext | bool = True,
    ) -> None:
        self._base, self.patience = dance.checked_base(base_url), patience or Patience()
        headers, timeout = dance.checked_headers(api_key), self.patience.request
        self._api = httpx.AsyncClient(headers=headers, timeout=timeout, verify=verify)
        # The host of the results must not see the key.
        self._files = httpx.AsyncClient(timeout=timeout, verify=verify)

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

    async def upscale(
        self,
        image_url: str,
        *,
        scale: int = 2,
        face_enhance: bool = False,
        idempotency_key: str | None = None,
    ) -> AsyncTask:
        """As the synchronous one."""
        task = await self.create(image_url, scale=scale, face_enhance=face_enhance, idempotency_key=idempotency_key)
        return await task.wait()

    async def create(
        self,
        image_url: str,
        *,
        scale: int = 2,
        face_enhance: bool = False,
        idempotency_key: str | None = None,
    ) -> AsyncTask:
        """As the synchronous one."""
        order = Order(image_url, scale, face_enhance, dance.checked_key(idempotency_key))
        reading = await self._persist(dance.create_request(self._api, self._base, order), 202)
        return AsyncTask(self, reading.state, reading.is_replay)

    async def read(self, task_id: str) -> AsyncTask:
        """As the synchronous one."""
        return AsyncTask(self, (await self._read(task_id)).state)

    async def _read(self, task_id: str) -> Reading:
        return await self._persist(dance.read_request(self._api, self._base, task_id), 200)

    async def _persist(self, request: httpx.Request, expected: int) -> Reading:
        tries = Tries(self.patience)
        while True:
            try:
                return dance.understand(await self._send(request), expected)
            except UpscaleError as error:
                await asyncio.sleep(tries.wait_after(error))

    async def _send(self, request: httpx.Request) -> httpx.Response:
        try:
            return await self._api.send(request)
        except httpx.HTTPError as error:
            raise dance.unreachable(error) from error

    async def _fetch(self, state: State) -> bytes:
        png = bytearray()
        try:
            async with self._files.stream("GET", dance.link(state)) as response:
                if response.status_code != 200:
                    raise dance.refusal(response.status_code, response.headers, await response.aread())
                async for piece in response.aiter_bytes():
                    png += piece
                    if len(png) > dance.RESULT_BYTES_MAX:
                        raise Unexpected(f"a result of more than {dance.RESULT_BYTES_MAX} bytes")
        except httpx.HTTPError as error:
            raise dance.unreachable(error) from error
        return dance.check(bytes(png), state.sha256, response.headers.get("ETag"))
