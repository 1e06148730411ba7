"""`inspect-vit calibrate`: thresholds that keep a promise. Heavy parts are imported where they are used."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

import typer

from inspect_vit.cli_data import FormatOption, GroupsOption, RedrawOption, ReferencesOption, RenameOption
from inspect_vit.console import calibration_tables, say, stdout


def calibrate(
    target: Annotated[
        list[str],
        typer.Option(
            metavar="'CLASS: RATE% @ CONFIDENCE%'",
            help="Largest share of boards with a defect of the class on which one may be missed, as "
            "'short: 1% @ 95%'; without CLASS, of all classes together. May be repeated.",
        ),
    ],
    data: Annotated[
        Path | None,
        typer.Option(
            help="Labelled boards that the model was not trained on. "
            "Default: deeppcb under $INSPECT_VIT_DATA."
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="Model file (.safetensors). Default: the one shipped with the package."),
    ] = None,
    out: Annotated[Path, typer.Option(help="File to write; the plot goes beside it as PNG.")] = Path(
        "calibration.json"
    ),
    with_reference: Annotated[
        bool | None,
        typer.Option(
            "--reference/--no-reference",
            help="Calibrate for boards with a golden reference, or for boards without. Default: with, where "
            "every picture has one.",
        ),
    ] = None,
    unit: Annotated[
        Literal["group", "picture"],
        typer.Option(
            help="One board is the pictures of a group, or each picture. Pictures of one board (or of boards "
            "that fail together) are one group: counted apart they promise too much."
        ),
    ] = "group",
    any_class: Annotated[
        bool,
        typer.Option(
            "--any-class/--own-class",
            help="A defect is found by a call of whatever class, or of its own class only.",
        ),
    ] = False,
    recipe: Annotated[
        str | None,
        typer.Option(help="Recipe of the boards; others void the claims. Default: none."),
    ] = None,
    camera: Annotated[
        str | None,
        typer.Option(help="Camera and lighting in your words; others void the claims. Default: none stated."),
    ] = None,
    format: FormatOption = "auto",
    references: ReferencesOption = None,
    groups: GroupsOption = None,
    rename: RenameOption = None,
    redraw: RedrawOption = None,
    split: Annotated[
        str | None,
        typer.Option(help="Part of the set, as it names it. Default: test for DeepPCB, else everything."),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="Inspect this many pictures, evenly spaced. Default: all of the split."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the document instead of tables.")] = False,
    device: Annotated[
        str,
        typer.Option(help="Where the model runs: auto (CUDA if there is one, else CPU), cpu, cuda, cuda:N."),
    ] = "auto",
) -> None:
    """Choose thresholds that keep a miss rate. Exit code: 0 all targets kept, 1 not all, 2 wrong usage."""
    from inspect_vit.calibration import parse_target
    from inspect_vit.checkpoint import default_checkpoint
    from training.calibrate import calibrate as run
    from training.formats.references import parse_groups, parse_references
    from training.measured_set import parse_renames

    made = run(
        checkpoint or default_checkpoint(),
        data or Path(os.environ.get("INSPECT_VIT_DATA", ".")) / "deeppcb",
        targets=[parse_target(text) for text in target],
        out=out,
        with_reference=with_reference,
        unit=unit,
        found_by="any class" if any_class else "own class",
        recipe=recipe,
        camera=camera,
        limit=limit,
        device=device,
        format=format,
        references=None if references is None else parse_references(references),
        groups=None if groups is None else parse_groups(groups),
        rename=parse_renames(rename or []),
        redraw_px=redraw,
        split=split,
    )
    if as_json:
        print(made.calibration.model_dump_json(indent=2))
    else:
        for table in calibration_tables(made.calibration):
            stdout().print(table)
    say(f"wrote {made.written[0]} and {made.written[1]}")
    raise typer.Exit(0 if all(claim.kept for claim in made.calibration.claims) else 1)
