"""The model versions that this process has loaded, and the thread that follows what is in production.

A version is loaded beside those in use, on a thread of its own, checked and warmed up; then one assignment
swaps. Who has taken a version keeps it to the end of its work, so a swap stops nothing.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
from sqlalchemy import Engine as Database
from sqlalchemy.exc import SQLAlchemyError

from serving.config import ServingConfig
from serving.errors import ServingError
from serving.metrics import Metrics
from serving.model_refusals import Refusals
from serving.model_stages import NO_PIN, shadows_in_force
from serving.model_start import start_with
from serving.registry import production, version_file

if TYPE_CHECKING:
    from inspect_vit.checkpoint import CheckpointMetadata
    from inspect_vit.inspector import Inspector

POLL_S = 0.5

logger = logging.getLogger("inspect_vit.serving")


class Models:
    """Loaded versions, least recently used last to stay; torch is imported when it is made.

    Raises:
        CheckpointError, ConfigError, ServingError: from making it.
    """

    def __init__(self, config: ServingConfig, database: Database, metrics: Metrics) -> None:
        self._config, self._database, self._metrics = config, database, metrics
        self._loaded: OrderedDict[str, Inspector] = OrderedDict()
        self._lock = threading.Lock()
        self._refusals = Refusals(config.home_dir)
        self._loader = ThreadPoolExecutor(max_workers=1, thread_name_prefix="load")
        self._staying = start_with(database, config.home_dir, config.checkpoint)
        self.default: Inspector
        """Inspects boards without a recipe and those whose recipe pins no version."""
        try:
            self.default = self._loader.submit(self._load, self._staying).result()
        except Exception:
            self._loader.shutdown()
            raise
        self._show(self.default)
        self._shadows: dict[str, tuple[str, float]] = {}
        self._wanted = self._staying
        """The version that was in production at the last look."""
        self._failed: tuple[str, str] | None = None
        """The version that could not go into production, and why, as it was logged last."""
        self._swapped = threading.Condition()
        self._wake, self._is_closing = threading.Event(), False
        self._follower = threading.Thread(target=self._follow, name="models", daemon=True)
        self._follower.start()

    def close(self) -> None:
        self._is_closing = True
        self._wake.set()
        self._follower.join()
        self._loader.shutdown(wait=True, cancel_futures=True)

    def versions(self) -> set[str]:
        """Those that are loaded now."""
        with self._lock:
            return set(self._loaded)

    def refused(self) -> dict[str, str]:
        """Versions that could not be loaded when they were asked for last, and why."""
        return self._refusals.words()

    async def get(self, version: str | None) -> Inspector:
        """A version ready for use on the model thread, loaded if it is not; None: the one in production.

        Raises:
            VersionGoneError, ModelRefusedError: its files are gone or damaged, or it cannot be loaded.
        """
        if version is None:
            return self.default
        inspector = self._find(version)
        if inspector is None:
            inspector = await asyncio.get_running_loop().run_in_executor(self._loader, self._load, version)
        return inspector

    def metadata(self, version: str) -> CheckpointMetadata:
        """What a version's checkpoint says of itself; nothing is loaded. Raises as `get`."""
        from inspect_vit.checkpoint import read_metadata

        inspector = self._find(version)
        if inspector is not None:
            return inspector.metadata
        return read_metadata(version_file(self._config.home_dir, version))

    def shadow_of(self, recipe: str | None, version: str) -> tuple[str, float] | None:
        """The candidate beside a version that inspected a board of a recipe, and its share of the boards."""
        found = self._shadows.get(recipe or NO_PIN)
        if found is None and version == self.default.metadata.version:
            found = self._shadows.get(NO_PIN)
        return None if found is None or found[0] == version else found

    def wait_for(self, version: str, *, timeout_s: float) -> bool:
        """Look at once what is in production, and wait until this process has swapped to a version."""
        self._wake.set()
        with self._swapped:
            return self._swapped.wait_for(lambda: self.default.metadata.version == version, timeout_s)

    def _find(self, version: str) -> Inspector | None:
        with self._lock:
            inspector = self._loaded.get(version)
            if inspector is not None:
                self._loaded.move_to_end(version)
        return inspector

    def _load(self, version: str) -> Inspector:
        """On the loader's thread: load a version unless that was done, and let the least recently used go.

        Raises:
            VersionGoneError, ModelRefusedError: it cannot be loaded, or could not just now.
        """
        inspector = self._find(version)
        if inspector is not None:
            return inspector
        self._refusals.check(version)
        started = time.perf_counter()
        try:
            inspector = self._read(version)
        except Exception as error:
            # Whatever it is, the next board would meet it again.
            self._metrics.show_refused(version, is_refused=True)
            told = self._refusals.note(version, error)
            raise told from (None if told is error else error)
        self._refusals.forget(version)
        self._metrics.show_refused(version, is_refused=False)
        with self._lock:
            self._loaded[version] = inspector
            self._trim(keep=version)
        self._metrics.model_loads.inc()
        logger.info(
            "loaded model %s %s in %.1f s", inspector.metadata.name, version, time.perf_counter() - started
        )
        return inspector

    def _read(self, version: str) -> Inspector:
        from inspect_vit.inspector import Inspector

        inspector = Inspector(
            version_file(self._config.home_dir, version),
            device=self._config.device,
            attention_backend=self._config.attention_backend,
            calibration=self._config.calibration,
        )
        warm_up(inspector)
        return inspector

    def _trim(self, keep: str) -> None:
        """Forget the least recently used beyond the limit, under the lock; not the one in production."""
        for version in list(self._loaded):
            if len(self._loaded) <= self._config.loaded_models:
                return
            if version not in (self._staying, keep):
                del self._loaded[version]

    def _follow(self) -> None:
        while not self._is_closing:
            try:
                self._look()
            except SQLAlchemyError:
                logger.warning("what is in production cannot be read now; this server goes on as it is")
            except Exception:
                logger.exception("following what is in production failed")
            self._wake.wait(POLL_S)
            self._wake.clear()

    def _look(self) -> None:
        """Swap to the version that is in production now, if it is another and can be loaded."""
        self._shadows = shadows_in_force(self._database)
        version = production(self._database)
        if version != self._wanted:
            # Somebody decided anew.
            self._refusals.forget(version)
            self._wanted, self._failed = version, None
        now = self.default.metadata
        if version == now.version:
            return
        if self._refusals.in_force(version) is not None:
            return
        try:
            inspector = self._loader.submit(self._load, version).result()
        except ServingError as error:
            self._metrics.model_failures.inc()
            if self._failed != (version, str(error)):
                logger.error("model %s cannot go into production, %s stays: %s", version, now.version, error)
            self._failed = version, str(error)
            return
        with self._swapped:
            self.default = inspector
            self._swapped.notify_all()
        with self._lock:
            self._staying = version
            self._loaded[version] = inspector
            if now.version in self._loaded:
                # The next to be wanted, if this one is rolled back.
                self._loaded.move_to_end(now.version)
            self._trim(keep=version)
        self._show(inspector)
        name = inspector.metadata.name
        logger.info("model %s %s is in production, in place of %s", name, version, now.version)

    def _show(self, inspector: Inspector) -> None:
        metadata = inspector.metadata
        self._metrics.show_model(name=metadata.name, version=metadata.version, device=str(inspector.device))


def warm_up(inspector: Inspector) -> None:
    """The first pass of a model takes longer than all later ones."""
    side = inspector.metadata.model.size_multiple
    inspector.inspect(np.full((side, side, 3), 128, np.uint8))
