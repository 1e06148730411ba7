"""Pictures to results: a bounded queue, a few pictures decoded ahead, and one model thread.

Why own it: the framework frees a timed-out request's slot while its thread still runs, so its thread limit
is no mutual exclusion, and its concurrency limit answers 429 without queueing and blocks the pages too.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Engine as Database

from inspect_vit.errors import ImageError, OutOfMemoryError
from inspect_vit.image_io import read_image
from inspect_vit.intake import with_reference_faults
from inspect_vit.picture_statistics import PictureStatistics, picture_statistics
from inspect_vit.results import InspectionResult, IntakeReport
from serving.config import ServingConfig
from serving.errors import BusyError, ClientGoneError
from serving.first_sight import FirstSight, first_sight
from serving.framing import Framed, frame
from serving.goldens import Goldens
from serving.metrics import Metrics
from serving.models import Models, warm_up
from serving.pictures import PictureFiles
from serving.recipes import StoredRecipe

NUM_AHEAD = 3
"""Requests that hold decoded pictures: one in the model and two ready or being decoded. Bounds the memory."""

Pixels = NDArray[np.uint8]
"""(H, W, 3) RGB."""
T = TypeVar("T")


@dataclass(frozen=True)
class Inspected:
    """One result, what reading the pictures found, and where the time went."""

    intake: IntakeReport
    result: InspectionResult
    framed: Framed
    picture: PictureStatistics | None
    """None without a recipe: nothing is watched then."""
    timings_ms: dict[str, float]
    attention: dict[str, NDArray[np.float32]] | None = None
    """By level, (num_heads, h_l, w_l), uniform 1, of all of the board; None unless asked for."""
    sight: FirstSight | None = None
    """None of a board that is not large."""


class Engine:
    """The models and the queue in front of them. One per process; torch is imported when it is made.

    Raises:
        CheckpointError, ConfigError, ServingError: from making it.
    """

    def __init__(self, config: ServingConfig, database: Database, metrics: Metrics) -> None:
        self.config = config
        self.metrics = metrics
        self.models = Models(config, database, metrics)
        self.goldens = Goldens(
            PictureFiles(config.home_dir / "recipes", min_free_bytes=int(config.min_free_mb * 1e6)),
            metrics,
            max_bytes=int(config.golden_cache_mb * 1e6),
            max_pixels=config.max_pixels,
        )
        self._model_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="model")
        self._decoders = ThreadPoolExecutor(NUM_AHEAD - 1, thread_name_prefix="decode")
        self._drawer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="draw")
        self._ahead = asyncio.Semaphore(NUM_AHEAD)
        self._num_admitted = 0
        self._turn_s = 1.0
        self._model_thread.submit(self._warm_up).result()

    def close(self) -> None:
        self.models.close()
        for threads in (self._model_thread, self._decoders, self._drawer):
            threads.shutdown(wait=True, cancel_futures=True)

    @property
    def num_admitted(self) -> int:
        """Requests that wait or run now."""
        return self._num_admitted

    @contextmanager
    def admitted(self) -> Iterator[None]:
        """Hold a place in the queue.

        Raises:
            BusyError: the queue is full.
        """
        if self._num_admitted >= self.config.queue_size:
            self.metrics.refused.inc()
            raise BusyError(
                f"{self._num_admitted} requests are waiting or running, and there is room for no more",
                retry_after_s=max(1, math.ceil(self._num_admitted * self._turn_s / 2)),
                hint="send it again after the number of seconds in Retry-After",
            )
        self._num_admitted += 1
        self.metrics.queue_length.set(self._num_admitted)
        try:
            yield
        finally:
            self._num_admitted -= 1
            self.metrics.queue_length.set(self._num_admitted)

    async def inspect(
        self,
        image: bytes,
        reference: bytes | None,
        *,
        min_score: float | None,
        recipe: StoredRecipe | None,
        want_attention: bool = False,
        version: str | None = None,
        client_gone: Callable[[], Awaitable[bool]],
    ) -> Inspected:
        """Decode and inspect, with the attention of the same pass if wanted; call it inside `admitted()`.

        Args:
            version: of the model; None: the one that the recipe pins, else the one that is in production when
                its turn comes.

        Raises:
            ImageError: from decoding, or a reference that does not fit the image.
            ClientGoneError: the client had hung up when its turn came; the model did not run.
            BusyError: its turn had not come by the deadline; the model did not run.
            OutOfMemoryError: the device has too little memory, in smaller tiles too.
            VersionGoneError, ModelRefusedError: the files of the version are gone or damaged.
        """
        from inspect_vit.attribution import inspect_with_attention

        clock = _StageClock()
        version = version or (None if recipe is None else recipe.recipe.model_version)
        # Loaded before its turn, so that it holds up no board of another recipe; and again at its turn, if
        # others came in between.
        await self.models.get(version)
        async with self._turn(client_gone):
            clock.lap("queue")
            inspector = await self.models.get(version)
            pixels, intake = await self.decode(image, field="image")
            golden = None
            if reference is not None:
                golden, golden_intake = await self.decode(reference, field="reference")
                intake = with_reference_faults(intake, golden_intake)
            picture = None
            if recipe is not None:
                picture = await asyncio.get_running_loop().run_in_executor(
                    self._decoders, picture_statistics, pixels
                )
            clock.lap("decode")
            framed = await asyncio.get_running_loop().run_in_executor(
                self._decoders, frame, pixels, golden, recipe, self.goldens
            )
            clock.lap("alignment")
            of_recipe = None if recipe is None else recipe.recipe
            settings: dict[str, Any] = {
                "min_score": min_score,
                "intake": intake,
                "ignore": framed.ignore,
                "min_size_px": framed.min_size_px,
                "calibration": None if of_recipe is None else of_recipe.calibration,
                "recipe": None if recipe is None else recipe.name,
                "camera": (of_recipe and of_recipe.camera) or self.config.camera or None,
            }

            def work() -> tuple[InspectionResult, dict[str, NDArray[np.float32]] | None]:
                if want_attention:
                    return inspect_with_attention(inspector, pixels, reference=framed.laid, **settings)
                return inspector.inspect(pixels, reference=framed.laid, **settings), None

            result, attention = await self.on_model_thread(work)
            if result.warnings:
                self.metrics.short_of_memory.labels("smaller_tiles").inc()
            clock.lap("inference")
            laid = None if framed.laid is None else framed.laid.picture
            call = result.defects[0].box_xyxy if result.defects else None
            sight = await asyncio.get_running_loop().run_in_executor(
                self._decoders, first_sight, pixels, laid, call
            )
            if sight is not None:
                clock.lap("first_sight")
        timings_ms = {**result.timings_ms, **clock.spent_ms}
        return Inspected(intake, result, framed, picture, timings_ms, attention, sight)

    @asynccontextmanager
    async def pictures(
        self, image: bytes, reference: bytes | None, client_gone: Callable[[], Awaitable[bool]]
    ) -> AsyncIterator[tuple[Pixels, Pixels | None]]:
        """The pictures of an inspection as the model saw them, for questions asked on the model thread.

        Call it inside `admitted()`. Raises as `inspect` does.
        """
        from inspect_vit.alignment import lay_under

        async with self._turn(client_gone):
            pixels, _ = await self.decode(image, field="image")
            golden = None
            if reference is not None:
                posted, _ = await self.decode(reference, field="reference")
                golden = (
                    await asyncio.get_running_loop().run_in_executor(
                        self._decoders, lay_under, pixels, posted
                    )
                ).picture
            yield pixels, golden

    async def decode(self, data: bytes, *, field: str) -> tuple[Pixels, IntakeReport]:
        """Decode a picture within the configured limit. Raises ImageError that names the field."""

        def work() -> tuple[Pixels, IntakeReport]:
            try:
                return read_image(data, max_pixels=self.config.max_pixels)
            except ImageError as error:
                raise type(error)(f"{field}: {error}") from error

        return await asyncio.get_running_loop().run_in_executor(self._decoders, work)

    async def on_drawing_thread(self, work: Callable[[], T]) -> T:
        """Draw pictures for people, one at a time: pictures are large, and the line's boards go first."""
        return await asyncio.get_running_loop().run_in_executor(self._drawer, work)

    @asynccontextmanager
    async def _turn(self, client_gone: Callable[[], Awaitable[bool]]) -> AsyncIterator[None]:
        deadline_s = self.config.deadline_s
        try:
            async with asyncio.timeout(deadline_s):
                await self._ahead.acquire()
        except TimeoutError:
            self.metrics.expired.inc()
            raise BusyError(
                f"its turn had not come after {deadline_s:g} s; nothing was inspected",
                retry_after_s=max(1, math.ceil(self._num_admitted * self._turn_s / 2)),
                hint="send it again after the number of seconds in Retry-After",
            ) from None
        try:
            if await client_gone():
                self.metrics.abandoned.inc()
                raise ClientGoneError("the client hung up before its turn came")
            yield
        finally:
            self._ahead.release()

    async def on_model_thread(self, work: Callable[[], T]) -> T:
        """Run one piece of work between inspections: long questions are asked in several.

        Raises:
            OutOfMemoryError: the device has too little memory for it.
        """
        from inspect_vit.fallback import or_refuse

        def timed() -> T:
            started = time.perf_counter()
            try:
                return or_refuse(work)
            except OutOfMemoryError:
                self.metrics.short_of_memory.labels("refused").inc()
                raise
            finally:
                self._turn_s += 0.1 * (time.perf_counter() - started - self._turn_s)

        return await asyncio.get_running_loop().run_in_executor(self._model_thread, timed)

    def _warm_up(self) -> None:
        started = time.perf_counter()
        warm_up(self.models.default)
        self._turn_s = time.perf_counter() - started


class _StageClock:
    def __init__(self) -> None:
        self.spent_ms: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, stage: str) -> None:
        now = time.perf_counter()
        self.spent_ms[stage] = (now - self._last) * 1000.0
        self._last = now
