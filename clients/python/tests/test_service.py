"""Both clients against the real service."""

from __future__ import annotations

import asyncio

import pytest
from conftest import Service, size

from upscale_api import ApiError, AsyncUpscale, Status, TaskFailed, Upscale, mint_key


def test_an_image_is_ordered_waited_for_and_downloaded(service: Service) -> None:
    with Upscale(service.api, api_key=service.key) as upscale:
        task = upscale.upscale(service.images[0], scale=4)
        assert task.state.status is Status.SUCCEEDED
        assert str(task.state.credits_charged) == "0.7"
        assert size(task.download()) == (96, 64)


def test_the_same_key_is_the_same_task(service: Service) -> None:
    with Upscale(service.api, api_key=service.key) as upscale:
        key = mint_key()
        first = upscale.create(service.images[0], idempotency_key=key)
        again = upscale.create(service.images[0], idempotency_key=key)
        assert (first.is_replay, again.is_replay, again.id) == (False, True, first.id)
        with pytest.raises(ApiError) as refused:
            upscale.create(service.images[0], scale=4, idempotency_key=key)
        assert (refused.value.status, refused.value.code) == (409, "idempotency_conflict")
        assert upscale.read(first.id).wait().state.is_over


def test_a_failure_says_why_and_that_nothing_was_charged(service: Service) -> None:
    missing = service.images[0].rsplit("/", 1)[0] + "/missing.png"
    with Upscale(service.api, api_key=service.key) as upscale:
        with pytest.raises(TaskFailed, match="No credits were charged") as failed:
            upscale.upscale(missing)
        state = upscale.read(failed.value.task_id).state
        assert str(state.credits_charged) == "0"
        assert failed.value.failure.code == "image_processing_failed"


def test_what_is_wrong_is_told_in_the_services_words(service: Service) -> None:
    with Upscale(service.api, api_key=service.key) as upscale:
        with pytest.raises(ApiError) as refused:
            upscale.create(service.images[0], scale=3)
        assert (refused.value.status, refused.value.code) == (400, "invalid_scale")
        assert refused.value.request_id
        with pytest.raises(ApiError) as refused:
            upscale.read("ups_unknown")
        assert refused.value.code == "task_not_found"
    with Upscale(service.api, api_key="usk_live_wrong") as stranger:
        with pytest.raises(ApiError) as refused:
            stranger.create(service.images[0])
        assert refused.value.status == 401


def test_the_asynchronous_client_does_the_same_many_at_a_time(service: Service) -> None:
    async def run() -> None:
        async with AsyncUpscale(service.api, api_key=service.key) as upscale:
            tasks = await asyncio.gather(*(upscale.upscale(service.images[0]) for _ in range(3)))
            assert len({task.id for task in tasks}) == 3
            pictures = await asyncio.gather(*(task.download() for task in tasks))
            assert [size(picture) for picture in pictures] == [(48, 32)] * 3
            again = await upscale.read(tasks[0].id)
            assert again.state.status is Status.SUCCEEDED

    asyncio.run(run())
