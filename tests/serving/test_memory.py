"""A device whose memory is short, in the service: counted, told, and 503 where nothing helps."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from inspect_vit.errors import OutOfMemoryError
from serving.config import ServingConfig
from serving.engine import Engine
from serving.metrics import Metrics
from serving.store import Store


@pytest.fixture
def engine(tiny_checkpoint: Path, tmp_path: Path) -> Iterator[Engine]:
    config = ServingConfig(home=tmp_path, checkpoint=tiny_checkpoint, device="cpu")
    with (
        contextlib.closing(Store(config)) as store,
        contextlib.closing(Engine(config, store.engine, Metrics())) as running,
    ):
        yield running


async def _here() -> bool:
    return False


def ask(engine: Engine, board: bytes, *, want_attention: bool) -> None:
    asyncio.run(
        engine.inspect(
            board, None, min_score=None, recipe=None, want_attention=want_attention, client_gone=_here
        )
    )


# What importing the framework says of packages it uses.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("want_attention", [False, True])
def test_a_board_without_memory_is_refused_and_counted(
    engine: Engine, board_png: bytes, want_attention: bool
) -> None:
    from serving.service import error_response

    def refuse(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB.")

    hook = engine.models.default.model.embeds[0].register_forward_pre_hook(refuse)
    with pytest.raises(OutOfMemoryError, match="smallest for this board") as caught:
        ask(engine, board_png, want_attention=want_attention)
    counted = engine.metrics.registry.get_sample_value
    assert counted("inspect_vit_short_of_memory_total", {"outcome": "refused"}) == 1
    answer = error_response(caught.value)
    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) > 0
    assert json.loads(bytes(answer.body))["error"]["code"] == "out_of_memory"
    # The next board finds memory again.
    hook.remove()
    ask(engine, board_png, want_attention=want_attention)
    assert counted("inspect_vit_short_of_memory_total", {"outcome": "refused"}) == 1


def test_questions_on_the_model_thread_are_refused_likewise(engine: Engine) -> None:
    def work() -> None:
        raise torch.OutOfMemoryError("CUDA out of memory.")

    with pytest.raises(OutOfMemoryError, match="too little free memory for this"):
        asyncio.run(engine.on_model_thread(work))
