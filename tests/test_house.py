"""The rules of the house, read from the source: who may import whom, plain text, file length, packaging."""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import yaml

PROJECT = Path(__file__).resolve().parents[1]
PACKAGES = ("inspect_vit", "training", "serving")
SOURCES = {
    ".".join(path.relative_to(PROJECT).with_suffix("").parts).removesuffix(".__init__"): path
    for package in PACKAGES
    for path in sorted((PROJECT / package).rglob("*.py"))
}
COMMANDS = tuple(
    f"inspect_vit.cli{part}"
    for part in (
        *("", "_add_class", "_calibrate", "_data", "_evaluate", "_export", "_gate"),
        *("_keys", "_models", "_serve", "_store"),
    )
)
LIBRARY = [name for name in SOURCES if name.split(".")[0] == "inspect_vit" and name not in COMMANDS]
NETWORK = ["attention", "positions", "layers", "model", "heads"]
LAYERS = [
    ["errors"],
    ["results", "config"],
    ["attention"],
    ["layers"],
    ["model"],
    ["checkpoint"],
    ["inspector"],
]
MAX_LINES = 300


def _imports(tree: ast.AST, module: str, *, inside_functions: bool) -> Iterator[str]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = module.split(".") if SOURCES[module].name == "__init__.py" else module.split(".")[:-1]
            base = ".".join(parents[: len(parents) - node.level + 1]) if node.level else ""
            source = ".".join(part for part in (base, node.module) if part)
            yield source
            yield from (name for alias in node.names if (name := f"{source}.{alias.name}") in SOURCES)
        elif inside_functions or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _imports(node, module, inside_functions=inside_functions)


@cache
def imports_of(module: str, *, inside_functions: bool = True) -> frozenset[str]:
    """Dotted names that a module of ours imports; a name that is a module itself is resolved to it."""
    tree = ast.parse(SOURCES[module].read_text(encoding="utf-8"))
    return frozenset(_imports(tree, module, inside_functions=inside_functions))


def everything_behind(module: str) -> set[str]:
    """What is loaded with a module: its top-level imports and, for ours, theirs. Not: packages."""
    found: set[str] = set()
    waiting = [module]
    while waiting:
        for name in imports_of(waiting.pop(), inside_functions=False) - found:
            found.add(name)
            if name in SOURCES and name not in PACKAGES:
                waiting.append(name)
    return found


def roots(names: frozenset[str] | set[str]) -> set[str]:
    return {name.split(".")[0] for name in names}


@pytest.mark.parametrize("module", LIBRARY)
def test_the_library_knows_no_service_trainer_or_database(module: str) -> None:
    outside = {"bentoml", "albumentations", "sqlalchemy", "alembic", "starlette", "training", "serving"}
    assert not roots(imports_of(module)) & outside


def test_the_command_line_loads_heavy_parts_inside_functions() -> None:
    heavy = {"bentoml", "albumentations", "sqlalchemy", "torch", "torchvision", "timm", "training", "serving"}
    assert not roots(everything_behind("inspect_vit.cli")) & heavy


def test_drawing_needs_no_torch() -> None:
    assert not roots(everything_behind("inspect_vit.overlay")) & {"torch", "torchvision"}


@pytest.mark.parametrize("name", NETWORK)
def test_the_network_needs_no_opencv(name: str) -> None:
    assert "cv2" not in roots(everything_behind(f"inspect_vit.{name}"))


def test_the_library_is_layered() -> None:
    rank = {f"inspect_vit.{name}": i for i, names in enumerate(LAYERS) for name in names}
    upward = [
        f"{module} imports {name}"
        for module in rank
        for name in imports_of(module)
        if name in rank and name != module and rank[name] > rank[module]
    ]
    assert not upward


@pytest.mark.parametrize(("package", "other"), [("training", "serving"), ("serving", "training")])
def test_training_and_serving_never_meet(package: str, other: str) -> None:
    modules = [name for name in SOURCES if name.split(".")[0] == package]
    assert modules
    assert [name for name in modules if other in roots(imports_of(name))] == []


def test_one_file_names_the_attention_backend() -> None:
    assert [name for name in SOURCES if "flash_attn" in roots(imports_of(name))] == ["inspect_vit.attention"]


@pytest.mark.parametrize("path", sorted((PROJECT / "configs").glob("*.yaml")), ids=lambda path: path.name)
def test_configurations_load(path: Path) -> None:
    from inspect_vit.config import ModelConfig, load_config
    from training.config import TrainConfig

    is_run = "model" in yaml.safe_load(path.read_text(encoding="utf-8"))
    load_config(path, TrainConfig if is_run else ModelConfig)


def test_code_is_ascii() -> None:
    files = [
        PROJECT / "Makefile",
        PROJECT / ".ci" / "run",
        PROJECT / "pyproject.toml",
        PROJECT / "bentofile.yaml",
    ]
    files += [*SOURCES.values(), *(PROJECT / "configs").glob("*.yaml")]
    assert [str(path) for path in files if not path.read_bytes().isascii()] == []


def test_long_files_say_why() -> None:
    for path in [*SOURCES.values(), *(PROJECT / "tests").rglob("*.py")]:
        text = path.read_text(encoding="utf-8")
        if text.count("\n") > MAX_LINES:
            docstring = ast.get_docstring(ast.parse(text)) or ""
            assert f"{MAX_LINES} lines" in docstring, (
                f"{path} is long; split it or defend it in its docstring"
            )


def test_documents_name_no_machine() -> None:
    for path in [
        *PROJECT.glob("*.md"),
        *(PROJECT / "docs").rglob("*.md"),
        *(PROJECT / "data_samples").glob("*.md"),
    ]:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"(?<![\w.])/(home|root|work|tmp|Users|mnt|opt)/", text), path
        assert not re.search(r"\b(TODO|FIXME|XXX)\b", text), path


def test_links_between_documents_lead_somewhere() -> None:
    for path in [
        *PROJECT.glob("*.md"),
        *(PROJECT / "docs").rglob("*.md"),
        *(PROJECT / "data_samples").glob("*.md"),
    ]:
        for target in re.findall(r"\]\(([^)#]+)", path.read_text(encoding="utf-8")):
            if not target.startswith(("http://", "https://")):
                assert (path.parent / target).exists(), f"{path.name} links to {target}"


def _manifest() -> dict[str, dict[str, object]]:
    manifest: dict[str, dict[str, object]] = tomllib.loads(
        (PROJECT / "pyproject.toml").read_text(encoding="utf-8")
    )
    return manifest


def _name(requirement: str) -> str:
    match = re.match(r"[\w.-]+", requirement)
    assert match
    return re.sub(r"[-_.]+", "-", match[0]).lower()


def test_every_import_is_a_declared_dependency() -> None:
    project = _manifest()["project"]
    extras = project["optional-dependencies"]
    assert isinstance(project["dependencies"], list)
    assert isinstance(extras, dict)
    declared = {_name(item) for item in [*project["dependencies"], *extras["gpu"], *extras["export"]]}
    distributions = importlib.metadata.packages_distributions()
    for module in SOURCES:
        for root in roots(imports_of(module)) - set(sys.stdlib_module_names) - set(PACKAGES):
            names = {_name(name) for name in distributions.get(root, [root])}
            assert names & declared, f"{module} imports {root}, which pyproject.toml does not name"


def test_the_bento_installs_what_the_package_needs() -> None:
    bento = yaml.safe_load((PROJECT / "bentofile.yaml").read_text(encoding="utf-8"))
    assert bento["python"]["packages"] == _manifest()["project"]["dependencies"]


def test_the_command_is_where_the_manifest_says() -> None:
    scripts = _manifest()["project"]["scripts"]
    assert isinstance(scripts, dict)
    module, function = scripts["inspect-vit"].split(":")
    assert callable(getattr(importlib.import_module(module), function))


@pytest.mark.parametrize("target", ["install", "run", "test"])
def test_make_targets_exist(target: str) -> None:
    result = subprocess.run(
        ["make", "--dry-run", target], cwd=PROJECT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
