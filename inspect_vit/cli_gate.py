"""The promotion gate of `inspect-vit evaluate --against`. Heavy parts are imported where they are used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import typer

from inspect_vit.console import say
from inspect_vit.errors import ConfigError, InspectionError
from inspect_vit.files import write_atomically
from inspect_vit.gate_report import EXIT_CODES, REFUSAL_NAME

EXIT_INTERRUPTED = 130

AgainstOption = Annotated[
    Path | None,
    typer.Option(
        metavar="BASE",
        help="Checkpoint in production: judge whether --checkpoint may replace it, on --acceptance, and "
        "measure nothing else. Exit code: 0 pass, 1 fail, 3 insufficient. Default: none.",
    ),
]
AcceptanceOption = Annotated[
    list[Path] | None,
    typer.Option(
        help="With --against: folder of labelled boards that neither was trained on. May be repeated."
    ),
]
TargetOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="'CLASS: RATE% @ CONFIDENCE%'",
        help="With --against: choose the candidate's thresholds for it on the acceptance boards, as "
        "calibrate does. May be repeated. Default: what --thresholds-of kept, else the candidate's own "
        "thresholds.",
    ),
]
ThresholdsOfOption = Annotated[
    Path | None,
    typer.Option(
        help="With --against: the base's calibration in production (JSON). Default: its own thresholds."
    ),
]
MarginOption = Annotated[
    float,
    typer.Option(
        help="With --against: share of the boards with a defect of a class on which one may be newly missed. "
        "0.02 takes 149 boards with such a defect at 95 %, 0.01 takes 299."
    ),
]
FalseCallMarginOption = Annotated[
    float | None,
    typer.Option(
        help="With --against: share of all boards that may be newly stopped for nothing. Default: --margin."
    ),
]
ConfidenceOption = Annotated[
    float, typer.Option(help="With --against: of each bound, one-sided; 0.5 to under 1.")
]
ModeOption = Annotated[
    bool | None,
    typer.Option(
        "--reference/--no-reference",
        help="With --against: inspect with golden references, or without. Default: with, where every "
        "picture has one.",
    ),
]
UnitOption = Annotated[
    Literal["group", "picture"],
    typer.Option(
        help="With --against: one board is the pictures of a group, or each picture, which promises too much "
        "where they show one board."
    ),
]
AnyClassOption = Annotated[
    bool | None,
    typer.Option(
        "--any-class/--own-class",
        help="With --against: a defect is found by a call of whatever class, or of its own class only. "
        "Default: as in --thresholds-of, else own class.",
    ),
]
RenamedOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="OLD=NEW",
        help="With --against: the base's class OLD is the candidate's NEW. May be repeated.",
    ),
]
RetiredOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CLASS", help="With --against: the candidate need not know it any more. May be repeated."
    ),
]
RecipeOption = Annotated[
    str | None, typer.Option(help="With --against: recipe of the boards. Default: none.")
]
RecipeSettingsOption = Annotated[
    Path | None,
    typer.Option(
        help="With --against: the recipe's settings (JSON). What lies in its ignore zones or is smaller than "
        "its smallest defects does not count. Default: everything counts."
    ),
]
GoldenOption = Annotated[
    list[Path] | None,
    typer.Option(
        help="With --recipe-settings: picture of a golden reference of the recipe, on which its zones are "
        "drawn. May be repeated. Default: the boards' own references, else the boards."
    ),
]
CameraOption = Annotated[
    str | None,
    typer.Option(help="With --against: camera and lighting, as calibrated. Default: none stated."),
]
CacheOption = Annotated[
    Path | None,
    typer.Option(
        help="With --against: folder that keeps what each version says of each picture, so that the next "
        "gate need not inspect it again. Default: looks/ in --out."
    ),
]


class GateOptions(TypedDict):
    """As typed."""

    acceptance: Sequence[Path]
    target: Sequence[str]
    thresholds_of: Path | None
    margin: float
    false_call_margin: float | None
    confidence: float
    with_reference: bool | None
    unit: Literal["group", "picture"]
    any_class: bool | None
    renamed: Sequence[str]
    retired: Sequence[str]
    recipe: str | None
    recipe_settings: Path | None
    goldens: Sequence[Path]
    camera: str | None
    cache: Path | None
    limit: int | None
    device: str


def judge_promotion(
    candidate: Path, base: Path, *, out: Path, options: GateOptions, reading: Mapping[str, Any]
) -> int:
    """Run the gate, show its page, say what was written; the exit code.

    Args:
        reading: how each folder is read, as `training.measured_set.ReadOptions`.

    Raises:
        ConfigError: an option that cannot work; `training.gate.run_gate` has them all. The words are left in
            `out` too, for whoever asks later why it could not judge.
    """
    from inspect_vit.calibration import parse_target
    from training.gate import run_gate

    by_any = options["any_class"]
    try:
        gated = run_gate(
            candidate,
            base,
            options["acceptance"],
            out=out,
            targets=[parse_target(text) for text in options["target"]],
            thresholds_of=options["thresholds_of"],
            with_reference=options["with_reference"],
            unit=options["unit"],
            found_by=None if by_any is None else "any class" if by_any else "own class",
            margin=options["margin"],
            false_call_margin=options["false_call_margin"],
            confidence=options["confidence"],
            renamed=parse_renamed(options["renamed"]),
            retired=options["retired"],
            recipe=options["recipe"],
            recipe_settings=options["recipe_settings"],
            goldens=options["goldens"],
            camera=options["camera"],
            cache=options["cache"],
            limit=options["limit"],
            device=options["device"],
            **reading,
        )
    except KeyboardInterrupt:
        say(f"stopped; the same command goes on with what is kept in {options['cache'] or out}")
        return EXIT_INTERRUPTED
    except InspectionError as error:
        with suppress(OSError):
            out.mkdir(parents=True, exist_ok=True)
            write_atomically(out / REFUSAL_NAME, f"{error}\n".encode())
        raise
    page = gated.written[1]
    print(page.read_text(encoding="utf-8"))
    say(f"wrote {gated.written[0]} and {page}")
    return EXIT_CODES[gated.gate.result]


def parse_renamed(pairs: Sequence[str]) -> dict[str, str]:
    """OLD=NEW of each --renamed. Raises ConfigError."""
    renames: dict[str, str] = {}
    wanted = "CLASS_OF_THE_BASE=CLASS_OF_THE_CANDIDATE, each once"
    for pair in pairs:
        old, _, new = pair.partition("=")
        if not old or not new or old in renames:
            raise ConfigError(f"--renamed {pair!r}; wanted {wanted}")
        renames[old] = new
    return renames
