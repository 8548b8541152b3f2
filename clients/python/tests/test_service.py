"""Both clients against the real service."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from conftest import Service, size

from upscale_api import (
    AsyncUpscale,
    AuthenticationError,
    BadRequestError,
    ConflictError,
    NotFoundError,
    SucceededTask,
    TaskFailedError,
    Upscale,
    mint_key,
)


def test_an_image_is_ordered_waited_for_and_downloaded(service: Service, tmp_path: Path) -> None:
    with Upscale(service.api, api_key=service.key) as client:
        task = client.upscales.run(service.images[0], scale=4)
        assert str(task.credits_charged) == "0.7"
        assert size(client.upscales.download(task)) == (96, 64)
        path = client.upscales.download(task, tmp_path / "result.png")
        assert size(path.read_bytes()) == (96, 64)


def test_the_same_key_is_the_same_task(service: Service) -> None:
    with Upscale(service.api, api_key=service.key) as client:
        key = mint_key()
        first = client.upscales.create(service.images[0], idempotency_key=key)
        again = client.upscales.create(service.images[0], idempotency_key=key)
        assert (first.is_replay, again.is_replay, again.id) == (False, True, first.id)
        with pytest.raises(ConflictError) as refused:
            client.upscales.create(service.images[0], scale=4, idempotency_key=key)
        assert refused.value.code == "idempotency_conflict"
        assert client.upscales.wait(first).id == first.id


def test_a_failure_says_why_and_that_nothing_was_charged(service: Service) -> None:
    missing = service.images[0].rsplit("/", 1)[0] + "/missing.png"
    with Upscale(service.api, api_key=service.key) as client:
        with pytest.raises(TaskFailedError, match="No credits were charged") as failed:
            client.upscales.run(missing)
        assert failed.value.task_id is not None
        task = client.upscales.retrieve(failed.value.task_id)
        assert (task.status, str(task.credits_charged)) == ("failed", "0")
        assert failed.value.failure.code == "image_processing_failed"


def test_what_is_wrong_is_told_in_the_services_words(service: Service) -> None:
    with Upscale(service.api, api_key=service.key) as client:
        with pytest.raises(BadRequestError) as wrong:
            client.upscales.create(service.images[0], scale=3)
        assert wrong.value.code == "invalid_scale"
        assert wrong.value.request_id
        with pytest.raises(NotFoundError) as missing:
            client.upscales.retrieve("ups_unknown")
        assert missing.value.code == "task_not_found"
    with Upscale(service.api, api_key="usk_live_wrong") as unknown, pytest.raises(AuthenticationError):
        unknown.upscales.create(service.images[0])


def test_the_asynchronous_client_does_the_same_many_at_a_time(service: Service) -> None:
    async def run() -> None:
        async with AsyncUpscale(service.api, api_key=service.key) as client:
            tasks = []
            async for _, task in client.upscales.run_many([service.images[0]] * 3):
                assert isinstance(task, SucceededTask)
                tasks.append(task)
            assert len({task.id for task in tasks}) == 3
            pictures = await asyncio.gather(*(client.upscales.download(task) for task in tasks))
            assert [size(picture) for picture in pictures] == [(48, 32)] * 3
            again = await client.upscales.retrieve(tasks[0].id)
            assert again.status == "succeeded"

    asyncio.run(run())
