"""`inspect-vit data`: check a set, convert it, make one. Heavy parts are imported where they are used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from inspect_vit.cli_export import export
from inspect_vit.console import say, stdout

app = typer.Typer(help="Check, convert and make data sets.", no_args_is_help=True)
app.command()(export)

FormatOption = Annotated[
    str,
    typer.Option(
        "--format",
        help="Label format: deeppcb, coco, yolo, voc, labelme, cvat, mvtec (also VisA), good (a folder of "
        "good boards); auto finds out and says so.",
    ),
]
ReferencesOption = Annotated[
    str | None,
    typer.Option(
        help="How boards find their golden reference: name (X_test to X_temp), name:PATTERN=NAME, "
        "table:FILE.csv or folder:FOLDER. Default: as pairs.csv in the set's folder or the format says."
    ),
]
RenameOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="OLD=NEW",
        help="The set's class OLD is the checkpoint's class NEW. Case, spaces, - and _ never matter. "
        "May be repeated.",
    ),
]
RedrawOption = Annotated[
    int | None,
    typer.Option(
        min=0,
        metavar="PX",
        help="Measure against boxes drawn anew: the bounds of what differs from the reference inside each "
        "label, this much wider on each side. For labels drawn otherwise than the model learnt.",
    ),
]
GroupsOption = Annotated[
    str | None,
    typer.Option(
        help="Which pictures are one board or lot: name:PATTERN, table:FILE.csv or folder. "
        "Default: as pairs.csv in the set's folder or the format says."
    ),
]
KINDS = ("open", "short", "mousebite", "spur", "copper", "pin-hole", "missing-hole")
"""Keys of training.defect_kinds.DEFECT_KINDS, which help must not import; a test holds them equal."""
WorkersOption = Annotated[int | None, typer.Option(min=1, help="Processes. Default: one per core.")]


@app.command()
def check(
    path: Annotated[Path, typer.Argument(help="Folder or label file of the set.")],
    out: Annotated[
        Path, typer.Option(help="Folder for check.html, check.json and quarantine.json; made if missing.")
    ] = Path("check"),
    format: FormatOption = "auto",
    references: ReferencesOption = None,
    groups: GroupsOption = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Look at this many pictures, evenly spaced. Default: all.")
    ] = None,
    workers: WorkersOption = None,
) -> None:
    """Find what is wrong with a data set. Exit code: 0 nothing, 1 errors found, 2 wrong usage."""
    from training.checks.check import run_check
    from training.formats.references import parse_groups, parse_references

    report = run_check(
        path,
        out=out,
        format=format,
        references=None if references is None else parse_references(references),
        groups=None if groups is None else parse_groups(groups),
        limit=limit,
        workers=workers,
    )
    raise typer.Exit(report.exit_code)


@app.command("import")
def import_(
    source: Annotated[Path, typer.Argument(help="Folder or label file of the set.")],
    out: Annotated[Path, typer.Argument(help="New folder for the converted set.")],
    format: FormatOption = "auto",
    to: Annotated[str, typer.Option(help="Format to write: coco, yolo, voc, labelme or cvat.")] = "coco",
    references: ReferencesOption = None,
    groups: GroupsOption = None,
    copy: Annotated[
        bool, typer.Option("--copy/--no-copy", help="Copy the pictures, or name them where they are.")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Convert a data set, read it back, and say what the format could not hold."""
    from training.formats.convert import import_dataset
    from training.formats.references import parse_groups, parse_references

    summary = import_dataset(
        source,
        out,
        from_format=format,
        to_format=to,
        references=None if references is None else parse_references(references),
        groups=None if groups is None else parse_groups(groups),
        copy_pictures=copy,
    )
    if as_json:
        print(json.dumps(summary, indent=2, allow_nan=False))
    else:
        _print_summary(summary)
    say(f"wrote {len(summary['written'])} files to {out}")


@app.command()
def synthesise(
    out: Annotated[
        Path, typer.Argument(help="Folder for the pairs and their COCO labels; a stopped run goes on.")
    ],
    count: Annotated[int, typer.Option(min=1, help="Pairs of board and golden reference to make.")] = 100,
    source: Annotated[
        list[str] | None,
        typer.Option(
            help="Where boards come from: procedural (made up), a folder of KiCad designs, or a folder of "
            "pictures of good boards. May be repeated. Default: procedural."
        ),
    ] = None,
    size: Annotated[int, typer.Option(help="Side of the pictures, px.")] = 640,
    style: Annotated[
        Literal["scan", "colour"], typer.Option(help="Two-tone scans as DeepPCB's, or colour photographs.")
    ] = "scan",
    copper: Annotated[
        Literal["auto", "dark", "light"],
        typer.Option(help="Which tone of good pictures is copper; auto judges, and refuses when unsure."),
    ] = "auto",
    px_per_mm: Annotated[
        tuple[float, float], typer.Option(help="Least and most px per mm of what is drawn from artwork.")
    ] = (48.0, 48.0),
    defects: Annotated[
        tuple[int, int], typer.Option(help="Least and most defects on a board that is not good.")
    ] = (4, 10),
    defect_px: Annotated[
        tuple[int, int], typer.Option(help="Least and most px of a defect's longer side.")
    ] = (4, 64),
    even_sizes: Annotated[
        bool,
        typer.Option(
            "--even-sizes/--usual-sizes",
            help="Sizes evenly spread over that range, in logarithm, or as usual for each class.",
        ),
    ] = False,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Class of defect to draw, one of {', '.join(KINDS)}. May be repeated. Default: all."
        ),
    ] = None,
    good_share: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Share of boards that get no defect.")
    ] = 0.1,
    margin: Annotated[
        int,
        typer.Option(
            min=0, help="Boxes are this many px wider than the defect on each side; DeepPCB's are 10."
        ),
    ] = 10,
    seed: Annotated[int, typer.Option(min=0, help="The same seed and settings make the same pictures.")] = 0,
    workers: WorkersOption = None,
) -> None:
    """Make boards with defects whose class and pixels are exactly known."""
    from training.pairs import DefectPlan
    from training.synthesise import synthesise as make

    plan = DefectPlan(
        count=defects,
        kinds=dict.fromkeys(kind or KINDS, 1.0),
        size_px=defect_px,
        even_sizes=even_sizes,
        margin_px=margin,
        good_share=good_share,
    )

    made = make(
        out,
        count=count,
        source=source or "procedural",
        size=size,
        style=style,
        copper=copper,
        px_per_mm=px_per_mm,
        plan=plan,
        seed=seed,
        workers=workers,
    )
    if not any(made.defects.values()) and defects[1] and good_share < 1:
        say("no defect found room: other classes, smaller sizes or another source may")
    for line in made.refused:
        say(f"left out {line}")
    counts = ", ".join(f"{number} {label}" for label, number in made.defects.items() if number)
    stdout().print(
        f"{made.num_pairs} pairs ({made.num_good} good boards): {counts or 'no defect'}", soft_wrap=True
    )
    say(f"wrote {made.labels}" + (f"; {made.num_kept} pairs were there already" if made.num_kept else ""))


def _print_summary(summary: dict[str, Any]) -> None:
    console = stdout()
    found = " (detected)" if summary["detected"] else ""
    counts = ", ".join(
        f"{summary[key]} {key.replace('_', ' ')}"
        for key in ("samples", "good_boards", "boxes", "outlines", "references", "groups")
    )
    console.print(
        f"{summary['from_format']}{found} to {summary['to_format']}: {counts}", soft_wrap=True, markup=False
    )
    for remark in summary["remarks"]:
        console.print(remark, soft_wrap=True, markup=False)
    for title, lines in (
        ("faults of the source", [f"{fault['where']}: {fault['message']}" for fault in summary["faults"]]),
        ("lost in writing", [f"{fault['where']}: {fault['message']}" for fault in summary["lost"]]),
        ("not the same when read back", summary["not_held"]),
    ):
        if lines:
            console.print(f"{title} ({len(lines)}):", markup=False)
            for line in lines[:20]:
                console.print(f"  {line}", soft_wrap=True, markup=False)
            if len(lines) > 20:
                console.print(f"  ... {len(lines) - 20} more; --json lists all")
