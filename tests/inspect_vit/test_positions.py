"""Position codes against values worked out by hand."""

from __future__ import annotations

import math

import pytest
import torch

from inspect_vit.positions import PositionCode, alibi_2d, sincos_2d


def test_alibi_falls_with_distance_and_by_head() -> None:
    bias = alibi_2d(2, 3, 4)
    assert bias.shape == (1, 2, 12, 12)
    start, end = 0, 2 * 4 + 3  # (0, 0) and (2, 3): sqrt(13) tokens apart
    assert bias[0, 0, start, end].item() == pytest.approx(-(2.0**-4) * math.sqrt(13))
    assert bias[0, 1, start, end].item() == pytest.approx(-(2.0**-8) * math.sqrt(13))
    assert torch.all(bias.diagonal(dim1=2, dim2=3) == 0)


@pytest.mark.parametrize("width", [8, 10, 33])
def test_sincos_tells_every_place_apart(width: int) -> None:
    code = sincos_2d(width, 5, 7)
    assert code.shape == (1, width, 5, 7)
    assert code[0, 0, 2, 3].item() == pytest.approx(math.sin(2.0), abs=1e-6)
    places = code[0].flatten(1).T
    assert torch.cdist(places, places).add(torch.eye(35)).min() > 0.1


def test_log_scan_depends_on_the_row_alone() -> None:
    code = PositionCode("log-scan", 6)
    added = (code(torch.zeros(1, 6, 5, 7)) / code.scan).detach()
    for row in range(5):
        torch.testing.assert_close(added[:, :, row], torch.full((1, 6, 7), math.log(row + 1)))


def test_learned_table_is_interpolated_to_other_grids() -> None:
    code = PositionCode("learned", 4)
    torch.testing.assert_close(code(torch.zeros(1, 4, 20, 20)), code.table)
    wide = code(torch.zeros(1, 4, 20, 40))
    assert wide.shape == (1, 4, 20, 40)
    torch.testing.assert_close(wide.mean(), code.table.mean(), atol=2e-3, rtol=0)


def test_convolution_sees_its_neighbours_across_windows() -> None:
    code = PositionCode("conv", 3)
    x = torch.randn(1, 3, 16, 16, requires_grad=True)
    code(x)[0, :, 8, 8].sum().backward()
    assert x.grad is not None
    touched = (x.grad.abs().sum(1)[0] > 0).nonzero()
    assert touched.min(0).values.tolist() == [7, 7]
    assert touched.max(0).values.tolist() == [9, 9]
