"""Configuration: faults are named with their path, overrides land where they should."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspect_vit.config import ModelConfig, load_config
from inspect_vit.errors import ConfigError
from training.config import TrainConfig


@pytest.fixture
def nano(project: Path) -> Path:
    return project / "configs" / "nano.yaml"


def test_a_typo_answers_with_its_path(nano: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text(nano.read_text().replace("head_dim: 32", "head_dmi: 32"))
    with pytest.raises(ConfigError, match=r"levels\.0\.head_dmi: Extra inputs are not permitted"):
        load_config(broken, ModelConfig)


def test_head_dim_that_does_not_divide_names_the_nearest_sizes(nano: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"embed_dim 32.*head_dim 24.*use embed_dim 24 or 48, or head_dim 32"
    ):
        load_config(nano, ModelConfig, ["levels.0.head_dim=24"])


def test_overrides_take_yaml_and_exponents(project: Path) -> None:
    config = load_config(
        project / "configs" / "deeppcb_nano.yaml",
        TrainConfig,
        ["optim.lr=3e-4", "model.levels.1.depth=5", 'data.val_groups=["77000"]', "epochs=2"],
    )
    assert config.optim.lr == 3e-4
    assert config.model.levels[1].depth == 5
    assert config.data.val_groups == ("77000",)
    assert config.epochs == 2


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("epochs", "wanted key.path=value"),
        ("model.levels.7.depth=1", "'7' is not an index of a list of 3"),
        ("epochs.deep=1", "epochs is a value, not a section"),
        ("epochs=many", "epochs: Input should be a valid integer"),
        ("batch_size=7", "batch_size 7 must be a multiple of devices 2"),
        ("data.crop_size=100", "data.crop_size 100 must be a multiple of model.size_multiple 320"),
        ("model.size_multiple=100", "size_multiple 100 must be a multiple of levels"),
        ("model.class_names=[a, a]", "holds a name twice"),
        ("model.envelope_radii=[3, 1]", "must rise and start above 0"),
    ],
)
def test_bad_overrides_say_what_is_wrong(project: Path, override: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words.replace("(", r"\(")):
        load_config(project / "configs" / "deeppcb_nano.yaml", TrainConfig, [override])


def test_unreadable_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read the configuration .*nowhere\.yaml"):
        load_config(tmp_path / "nowhere.yaml", ModelConfig)
    bad = tmp_path / "bad.yaml"
    bad.write_text("levels: [")
    with pytest.raises(ConfigError, match="not valid YAML"):
        load_config(bad, ModelConfig)
    bad.write_text("- 1")
    with pytest.raises(ConfigError, match="holds list, wanted a mapping"):
        load_config(bad, ModelConfig)
