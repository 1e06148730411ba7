"""Versions that this process could not load: refused until their files change, or a while has gone by.

Loading is expensive and asked for by every board of a recipe that pins a version, so a failure is remembered.
"""

from __future__ import annotations

import logging
import os
import time
from dataclasses import dataclass
from pathlib import Path

from inspect_vit.errors import InspectionError
from serving.errors import ModelRefusedError, NotFoundError, ServingError
from serving.model_files import folder_of

FIRST_RETRY_S, LAST_RETRY_S = 30.0, 600.0
"""After which a version whose files did not change is tried again: twice as long after each failure."""
State = tuple[tuple[str, int, int], ...]
"""Name, size and time of change of each file."""

logger = logging.getLogger("inspect_vit.serving")


@dataclass(frozen=True)
class Refusal:
    """Why a version was not loaded."""

    error: ServingError
    state: State
    again_at: float
    """On the monotonic clock."""
    num_tries: int


class Refusals:
    """Of one home. Noted by the loading thread alone."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._refusals: dict[str, Refusal] = {}

    def in_force(self, version: str) -> Refusal | None:
        """The refusal of a version that is not worth another try now."""
        refusal = self._refusals.get(version)
        if refusal is None or time.monotonic() >= refusal.again_at or refusal.state != self._state(version):
            return None
        return refusal

    def check(self, version: str) -> None:
        """Raises what was raised when the version was tried last, while that is in force."""
        refusal = self.in_force(version)
        if refusal is not None:
            raise refusal.error.with_traceback(None)

    def note(self, version: str, error: Exception) -> ServingError:
        """Remember why a version was not loaded, and log it once; the error to be raised.

        What nobody foresaw becomes ModelRefusedError.
        """
        before = self._refusals.get(version)
        if isinstance(error, ServingError):
            told = error
        else:
            told = ModelRefusedError(
                f"model version {version} cannot be loaded: {error or type(error).__name__}",
                hint="the server's log says why; inspect-vit models rollback goes back to the one before",
            )
        num_tries = 1 if before is None else before.num_tries + 1
        wait_s = min(FIRST_RETRY_S * 2 ** (num_tries - 1), LAST_RETRY_S)
        state = self._state(version)
        self._refusals[version] = Refusal(told, state, time.monotonic() + wait_s, num_tries)
        if before is None or str(before.error) != str(told):
            is_known = isinstance(error, ServingError | InspectionError | OSError)
            logger.error("%s", told, exc_info=None if is_known else error)
        return told

    def forget(self, version: str) -> None:
        """It was loaded, or is worth another try."""
        self._refusals.pop(version, None)

    def words(self) -> dict[str, str]:
        """Why each version that could not be loaded was refused."""
        return {version: str(refusal.error) for version, refusal in dict(self._refusals).items()}

    def _state(self, version: str) -> State:
        """Of the version's files; empty where there is no folder."""
        try:
            with os.scandir(folder_of(self._home, version)) as entries:
                found = [(entry.name, entry.stat()) for entry in entries]
        except (OSError, NotFoundError):
            return ()
        return tuple(sorted((name, stat.st_size, stat.st_mtime_ns) for name, stat in found))
