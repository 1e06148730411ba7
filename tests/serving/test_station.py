"""The station's pages as they are shipped, and the texts of their sources: without a browser or Node."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

STATION = Path(__file__).parents[2] / "serving" / "station"
DIST, SOURCES = STATION / "dist", STATION / "src"
CATALOGUE = sorted((SOURCES / "words").glob("*.ts"))
COMPONENTS = sorted(SOURCES.rglob("*.tsx"))
CODE = [path for path in sorted(SOURCES.rglob("*.ts*")) if path not in CATALOGUE]
TEXT = re.compile(r'^\s*"([\w.-]+)":\s*((?:"(?:[^"\\]|\\.)*"|\s|\+)+),', re.MULTILINE)
MAX_GZIPPED_KB = 350
# In folders by page; what lies beside them is for all pages.
PAGE_STYLES = sorted(SOURCES.glob("*/*.css"))
# The same in every language.
UNITS = {"px", "mm", "ppm", "ms", "s", "QA", "inspect-vit"}


def test_the_pages_name_no_other_host_and_run_nothing_inline(server: Any) -> None:
    for path in [*DIST.glob("*.html"), *DIST.glob("*.css"), *DIST.glob("*.svg")]:
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"(https?:)?//[a-z0-9]", text), path
        assert not re.search(r"<style|\sstyle=|\son\w+=", text if path.suffix == ".html" else ""), path
    answer = server.client.get("/station")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy and "http" not in policy
    assert server.client.get("/").headers["location"] == "/station"
    for name in re.findall(r'(?:href|src)="(/station/[^"]+)"', answer.text):
        assert server.client.get(name).status_code == 200


def test_the_scripts_are_small() -> None:
    size = sum(len(gzip.compress(path.read_bytes())) for path in DIST.glob("*.js"))
    assert size <= MAX_GZIPPED_KB * 1000


def outermost(css: str) -> list[str]:
    """What stands before the braces that lie in no others."""
    found, depth, start = [], 0, 0
    css = re.sub(r"/\*.*?\*/", "", css, flags=re.DOTALL)
    for at, letter in enumerate(css):
        if letter == "{":
            found += [css[start:at].strip()] if depth == 0 else []
            depth += 1
        elif letter == "}":
            depth, start = depth - 1, at + 1
    return found


@pytest.mark.parametrize("path", PAGE_STYLES, ids=lambda path: path.name)
def test_the_style_of_a_page_touches_no_other_page(path: Path) -> None:
    """Once loaded, a style sheet stays: two pages may well use the same word for a class."""
    for selector in outermost(path.read_text(encoding="utf-8")):
        assert selector.startswith("@keyframes") or re.fullmatch(
            r'\[data-page="\w+"\]|:is\(\[data-page="\w+"\](, \[data-page="\w+"\])*\)', selector
        ), f"{path}: {selector}"


def texts_of(path: Path) -> tuple[dict[str, str], dict[str, str]]:
    """(English, Chinese) of one part of the catalogue."""
    english, _, chinese = path.read_text(encoding="utf-8").partition("\n  },\n  {")
    return dict(TEXT.findall(english)), dict(TEXT.findall(chinese))


@pytest.mark.parametrize("path", CATALOGUE, ids=lambda path: path.stem)
def test_every_text_stands_in_both_languages_with_the_same_places(path: Path) -> None:
    english, chinese = texts_of(path)
    assert english.keys() == chinese.keys()
    for key, words in english.items():
        places = [sorted(re.findall(r"\{\w+\}", text)) for text in (words, chinese[key])]
        assert places[0] == places[1], key
        assert len(words) > 2 and len(chinese[key]) > 2, f"{key} is empty"


def test_every_key_that_is_asked_for_is_in_the_catalogue_and_none_is_left_over() -> None:
    known = {key for path in CATALOGUE for key in texts_of(path)[0]}
    assert len(known) > 20, "the catalogue is read"
    code = "\n".join(path.read_text(encoding="utf-8") for path in CODE)
    asked = set(re.findall(r'\bt\(\s*"([\w.-]+)"', code))
    assert asked <= known
    # `figures.period.${name}` asks for all that begin so.
    begun = tuple(prefix for prefix in re.findall(r"`([a-z]+\.[\w.-]*)\$\{", code))
    left = {key for key in known if f'"{key}"' not in code and not (begun and key.startswith(begun))}
    assert left == set()


def bare_texts(source: str) -> Iterator[str]:
    """What JSX would show as it stands: text between tags, and words in attributes that are read out."""
    source = re.sub(r"//[^\n]*|/\*.*?\*/|<kbd\b[^>]*>[^<{]*</kbd>", "", source, flags=re.DOTALL)
    yield from re.findall(r"[>}]\s*([^<>{}]*[A-Za-z\u4e00-\u9fff]{2}[^<>{}]*?)\s*</", source)
    yield from re.findall(r"(?<!=)>\s*([^<>{}=;()\[\],]*[A-Za-z]{2}[^<>{}=;()\[\],]*?)\s*\{", source)
    yield from re.findall(r'\b(?:aria-label|title|placeholder|alt)="([^"]*[A-Za-z]{2}[^"]*)"', source)


@pytest.mark.parametrize("path", COMPONENTS, ids=lambda path: path.relative_to(SOURCES).as_posix())
def test_no_text_stands_in_a_component(path: Path) -> None:
    found = [text for text in bare_texts(path.read_text(encoding="utf-8")) if text not in UNITS]
    assert found == [], "texts belong into src/words/"


def test_bare_text_is_found_where_there_is_some() -> None:
    sources = [
        "<p>Ready</p>",
        "<p>\n  {n} boards are open\n</p>",
        "<p>Boards: {n}</p>",
        '<input aria-label="Serial" />',
        "<b>\u677f\u53f7</b>",
    ]
    assert [len(list(bare_texts(source))) for source in sources] == [1, 1, 1, 1, 1]
    fine = (
        '<p class="muted">{t("a.b")}</p>; const f = (x: Map<string, T>): T => { return x; }; <kbd>Enter</kbd>'
    )
    assert list(bare_texts(fine)) == []
