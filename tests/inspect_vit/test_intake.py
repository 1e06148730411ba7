"""Frames that hold no board become errors, poor ones warnings; binary scans are neither."""

from __future__ import annotations

import io

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from inspect_vit.image_io import read_image
from inspect_vit.intake import blur_effect, pair_faults, speck_share, with_reference_faults
from inspect_vit.results import IntakeReport


def encoded(pixels: NDArray[np.generic], name: str = "PNG") -> bytes:
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, name)
    return stream.getvalue()


def scan(dark_share: float = 0.2) -> NDArray[np.uint8]:
    """Two-level tracks, `dark_share` black."""
    picture = np.full((160, 160), 255, np.uint8)
    picture[:, : round(160 * dark_share)] = 0
    return picture


def photograph() -> NDArray[np.uint8]:
    rng = np.random.default_rng(3)
    tracks = np.repeat(np.repeat(rng.integers(60, 200, (20, 20)), 10, 0), 10, 1)
    return np.clip(tracks + rng.normal(0, 4, tracks.shape), 0, 255).astype(np.uint8)


@pytest.mark.parametrize("dark_share", [0.0125, 0.2, 0.8])
def test_binary_scans_are_fit(dark_share: float) -> None:
    for name in ("PNG", "JPEG"):
        _, intake = read_image(encoded(scan(dark_share), name))
        assert (intake.warnings, intake.errors) == ((), ())


def test_one_speck_on_an_empty_scan_is_fit() -> None:
    """Bare laminate with one spot of spurious copper is a board like any other."""
    frame = np.full((640, 640), 255, np.uint8)
    frame[200:212, 300:312] = 0
    _, intake = read_image(encoded(frame, "PNG"))
    assert (intake.warnings, intake.errors) == ((), ())


def test_a_sharp_photograph_is_fit() -> None:
    _, intake = read_image(encoded(photograph(), "PNG"))
    assert (intake.warnings, intake.errors) == ((), ())


@pytest.mark.parametrize("noise", [0, 3])
def test_black_frame(noise: int) -> None:
    frame = np.abs(np.random.default_rng(0).normal(0, noise + 1e-9, (200, 200))).astype(np.uint8)
    frame[5, ::40] = 255  # hot pixels
    _, intake = read_image(encoded(frame, "PNG"))
    assert len(intake.errors) == 1
    assert intake.errors[0].startswith("black frame")


@pytest.mark.parametrize("noise", [0, 5])
def test_blank_frame(noise: int) -> None:
    frame = np.random.default_rng(0).normal(120, noise + 1e-9, (200, 200)).clip(0, 255).astype(np.uint8)
    _, intake = read_image(encoded(frame, "PNG"))
    assert intake.errors[0].startswith("almost blank")


@pytest.mark.parametrize(("share", "kind"), [(0.0, ""), (0.01, "warning"), (0.08, "error"), (0.5, "error")])
@pytest.mark.parametrize("name", ["PNG", "JPEG"])
def test_salt_and_pepper(share: float, kind: str, name: str) -> None:
    rng = np.random.default_rng(0)
    for picture in (photograph(), scan()):
        frame = picture.copy()
        hit = rng.random(frame.shape) < share
        frame[hit] = rng.integers(0, 2, int(hit.sum())) * 255
        _, intake = read_image(encoded(frame, name))
        said = [words for words in intake.errors if words.startswith("salt-and-pepper noise")]
        warned = [words for words in intake.warnings if words.startswith("salt-and-pepper noise")]
        assert (len(warned), len(said)) == (int(kind == "warning"), int(kind == "error"))


def test_specks_are_counted_one_by_one_at_edges_and_between_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = np.full((50, 40), 128, np.uint8)
    for place, level in (((0, 0), 255), ((20, 39), 0), ((21, 5), 255), ((49, 7), 0), ((30, 30), 210)):
        frame[place] = level
    frame[10:12, 10] = 255  # two that touch are no specks
    for rows in (50, 21, 1):
        monkeypatch.setattr("inspect_vit.intake.PART_PX", rows * 40)
        assert speck_share(frame) == 4 / frame.size


def test_washed_out_frame() -> None:
    frame = np.full((200, 200), 253, np.uint8)
    frame[:3] = photograph()[:3]
    _, intake = read_image(encoded(frame, "PNG"))
    assert intake.errors[0].startswith("washed out: 98%")


def test_over_exposed() -> None:
    frame = photograph()
    frame[:60] = 254
    _, intake = read_image(encoded(frame, "PNG"))
    assert intake.errors == ()
    assert intake.warnings[0].startswith("over-exposed: 30%")


def test_under_exposed() -> None:
    dark = photograph() // 4
    dark[:8, :8] = 120  # a bright pad
    _, intake = read_image(encoded(dark, "PNG"))
    assert intake.errors == ()
    assert "under-exposed" in intake.warnings[0]


@pytest.mark.parametrize(("part", "words"), [(0.2, "low contrast: 51"), (0.05, "low contrast: 12")])
def test_a_scan_of_little_contrast_is_not_inspected(part: float, words: str) -> None:
    _, intake = read_image(encoded((scan() * part + 100).astype(np.uint8), "PNG"))
    assert intake.errors[0].startswith(words)


def test_contrast_between_the_limits_is_warned_of() -> None:
    _, intake = read_image(encoded((scan() * 0.35 + 80).astype(np.uint8), "PNG"))
    assert intake.errors == ()
    assert intake.warnings[0].startswith("low contrast: 89")


def test_a_reference_must_look_like_the_board() -> None:
    board = np.repeat(photograph()[..., None], 3, 2)
    noisy = np.clip(board + np.random.default_rng(0).normal(0, 8, board.shape), 0, 255).astype(np.uint8)
    assert pair_faults(board, noisy) == ()
    for other in (255 - board, np.rot90(board).copy(), np.roll(board, 25, axis=1)):
        assert pair_faults(board, other)[0].startswith("reference does not fit")


def test_out_of_focus() -> None:
    soft = cv2.GaussianBlur(photograph(), (0, 0), 3)
    _, intake = read_image(encoded(soft, "PNG"))
    assert intake.errors == ()
    assert intake.warnings[0].startswith("out of focus")


def test_far_out_of_focus_is_not_inspected() -> None:
    _, intake = read_image(encoded(cv2.GaussianBlur(photograph(), (0, 0), 6), "PNG"))
    assert intake.errors[0].startswith("out of focus")


def test_too_dark_is_not_inspected() -> None:
    _, intake = read_image(encoded(photograph() // 9, "PNG"))
    assert intake.errors[0].startswith("too dark")


def test_motion_blur_along_one_direction() -> None:
    smeared = cv2.blur(photograph(), (15, 1))
    _, intake = read_image(encoded(smeared, "PNG"))
    assert "out of focus" in " ".join(intake.warnings)


def test_blur_effect_rises_with_blur_and_not_with_contrast() -> None:
    sharp = photograph()
    effects = [blur_effect(cv2.GaussianBlur(sharp, (0, 0), sigma)) for sigma in (0.5, 1, 2, 4)]
    assert effects == sorted(effects)
    faint = (sharp // 2 + 60).astype(np.uint8)
    assert abs(blur_effect(faint) - blur_effect(sharp)) < 0.1


def test_a_black_reference_stops_the_inspection_of_a_good_board() -> None:
    _, board = read_image(encoded(scan()))
    _, reference = read_image(encoded(np.zeros((160, 160), np.uint8)))
    combined = with_reference_faults(board, reference)
    assert (combined.width, combined.format) == (board.width, board.format)
    assert combined.errors == (f"reference: {reference.errors[0]}",)


def test_reports_of_a_good_pair_stay_clean() -> None:
    clean = IntakeReport("PNG", "L", 8, 160, 160)
    assert with_reference_faults(clean, clean) == clean


def test_sixteen_bit_frames_scaled_by_different_rules_are_not_compared() -> None:
    """A dark board is taken as 12 bit and its reference not: their greys are 16 times apart."""

    def frame(largest: int) -> bytes:
        return encoded((photograph() * (largest / 255)).astype(np.uint16))

    (_, dark), (_, bright) = read_image(frame(3000)), read_image(frame(60000))
    assert with_reference_faults(bright, bright).errors == ()
    (error,) = with_reference_faults(dark, bright).errors
    assert error.startswith("reference: scaled from 65535 to 255, the board from 4095")
    _, small = read_image(encoded(photograph()))
    assert with_reference_faults(small, bright).errors == with_reference_faults(dark, small).errors == ()
