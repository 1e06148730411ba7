"""Measure registration: known warps undone, wrong boards refused, defects kept.

    python benchmarks/registration.py --data DATA --boards 12

DATA holds deeppcb/PCBData and hripcb_3boards. Each board is posted under known warps, with its defects
painted onto the template where the data set's boxes are, so that the true map is known everywhere. Errors
are distances between mapped and true places, pixels of the reference, where it covers them. They count at
the edges that the template shows, across the edge: elsewhere, and along it, a place and its neighbours look
the same, no picture tells which is which, and the pixels compare equal. Nothing but the template decides what
counts; the errors anywhere, in any direction, are printed beside.
The other tables take the pairs as they are. Times are CPU time of one thread, median. Warps, truth and tables
are one experiment and stay in one file.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from inspect_vit.errors import RegistrationError
from inspect_vit.registration import register

Picture = NDArray[np.uint8]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Warp:
    """A way for a board to be posted. Maps posted pixels to pixels of the template."""

    shift: tuple[float, float] = (0, 0)
    turn_degrees: float = 0
    scale: tuple[float, float] = (1, 1)
    perspective: tuple[float, float] = (0, 0)
    """How much nearer one edge is than the middle, as a share."""
    slip_rows: int = 0
    """Rows of the board that were lost (above 0) or scanned twice (below 0), at SLIP_AT of the height."""

    def matrix(self, height: int, width: int) -> Floats:
        """(3, 3): about the middle of the picture."""
        to_middle = np.array([[1, 0, -(width - 1) / 2], [0, 1, -(height - 1) / 2], [0, 0, 1]])
        turn = np.deg2rad(self.turn_degrees)
        cos, sin = np.cos(turn), np.sin(turn)
        x, y = self.scale
        tilt = [2 * self.perspective[0] / width, 2 * self.perspective[1] / height, 1]
        about = np.array([[cos * x, -sin * y, self.shift[0]], [sin * x, cos * y, self.shift[1]], tilt])
        result: Floats = np.linalg.inv(to_middle) @ about @ to_middle
        return result

    def post(self, picture: Picture, fill: int) -> Picture:
        height, width = picture.shape[:2]
        matrix = np.linalg.inv(self.matrix(height, width))
        seen = cv2.warpPerspective(
            picture, matrix, (width, height), flags=cv2.INTER_CUBIC, borderValue=(fill,) * 3
        )
        row, lost = round(SLIP_AT * height), self.slip_rows
        blank = np.full((max(lost, 0), width, 3), fill, np.uint8)
        posted = np.concatenate((seen[:row], seen[row + lost :], blank)) if lost else seen
        return np.asarray(posted[:height], np.uint8)

    def true_places(self, points: Floats, height: int, width: int) -> Floats:
        """(N, 2) posted pixels to pixels of the template."""
        moved = points.astype(np.float64)
        if self.slip_rows:
            moved[:, 1] += self.slip_rows * (points[:, 1] >= round(SLIP_AT * height) - 0.5)
        places = cv2.perspectiveTransform(moved[None], self.matrix(height, width))[0]
        return np.asarray(places, np.float64)


SLIP_AT = 0.45
PLACES = 200
"""Places a side at which errors are looked at."""
EDGE_BLUR_PX, EDGE_SLOPE = 2.0, 4.0
"""An edge is where the template, blurred by so much, changes by so many grey levels a pixel: a sharp step of
20 levels and more."""
LIMIT_PX = 0.5
"""A board is off when more than one counted place in 20 is off by more."""
WARPS = {
    "as it is": Warp(),
    "shift 40, -33 px": Warp(shift=(40, -33)),
    "turn 2 degrees": Warp(turn_degrees=2),
    "scale 1 %": Warp(scale=(1.01, 1.01)),
    "stretch 0.1 % in x": Warp(scale=(1.001, 1)),
    "perspective 0.3 %": Warp(perspective=(0.003, -0.0025)),
    "12 rows lost": Warp(slip_rows=12),
    "12 rows twice": Warp(slip_rows=-12),
    "shift, turn, scale, perspective": Warp((-20, 25), -1.5, (0.995, 0.994), (0.0015, 0.0015)),
    "all, and 12 rows lost": Warp((15, -12), 1, (1.004, 1.005), (0.001, 0.001), 12),
}


def gradient(picture: Picture) -> Picture:
    ramp = np.linspace(0.7, 1.3, picture.shape[1])[None, :, None]
    return np.clip(picture * ramp, 0, 255).astype(np.uint8)


def gamma(picture: Picture) -> Picture:
    table = np.rint(255 * (np.arange(256) / 255) ** 1.8).astype(np.uint8)
    return table[picture]


def noise(picture: Picture) -> Picture:
    rough = np.random.default_rng(0).normal(0, 12, picture.shape)
    return np.clip(picture + rough, 0, 255).astype(np.uint8)


LIGHTS = {
    "lamp -30 %": lambda p: (p * 0.7).astype(np.uint8),
    "lamp +30 %": lambda p: np.clip(p * 1.3, 0, 255).astype(np.uint8),
    "lamp gradient +-30 %": gradient,
    "gamma 1.8": gamma,
    "noise, sigma 12": noise,
    "blur, sigma 1.5 px": lambda p: cv2.GaussianBlur(p, (0, 0), 1.5).astype(np.uint8),
}
LIGHT_WARP = Warp((-12, 9), 0.7, (1.003, 1.002))


@dataclass(frozen=True)
class Pair:
    group: str
    image: Picture
    template: Picture
    boxes: Floats

    def painted(self) -> Picture:
        """The template with what the image shows inside its boxes: defects at exactly known places."""
        picture = self.template.copy()
        for left, top, right, bottom in self.boxes.astype(int):
            picture[top:bottom, left:right] = self.image[top:bottom, left:right]
        return picture


def deeppcb(root: Path, boards: int) -> list[Pair]:
    """`boards` pairs, spread evenly over the groups and inside each."""
    groups = sorted((root / "deeppcb" / "PCBData").glob("group*"))
    found: dict[str, list[Pair]] = {}
    for group in groups:
        number = group.name.removeprefix("group")
        images = sorted((group / number).glob("*_test.jpg"))
        each = -(-boards // len(groups))
        pairs = []
        for k in range(each):
            path = images[(2 * k + 1) * len(images) // (2 * each)]
            labels = group / f"{number}_not" / path.name.replace("_test.jpg", ".txt")
            boxes = np.loadtxt(labels, ndmin=2)[:, :4]
            pairs.append(Pair(group.name, read(path), read(Path(str(path).replace("_test", "_temp"))), boxes))
        found[group.name] = pairs
    return [
        pair
        for k in range(-(-boards // len(groups)))
        for pairs in found.values()
        for pair in pairs[k : k + 1]
    ][:boards]


def hripcb(root: Path, boards: int) -> list[Pair]:
    folder = root / "hripcb_3boards"
    notes = json.loads((folder / "annotations.coco.json").read_text(encoding="utf-8"))
    by_board: dict[str, list[dict[str, object]]] = {}
    for image in notes["images"]:
        by_board.setdefault(image["board"], []).append(image)
    chosen = [
        images[k]
        for k in range(max(map(len, by_board.values())))
        for images in by_board.values()
        if k < len(images)
    ]
    pairs = []
    for image in chosen[:boards]:
        boxes = np.array(
            [a["bbox"] for a in notes["annotations"] if a["image_id"] == image["id"]], np.float64
        )
        boxes[:, 2:] += boxes[:, :2]
        names = Path(str(image["file_name"])).name, Path(str(image["template"])).name
        pairs.append(
            Pair(
                str(image["board"]),
                read(folder / "images" / names[0]),
                read(folder / "templates" / names[1]),
                boxes,
            )
        )
    return pairs


def read(path: Path) -> Picture:
    picture = cv2.imread(str(path))
    if picture is None:
        raise SystemExit(f"cannot read {path}")
    return np.asarray(cv2.cvtColor(picture, cv2.COLOR_BGR2RGB), np.uint8)


def places(height: int, width: int) -> Floats:
    """(N, 2) points (x, y) spread evenly over a picture, N = PLACES squared."""
    y, x = np.meshgrid(np.linspace(5, height - 6, PLACES), np.linspace(5, width - 6, PLACES), indexing="ij")
    return np.stack((x, y), -1).reshape(-1, 2)


def edge_normals(template: Picture) -> NDArray[np.float32]:
    """(H, W, 2): unit vector across the edge that a pixel lies on, 0 where it lies on none."""
    grey = np.asarray(cv2.cvtColor(template, cv2.COLOR_RGB2GRAY), np.float32)
    smooth = cv2.GaussianBlur(grey, (0, 0), EDGE_BLUR_PX)
    slopes = np.stack([cv2.Scharr(smooth, cv2.CV_32F, *axis, scale=1 / 32) for axis in ((1, 0), (0, 1))], -1)
    steep = np.linalg.norm(slopes, axis=-1, keepdims=True)
    return np.asarray(np.where(steep >= EDGE_SLOPE, slopes / np.maximum(steep, 1e-6), 0), np.float32)


def cases() -> Iterator[tuple[str, Warp, object]]:
    for name, warp in WARPS.items():
        yield name, warp, None
    for name, light in LIGHTS.items():
        yield name, LIGHT_WARP, light


def undo_warps(name: str, pairs: list[Pair]) -> None:
    for kind, warp, light in cases():
        across, anywhere, times, refused = [], [], [], Counter[str]()
        num_places = 0
        for pair in pairs:
            posted = warp.post(pair.painted(), 255)
            posted = light(posted) if callable(light) else posted
            start = time.thread_time()
            try:
                found = register(posted, pair.template)
            except RegistrationError as error:
                refused[str(error).split(":")[0]] += 1
                continue
            times.append(1e3 * (time.thread_time() - start))
            height, width = pair.template.shape[:2]
            points = places(height, width)
            truth = warp.true_places(points, height, width)
            inside = ((truth >= 0) & (truth <= [width - 1, height - 1])).all(1)
            off = found.to_reference(points[inside]) - truth[inside]
            x, y = np.rint(truth[inside]).astype(np.intp).T
            normals = edge_normals(pair.template)[y, x]
            across.append(np.abs((off * normals).sum(1))[normals.any(1)])
            anywhere.append(np.linalg.norm(off, axis=1))
            num_places += len(off)
        if not across:
            print(f"| {name} | {kind} | - | - | - | - | - | {dict(refused)} | - |", flush=True)
            continue
        counted, every = np.concatenate(across), np.concatenate(anywhere)
        over = sum(float(np.percentile(board, 95)) > LIMIT_PX for board in across)
        figures = [f"{e.mean():.3f} / {np.percentile(e, 95):.3f} / {e.max():.2f}" for e in (counted, every)]
        print(
            f"| {name} | {kind} | {figures[0]} | {over} of {len(across)} | {len(counted) / num_places:.1%} "
            f"| {figures[1]} | {dict(refused) or 0} | {np.median(times):.0f} |",
            flush=True,
        )


def refuse(pairs: list[Pair]) -> None:
    """Right and wrong pictures against their references: what is said of each."""
    said: dict[str, Counter[str]] = {}
    for k, pair in enumerate(pairs):
        other = next((p for p in pairs[k + 1 :] + pairs[:k] if p.group != pair.group), pair)
        posted = {
            "right": (pair.image, pair.template),
            "another group's reference": (pair.image, other.template),
            "turned by 180 degrees": (np.rot90(pair.image, 2), pair.template),
            "turned by 90 degrees": (np.rot90(pair.image), pair.template),
            "mirrored": (pair.image[:, ::-1], pair.template),
        }
        for kind, (image, template) in posted.items():
            try:
                register(np.ascontiguousarray(image), template)
                answer = "accepted"
            except RegistrationError as error:
                answer = str(error).split(":")[0]
            said.setdefault(kind, Counter())[answer] += 1
    for kind, answers in said.items():
        print(
            f"| {kind} | {', '.join(f'{n} x {answer}' for answer, n in answers.most_common())} |", flush=True
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of deeppcb/ and hripcb_3boards/")
    parser.add_argument("--boards", type=int, default=22, help="DeepPCB pairs")
    parser.add_argument("--photographs", type=int, default=3, help="hripcb pairs")
    options = parser.parse_args()
    cv2.setNumThreads(1)
    sets = {
        "DeepPCB": deeppcb(options.data, options.boards),
        "hripcb": hripcb(options.data, options.photographs),
    }
    print(
        "| set | posted | across edges: mean / p95 / max px | boards off | places at edges "
        "| anywhere: mean / p95 / max px | refused | CPU ms |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for name, pairs in sets.items():
        undo_warps(name, pairs)
    for name, pairs in sets.items():
        print(f"\n| {name}, {len(pairs)} pairs | said |\n|---|---|")
        refuse(pairs)


if __name__ == "__main__":
    main()
