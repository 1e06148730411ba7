"""Golden references of recipes: kept as files, made ready for registration once for many boards."""

from __future__ import annotations

import threading
from collections import OrderedDict

from inspect_vit.errors import ImageError, InspectionError
from inspect_vit.image_io import read_image
from inspect_vit.recipe import GoldenReference
from inspect_vit.registration import prepare
from serving.metrics import Metrics
from serving.pictures import PictureFiles, sha256_hex

FOLDER = "references"


class Goldens:
    """The references of one home. Safe to use from several threads."""

    def __init__(self, files: PictureFiles, metrics: Metrics, *, max_bytes: int, max_pixels: int) -> None:
        """
        Args:
            max_bytes: most memory that decoded references take; the least recently used go first.
            max_pixels: largest reference.
        """
        self._files = files
        self._metrics = metrics
        self._max_bytes = max_bytes
        self._max_pixels = max_pixels
        self._kept: OrderedDict[str, GoldenReference] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, data: bytes, *, name: str) -> tuple[str, int, int]:
        """Check a reference and keep its file: its SHA-256, width and height. On disk when this returns.

        Raises:
            ImageError: no picture, one of bad quality, or one that shows too little to register by.
            StorageFullError: no room.
        """
        try:
            picture, intake = read_image(data, max_pixels=self._max_pixels)
            if intake.errors:
                raise ImageError("; ".join(intake.errors))
            prepare(picture)
        except InspectionError as error:
            kind = type(error) if isinstance(error, ImageError) else ImageError
            raise kind(f"reference {name!r}: {error}") from error
        sha256 = sha256_hex(data)
        self._files.write_all(FOLDER, {sha256: data})
        return sha256, picture.shape[1], picture.shape[0]

    def read(self, sha256: str) -> bytes:
        """The file as it was sent."""
        return self._files.read(FOLDER, sha256)

    def ready(self, name: str, sha256: str) -> GoldenReference:
        """A reference ready for registration, from memory where it is there."""
        with self._lock:
            kept = self._kept.get(sha256)
            if kept is not None:
                self._kept.move_to_end(sha256)
        self._metrics.golden_lookups.labels(found="no" if kept is None else "yes").inc()
        if kept is None:
            picture, _ = read_image(self.read(sha256), max_pixels=self._max_pixels)
            kept = GoldenReference(name, picture, prepare(picture))
            with self._lock:
                self._kept[sha256] = kept
                while (
                    len(self._kept) > 1 and sum(one.nbytes for one in self._kept.values()) > self._max_bytes
                ):
                    self._kept.popitem(last=False)
                self._metrics.golden_bytes.set(sum(one.nbytes for one in self._kept.values()))
        return GoldenReference(name, kept.picture, kept.golden)
