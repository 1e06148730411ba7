"""An examination as one HTML file that needs nothing beside it."""

from __future__ import annotations

from pathlib import Path

import jinja2

from inspect_vit.doctor import Examination
from inspect_vit.doctor_findings import Health
from inspect_vit.doctor_plots import draw_plots
from inspect_vit.doctor_report import check_rows, number, remedies
from inspect_vit.model import HierarchicalViT


def write_page(
    path: Path, model: HierarchicalViT, examination: Examination, *, name: str, version: str, boards: str
) -> None:
    """Draw the plots and write the page."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    counts = [(health, sum(f.health is health for f in examination.findings)) for health in Health]
    page = environment.get_template("doctor_page.html").render(
        name=name,
        version=version,
        boards=boards,
        health=examination.health,
        counts=counts,
        rows=check_rows(examination.findings),
        remedies=remedies(examination.findings),
        plots=draw_plots(model, examination),
        number=number,
    )
    path.write_text(page, encoding="utf-8")
