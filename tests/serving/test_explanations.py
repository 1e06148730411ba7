"""Maps and their tests, as the service computes them from what it stored, against the library.

In this process and with a small loud model.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from inspect_vit.alignment import lay_under
from inspect_vit.attribution import explanation_maps
from inspect_vit.inspector import Inspector
from inspect_vit.relevance import relevance
from inspect_vit.reliability import faithfulness_of
from serving.attention import AttentionAsk, asked_cells
from serving.backend import Backend
from serving.config import ServingConfig
from serving.evidence import read_evidence_ask
from serving.roles import ANYONE
from serving.schemas import EVIDENCE_MAPS, InspectOptions, RenderedName
from serving.store import StoredInspection
from serving.uploads import Upload
from tests.loud import save_loud


@pytest.fixture(scope="module")
def loud_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_loud(tmp_path_factory.mktemp("loud") / "loud.safetensors")


@pytest.fixture(scope="module")
def pair() -> tuple[np.ndarray, np.ndarray]:
    """A board of 96 x 128 px and the same in paler tones, so that every replaced cell changes something."""
    blocks = np.random.default_rng(1).integers(0, 2, (12, 16), np.uint8) * 200 + 20
    board = np.repeat(np.kron(blocks, np.ones((8, 8), np.uint8))[..., None], 3, axis=2)
    return np.ascontiguousarray(board), np.ascontiguousarray(60 + board // 2)


Ask = Callable[[Backend, StoredInspection], Awaitable[Any]]


def answered(
    checkpoint: Path, home: Path, board: Any, reference: Any, ask: Ask, *include: RenderedName
) -> Any:
    """Inspect the board on a backend of its own, listing every call, then ask."""

    async def run() -> Any:
        backend = Backend(ServingConfig(home=home, checkpoint=checkpoint, device="cpu", min_free_mb=0))
        try:
            files = [None if p is None else cv2.imencode(".png", p)[1].tobytes() for p in (board, reference)]
            assert files[0] is not None
            options = InspectOptions(min_score=0.0, include=include)
            report, _ = await backend.inspect(
                Upload(files[0], files[1], None, None, options, None), ANYONE, here
            )
            return await ask(backend, backend.store.get(report.id))
        finally:
            backend.close()

    return asyncio.run(run())


async def here() -> bool:
    return False


@pytest.mark.parametrize("is_paired", [True, False])
def test_every_map_is_tested_as_the_library_tests_it(
    loud_checkpoint: Path, tmp_path: Path, pair: tuple[np.ndarray, np.ndarray], is_paired: bool
) -> None:
    board, reference = pair[0], pair[1] if is_paired else None
    asks = [read_evidence_ask({"map": name, "defect": "2"}) for name in EVIDENCE_MAPS]

    async def ask(backend: Backend, inspection: StoredInspection) -> Any:
        return [await backend.drawings.evidence(inspection, each, here) for each in asks]

    told = {each.maps[0].map: each for each in answered(loud_checkpoint, tmp_path, board, reference, ask)}
    inspector = Inspector(loud_checkpoint, device="cpu")
    found = inspector.inspect(board, reference=reference, min_score=0.0)
    reference = None if reference is None else lay_under(board, reference).picture
    defect = found.defects[1]
    asked = {"inspector": inspector, "image": board, "reference": reference, "defect": defect}
    others = [other.box_xyxy for number, other in enumerate(found.defects) if number != 1]
    maps = explanation_maps(inspector, board, reference=reference, defect=defect)
    levels = relevance(inspector, board, reference=reference, defect=defect).levels
    maps |= {f"relevance {level}": values.clip(min=0) for level, values in levels.items()}
    moved = 0
    for name, report in told.items():
        assert (report.defect, report.with_reference) == (2, is_paired)
        (each,) = report.maps
        if name.startswith("relevance"):  # the others hang on a defect map that was stored in 8 bits
            wanted = faithfulness_of(maps[name.replace("_", " ")], others=others, **asked)
            assert each.score == pytest.approx(wanted.score, abs=1e-3), name
            assert each.score_without == pytest.approx(wanted.score_without, abs=1e-3), name
            assert each.score_without_random == pytest.approx(wanted.score_without_random, abs=1e-3), name
            assert report.area_px == 16 * wanted.num_cells
            moved += abs(each.drop) > 0.002
    assert moved, "the score hangs on what is replaced"


def test_maps_are_those_of_the_library_and_are_kept(
    loud_checkpoint: Path, tmp_path: Path, pair: tuple[np.ndarray, np.ndarray]
) -> None:
    passes: list[int] = []

    async def ask(backend: Backend, inspection: StoredInspection) -> Any:
        result = await asyncio.to_thread(backend.drawings._result, inspection)
        found = {}
        for method in ("attention", "relevance", "rollout", "relevance"):
            asked = AttentionAsk(method, "16" if method == "attention" else "all", defect=2)
            query = asked_cells(asked, result)
            hook = backend.engine.models.default.model.head.register_forward_hook(lambda *_: passes.append(1))
            found[method] = await backend.drawings.explanations.maps(inspection, result, asked, query, here)
            hook.remove()
            passes.append(0)
        return found

    board, reference = pair
    found = answered(loud_checkpoint, tmp_path, board, reference, ask)
    inspector = Inspector(loud_checkpoint, device="cpu")
    defect = inspector.inspect(board, reference=reference, min_score=0.0).defects[1]
    reference = lay_under(board, reference).picture
    wanted = relevance(inspector, board, reference=reference, defect=defect)
    np.testing.assert_allclose(found["relevance"]["all"], wanted.total, rtol=1e-3, atol=1e-5)
    for level, values in wanted.levels.items():
        np.testing.assert_allclose(found["relevance"][level], values, rtol=1e-3, atol=1e-5)
    maps = explanation_maps(inspector, board, reference=reference, defect=defect)
    np.testing.assert_allclose(found["rollout"]["all"], maps["rollout"], atol=0.02)
    assert np.corrcoef(found["rollout"]["all"].ravel(), maps["rollout"].ravel())[0, 1] > 0.99
    assert passes == [1, 0, 1, 1, 1, 0, 1, 0, 0], "the second question for relevance costs no pass"


def test_attention_that_comes_with_the_inspection_costs_no_second_pass(
    loud_checkpoint: Path, tmp_path: Path, pair: tuple[np.ndarray, np.ndarray]
) -> None:
    async def ask(backend: Backend, inspection: StoredInspection) -> Any:
        passes: list[int] = []
        result = await asyncio.to_thread(backend.drawings._result, inspection)
        backend.engine.models.default.model.head.register_forward_hook(lambda *_: passes.append(1))
        maps = await backend.drawings.explanations.maps(inspection, result, AttentionAsk(), None, here)
        return maps, passes

    maps, passes = answered(loud_checkpoint, tmp_path, *pair, ask, "attention_4")
    assert passes == []
    wanted = Inspector(loud_checkpoint, device="cpu").attention(pair[0], reference=pair[1])
    np.testing.assert_allclose(maps["4"].mean(0), wanted["4"], atol=1e-5)
