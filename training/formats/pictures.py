"""Find the pictures that label files name, and name those that a converted set gets."""

from __future__ import annotations

import os
import shutil
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path, PurePosixPath

from inspect_vit.errors import ConfigError

PICTURE_SUFFIXES = frozenset({".bmp", ".jpe", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp"})


MAX_NAME_BYTES = 255
"""The longest file name that the usual file systems take."""


def is_picture(path: Path) -> bool:
    """Whether the name says so; hidden files, such as `._a.jpg` of a Mac's archives, are none."""
    return path.suffix.lower() in PICTURE_SUFFIXES and not path.name.startswith(".") and path.is_file()


def list_pictures(folder: Path, *, deep: bool = False) -> list[Path]:
    """The pictures of a folder, and with `deep` of all folders in it, by name."""
    return sorted(path for path in (folder.rglob("*") if deep else folder.iterdir()) if is_picture(path))


class PictureFinder:
    """Finds files by the names in label files, whatever system wrote them.

    Backslashes, a foreign machine's absolute path, upper and lower case, and composed or decomposed accents
    may differ from the disk; each folder is listed once.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        """folders: where to look, most likely first."""
        self.folders = [folder.resolve() for folder in folders]
        self._listed: dict[Path, dict[str, list[Path]]] = {}
        self._stems: dict[Path, dict[str, list[Path]]] = {}

    def find(self, name: str) -> Path | None:
        """The absolute path of the file, or None. A path counts before its last part alone."""
        return self.trace(name)[0]

    def trace(self, name: str) -> tuple[Path | None, bool]:
        """What `find` answers, and whether only the last part of the name led there."""
        parts = PurePosixPath(name.replace("\\", "/")).parts
        if not parts or "\0" in name:
            return None, False
        for tail in dict.fromkeys((parts, parts[-1:])):
            for folder in self.folders:
                if (found := self._in_folder(folder.joinpath(*tail))) is not None:
                    return found, tail != parts
        return None, False

    def unclear(self, names: Iterable[str]) -> set[str]:
        """Those that only their last part leads to a file which another of the names means as well."""
        return unclear_names({name: self.trace(name) for name in names})

    def with_stem(self, stem: str) -> list[Path]:
        """The pictures of that name but any suffix, in the first folder that has some."""
        return next(
            (found for folder in self.folders if (found := self._by_stem(folder).get(_fold(stem)))), []
        )

    def _by_stem(self, folder: Path) -> dict[str, list[Path]]:
        if folder not in self._stems:
            self._stems[folder] = {}
            for path in list_pictures(folder) if os.path.isdir(folder) else ():
                self._stems[folder].setdefault(_fold(path.stem), []).append(path.resolve())
        return self._stems[folder]

    def _in_folder(self, wanted: Path) -> Path | None:
        if os.path.isfile(wanted):  # unlike Path.is_file, False for a name too long for the disk
            return wanted.resolve()
        alike = self._list(wanted.parent).get(_fold(wanted.name), [])
        return alike[0].resolve() if len(alike) == 1 else None

    def _list(self, folder: Path) -> dict[str, list[Path]]:
        if folder not in self._listed:
            self._listed[folder] = {}
            for path in folder.iterdir() if os.path.isdir(folder) else ():
                if path.is_file():
                    self._listed[folder].setdefault(_fold(path.name), []).append(path)
        return self._listed[folder]


def _fold(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def unclear_names(traced: Mapping[str, tuple[Path | None, bool]]) -> set[str]:
    """Of names traced to files: those that only their last part leads to one that has other names, too."""
    meant: dict[Path | None, set[PurePosixPath]] = {}
    for name, (path, _) in traced.items():
        meant.setdefault(path, set()).add(PurePosixPath(name.replace("\\", "/")))
    return {name for name, (path, moved) in traced.items() if moved and len(meant[path]) > 1}


def unique_names(paths: Iterable[Path], root: Path) -> dict[Path, str]:
    """A file name for each distinct path, all different also where upper and lower case are one.

    The file's own name where that is free, else with its folders below `root` in front, else with a number;
    none longer than a disk takes.
    """
    names: dict[Path, str] = {}
    taken: set[str] = set()
    for path in paths:
        if path in names:
            continue
        inside = path.relative_to(root).parts if path.is_relative_to(root) else path.parts[-2:]
        tails = (f"_{number}{path.suffix}" for number in range(2, len(taken) + 3))
        numbered = (shorten(path.stem, MAX_NAME_BYTES - len(os.fsencode(tail))) + tail for tail in tails)
        own = [name for name in (path.name, "_".join(inside)) if len(os.fsencode(name)) <= MAX_NAME_BYTES]
        name = next(n for n in chain(own, numbered) if _fold(n) not in taken)
        names[path] = name
        taken.add(_fold(name))
    return names


def shorten(name: str, num_bytes: int) -> str:
    """The name cut to so many bytes of UTF-8, between characters."""
    return os.fsencode(name)[:num_bytes].decode("utf-8", "ignore")


def copy_picture(source: Path, target: Path) -> None:
    """Copy byte for byte, EXIF included.

    Raises:
        ConfigError: the picture cannot be read, or the target not written.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    except OSError as error:
        raise ConfigError(f"cannot copy {source} to {target}: {error.strerror}") from error
