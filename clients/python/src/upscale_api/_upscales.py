"""The verbs of tasks, synchronous and asynchronous. What they do alike stands in `_protocol`."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from typing import overload

import httpx

from . import _protocol as protocol
from ._errors import UnexpectedResponseError, UpscaleError
from ._protocol import Clock, Limits, Order, Question, Reading, Tries, ended
from ._task import ProcessingTask, SucceededTask, Task

OnBytes = Callable[[int, int | None], None]


class Upscales:
    """The tasks of one account; of `Upscale.upscales`."""

    def __init__(self, api: httpx.Client, files: httpx.Client, base: str, limits: Limits) -> None:
        self._api, self._files, self._base, self._limits = api, files, base, limits

    def run(
        self,
        image_url: str,
        *,
        scale: int = 2,
        face_enhance: bool = False,
        idempotency_key: str | None = None,
        on_progress: Callable[[Task], None] | None = None,
    ) -> SucceededTask:
        """Orders and waits for the end. Raises `TaskFailedError`, `PollTimeoutError` (the task goes on), and as
        `create`. `on_progress` hears of the task each time it was read."""
        order = Order(image_url, scale, face_enhance, protocol.checked_key(idempotency_key))
        clock = Clock(self._limits)
        try:
            reading = self._ask(protocol.create_question(order, clock.hold(), self._limits), clock)
            return self._until_over(reading, clock, on_progress)
        except UpscaleError as error:
            error.idempotency_key = order.key
            raise

    def run_many(
        self,
        image_urls: Iterable[str],
        *,
        scale: int = 2,
        face_enhance: bool = False,
        concurrency: int = 5,
    ) -> Iterator[tuple[str, SucceededTask | UpscaleError]]:
        """Each image with its task, or with what went wrong, as they end. The service recommends 5 to 10 at a time."""
        run = partial(self.run, scale=scale, face_enhance=face_enhance)
        with ThreadPoolExecutor(concurrency) as pool:
            running: dict[Future[SucceededTask], str] = {}
            try:
                for url in image_urls:
                    running[pool.submit(run, url)] = url
                    if len(running) >= concurrency:
                        yield from _ended(running)
                while running:
                    yield from _ended(running)
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def create(
        self,
        image_url: str,
        *,
        scale: int = 2,
        face_enhance: bool = False,
        idempotency_key: str | None = None,
    ) -> Task:
        """Creates the task, or finds the one that this key made before, and does not wait for its end. What is
        temporary is tried again under the same key, so nothing is paid twice. Raises `APIStatusError` with the
        service's words, or `APIConnectionError`."""
        order = Order(image_url, scale, face_enhance, protocol.checked_key(idempotency_key))
        try:
            return self._ask(protocol.create_question(order, 0, self._limits), Clock(self._limits)).task
        except UpscaleError as error:
            error.idempotency_key = order.key
            raise

    def retrieve(self, task_id: str) -> Task:
        """Reads a task once, as it is now; `NotFoundError` when this account has none of this id."""
        return self._ask(protocol.read_question(task_id, 0, self._limits), Clock(self._limits)).task

    def wait(self, task: Task | str, *, on_progress: Callable[[Task], None] | None = None) -> SucceededTask:
        """Waits for the end of a task, or of the one of this id. The service holds the question until then; where it
        does not, it is asked again as it says: first after 3 s, later up to 10 s apart. Raises as `run`."""
        task_id, key = (task, None) if isinstance(task, str) else (task.id, task.idempotency_key)
        clock = Clock(self._limits)
        try:
            reading = self._ask(protocol.read_question(task_id, clock.hold(), self._limits, key), clock)
            return self._until_over(reading, clock, on_progress)
        except UpscaleError as error:
            error.idempotency_key, error.task_id = key, task_id
            raise

    @overload
    def download(self, task: SucceededTask, *, on_progress: OnBytes | None = None) -> bytes: ...

    @overload
    def download(
        self, task: SucceededTask, path: str | os.PathLike[str], *, on_progress: OnBytes | None = None
    ) -> Path: ...

    def download(
        self,
        task: SucceededTask,
        path: str | os.PathLike[str] | None = None,
        *,
        on_progress: OnBytes | None = None,
    ) -> bytes | Path:
        """The PNG, or the file that holds it, which appears whole or not at all. Its SHA-256 is checked, and a broken
        or stale download is tried again with a new link. `on_progress` hears how many bytes have come, and of how many,
        where that is known."""
        clock = Clock(self._limits)
        tries, current = Tries(clock, protocol.DOWNLOAD_RETRIES), task
        while True:
            try:
                png = self._fetch(current, on_progress)
                return png if path is None else written(png, Path(path))
            except UpscaleError as error:
                error.task_id, error.idempotency_key = task.id, task.idempotency_key
                time.sleep(tries.wait_after(error))
            newer = self.retrieve(task.id)
            current = newer if isinstance(newer, SucceededTask) else current

    def _until_over(self, reading: Reading, clock: Clock, on_progress: Callable[[Task], None] | None) -> SucceededTask:
        pause, key = protocol.FIRST_POLL, reading.task.idempotency_key
        while True:
            task = reading.task
            if on_progress is not None:
                on_progress(task)
            if not isinstance(task, ProcessingTask):
                return ended(task)
            pause = clock.pause(task, reading, pause)
            time.sleep(pause)
            reading = self._ask(protocol.read_question(task.id, clock.hold(), self._limits, key), clock)

    def _ask(self, question: Question, clock: Clock) -> Reading:
        tries = Tries(clock, self._limits.max_retries)
        while True:
            try:
                began = time.monotonic()
                response = self._send(question)
                return protocol.understand(question, response, time.monotonic() - began)
            except UpscaleError as error:
                time.sleep(tries.wait_after(error))

    def _send(self, question: Question) -> httpx.Response:
        try:
            return self._api.send(question.request(self._api, self._base))
        except httpx.HTTPError as error:
            raise protocol.unreachable(error) from error

    def _fetch(self, task: SucceededTask, on_progress: OnBytes | None) -> bytes:
        png = bytearray()
        try:
            with self._files.stream("GET", task.result.url, follow_redirects=True) as response:
                if response.status_code != 200:
                    raise protocol.refusal(response.status_code, response.headers, response.read())
                for piece in response.iter_bytes():
                    png += piece
                    received(png, response, on_progress)
        except httpx.HTTPError as error:
            raise protocol.unreachable(error) from error
        return protocol.check(bytes(png), task.result.sha256, response.headers.get("ETag"))


class AsyncUpscales:
    """The tasks of one account; of `AsyncUpscale.upscales`."""

    def __init__(self, api: httpx.AsyncClient, files: httpx.AsyncClient, base: str, limits: Limits) -> None:
        self._api, self._files, self._base, self._limits = api, files, base, limits

    async def run(
        self,
        image_url: str,
        *,
        scale: int = 2,
        face_enhance: bool = False,
        idempotency_key: str | None = None,
        on_progress: Callable[[Task], None] | None = None,
    ) -> SucceededTask:
        """As the synchronous one."""
        order = Order(image_url, scale, face_enhance, protocol.checked_key(idempotency_key))
        clock = Clock(self._limits)
        try:
            reading = await self._ask(protocol.create_question(order, clock.hold(), self._limits), clock)
            return await self._until_over(reading, clock, on_progress)
        except UpscaleError as error:
            error.idempotency_key = order.key
            raise

    async def run_many(
        self,
        image_urls: Iterable[str],
        *,
        scale: int = 2,
        face_enhance: bool = False,
        concurrency: int = 5,
    ) -> AsyncIterator[tuple[str, SucceededTask | UpscaleError]]:
        """As the synchronous one."""
        running: dict[asyncio.Task[SucceededTask], str] = {}
        try:
            for url in image_urls:
                order = self.run(url, scale=scale, face_enhance=face_enhance)
                running[asyncio.ensure_future(order)] = url
                if len(running) >= concurrency:
                    for outcome in await _ended_async(running):
                        yield outcome
            while running:
                for outcome in await _ended_async(running):
                    yield outcome
        finally:
            for task in running:
                task.cancel()

    async def create(
        self,
        image_url: str,
        *,
        scale: int = 2,
        face_enhance: bool = False,
        idempotency_key: str | None = None,
    ) -> Task:
        """As the synchronous one."""
        order = Order(image_url, scale, face_enhance, protocol.checked_key(idempotency_key))
        try:
            return (await self._ask(protocol.create_question(order, 0, self._limits), Clock(self._limits))).task
        except UpscaleError as error:
            error.idempotency_key = order.key
            raise

    async def retrieve(self, task_id: str) -> Task:
        """As the synchronous one."""
        return (await self._ask(protocol.read_question(task_id, 0, self._limits), Clock(self._limits))).task

    async def wait(self, task: Task | str, *, on_progress: Callable[[Task], None] | None = None) -> SucceededTask:
        """As the synchronous one."""
        task_id, key = (task, None) if isinstance(task, str) else (task.id, task.idempotency_key)
        clock = Clock(self._limits)
        try:
            reading = await self._ask(protocol.read_question(task_id, clock.hold(), self._limits, key), clock)
            return await self._until_over(reading, clock, on_progress)
        except UpscaleError as error:
            error.idempotency_key, error.task_id = key, task_id
            raise

    @overload
    async def download(self, task: SucceededTask, *, on_progress: OnBytes | None = None) -> bytes: ...

    @overload
    async def download(
        self, task: SucceededTask, path: str | os.PathLike[str], *, on_progress: OnBytes | None = None
    ) -> Path: ...

    async def download(
        self,
        task: SucceededTask,
        path: str | os.PathLike[str] | None = None,
        *,
        on_progress: OnBytes | None = None,
    ) -> bytes | Path:
        """As the synchronous one."""
        clock = Clock(self._limits)
        tries, current = Tries(clock, protocol.DOWNLOAD_RETRIES), task
        while True:
            try:
                png = await self._fetch(current, on_progress)
                return png if path is None else written(png, Path(path))
            except UpscaleError as error:
                error.task_id, error.idempotency_key = task.id, task.idempotency_key
                await asyncio.sleep(tries.wait_after(error))
            newer = await self.retrieve(task.id)
            current = newer if isinstance(newer, SucceededTask) else current

    async def _until_over(
        self, reading: Reading, clock: Clock, on_progress: Callable[[Task], None] | None
    ) -> SucceededTask:
        pause, key = protocol.FIRST_POLL, reading.task.idempotency_key
        while True:
            task = reading.task
            if on_progress is not None:
                on_progress(task)
            if not isinstance(task, ProcessingTask):
                return ended(task)
            pause = clock.pause(task, reading, pause)
            await asyncio.sleep(pause)
            reading = await self._ask(protocol.read_question(task.id, clock.hold(), self._limits, key), clock)

    async def _ask(self, question: Question, clock: Clock) -> Reading:
        tries = Tries(clock, self._limits.max_retries)
        while True:
            try:
                began = time.monotonic()
                response = await self._send(question)
                return protocol.understand(question, response, time.monotonic() - began)
            except UpscaleError as error:
                await asyncio.sleep(tries.wait_after(error))

    async def _send(self, question: Question) -> httpx.Response:
        try:
            return await self._api.send(question.request(self._api, self._base))
        except httpx.HTTPError as error:
            raise protocol.unreachable(error) from error

    async def _fetch(self, task: SucceededTask, on_progress: OnBytes | None) -> bytes:
        png = bytearray()
        try:
            async with self._files.stream("GET", task.result.url, follow_redirects=True) as response:
                if response.status_code != 200:
                    raise protocol.refusal(response.status_code, response.headers, await response.aread())
                async for piece in response.aiter_bytes():
                    png += piece
                    received(png, response, on_progress)
        except httpx.HTTPError as error:
            raise protocol.unreachable(error) from error
        return protocol.check(bytes(png), task.result.sha256, response.headers.get("ETag"))


def received(png: bytearray, response: httpx.Response, on_progress: OnBytes | None) -> None:
    """Raises `UnexpectedResponseError` for more than any result has."""
    if len(png) > protocol.RESULT_BYTES_MAX:
        raise UnexpectedResponseError(f"a result of more than {protocol.RESULT_BYTES_MAX} bytes")
    if on_progress is not None:
        length = response.headers.get("Content-Length", "")
        on_progress(len(png), int(length) if length.isdigit() else None)


def written(png: bytes, path: Path) -> Path:
    """Whole or not at all."""
    part = path.with_name(path.name + ".part")
    part.write_bytes(png)
    return part.replace(path)


def _ended(running: dict[Future[SucceededTask], str]) -> Iterator[tuple[str, SucceededTask | UpscaleError]]:
    for future in wait(running, return_when=FIRST_COMPLETED).done:
        url = running.pop(future)
        try:
            yield url, future.result()
        except UpscaleError as error:
            yield url, error


async def _ended_async(
    running: dict[asyncio.Task[SucceededTask], str],
) -> list[tuple[str, SucceededTask | UpscaleError]]:
    done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    outcomes: list[tuple[str, SucceededTask | UpscaleError]] = []
    for task in done:
        url = running.pop(task)
        try:
            outcomes.append((url, task.result()))
        except UpscaleError as error:
            outcomes.append((url, error))
    return outcomes
