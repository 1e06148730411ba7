"""attend() against a float64 loop, its backends against each other, its refusals."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from inspect_vit.attention import attend, attention_weights, drop, flash_layout
from inspect_vit.errors import ConfigError
from inspect_vit.positions import alibi_2d


def by_hand(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, bias: Tensor | None = None
) -> Tensor:
    """Attention written out row by row in float64."""
    q, k, v = q.double(), k.double(), v.double()
    out = torch.zeros_like(q)
    for b in range(q.shape[0]):
        for h in range(q.shape[1]):
            for n in range(q.shape[2]):
                scores = []
                for m in range(k.shape[2]):
                    score = sum(float(a) * float(c) for a, c in zip(q[b, h, n], k[b, h, m], strict=True))
                    score /= math.sqrt(q.shape[3])
                    score += 0.0 if bias is None else float(bias[0, h, n, m])
                    scores.append(score if mask is None or bool(mask[b, 0, n, m]) else -math.inf)
                if max(scores) == -math.inf:
                    continue
                weights = [math.exp(s - max(scores)) for s in scores]
                for m, weight in enumerate(weights):
                    out[b, h, n] += weight / sum(weights) * v[b, h, m]
    return out


def inputs(*, tokens: int = 9, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(2, 2, tokens, 8, generator=generator).to(dtype) for _ in range(3))
    return q, k, v


@pytest.mark.parametrize("backend", ["eager", "sdpa", "auto"])
@pytest.mark.parametrize("extra", ["nothing", "mask", "bias", "mask and bias"])
def test_equals_a_float64_loop(backend: str, extra: str) -> None:
    q, k, v = inputs()
    mask = (
        torch.rand(2, 1, 9, 9, generator=torch.Generator().manual_seed(1)) > 0.4 if "mask" in extra else None
    )
    if mask is not None:
        mask[1, 0, 3] = False  # one row that may attend to nothing
    bias = alibi_2d(2, 3, 3) if "bias" in extra else None
    out = attend(q, k, v, mask=mask, bias=bias, backend=backend)  # type: ignore[arg-type]
    torch.testing.assert_close(out.double(), by_hand(q, k, v, mask, bias), atol=1e-5, rtol=1e-5)
    if mask is not None:
        assert torch.all(out[1, :, 3] == 0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_backends_agree_within_twice_the_error_of_low_precision(dtype: torch.dtype) -> None:
    q, k, v = inputs(tokens=64)
    exact = attend(q.double(), k.double(), v.double(), backend="eager")
    low = [t.to(dtype) for t in (q, k, v)]
    plain = ((low[0] @ low[1].transpose(-2, -1)) * 8**-0.5).softmax(-1) @ low[2]
    allowed = 2 * (plain.double() - exact).abs().max()
    for backend in ("eager", "sdpa"):
        out = attend(low[0], low[1], low[2], backend=backend)  # type: ignore[arg-type]
        assert out.dtype == dtype
        assert (out.double() - exact).abs().max() <= allowed


def test_large_scores_stay_finite_in_half_precision() -> None:
    q, k, v = (100 * t for t in inputs(dtype=torch.float16))
    for backend in ("eager", "sdpa"):
        assert torch.isfinite(attend(q, k, v, backend=backend)).all()  # type: ignore[arg-type]


def test_gradients_of_a_fully_masked_row_are_finite() -> None:
    for backend in ("eager", "sdpa"):
        q, k, v = (t.requires_grad_() for t in inputs())
        mask = torch.ones(2, 1, 9, 9, dtype=torch.bool)
        mask[0, 0, 2] = False
        attend(q, k, v, mask=mask, backend=backend).sum().backward()  # type: ignore[arg-type]
        assert all(t.grad is not None and torch.isfinite(t.grad).all() for t in (q, k, v))


def test_dropout_drops_and_keeps_the_mean() -> None:
    torch.manual_seed(0)
    q, k, _ = inputs(tokens=64)
    v = torch.ones(2, 2, 64, 8)
    for backend in ("eager", "sdpa"):
        out = attend(q, k, v, dropout=0.5, backend=backend)  # type: ignore[arg-type]
        assert out.std() > 0.05
        assert out.mean().item() == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize("share", [0.001, 0.1, 0.5, 0.999])
def test_drops_its_share_in_steps_of_a_byte_and_scales_up_the_rest(share: float) -> None:
    torch.manual_seed(0)
    weights = torch.ones(3, 347, 1023)  # 1065009 bytes, not a multiple of eight
    dropped = drop(weights, share)
    expected = min(round(share * 256), 255) / 256
    assert (dropped == 0).double().mean().item() == pytest.approx(expected, abs=0.002)
    assert dropped.max().item() == pytest.approx(1 / (1 - expected))
    pattern = (dropped == 0).flatten()[: 8 * (weights.numel() // 8)].view(-1, 8).double()
    assert pattern.mean(0).tolist() == pytest.approx([expected] * 8, abs=0.006), "some bytes are not uniform"


def test_weights_of_some_rows_are_those_of_all_rows() -> None:
    q, k, _ = inputs()
    weights = attention_weights(q, k)
    torch.testing.assert_close(attention_weights(q[:, :, 2:5], k), weights[:, :, 2:5])
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 2, 9))


def test_refuses_a_mask_that_is_not_bool() -> None:
    q, k, v = inputs()
    with pytest.raises(ConfigError, match=r"torch\.float32, wanted torch\.bool"):
        attend(q, k, v, mask=torch.zeros(2, 1, 9, 9))


def test_flash_says_why_it_cannot_run() -> None:
    q, k, v = inputs()
    with pytest.raises(ConfigError, match="needs a CUDA device, met tensors on cpu"):
        attend(q, k, v, backend="flash")
    with pytest.raises(ConfigError, match="takes no mask and no bias, met a bias"):
        attend(q, k, v, bias=alibi_2d(2, 3, 3), backend="flash")
    with pytest.raises(ConfigError, match="met a mask"):
        attend(q, k, v, mask=torch.ones(2, 1, 9, 9, dtype=torch.bool), backend="flash")


def test_flash_layout_puts_heads_after_tokens() -> None:
    q = torch.arange(2 * 3 * 4 * 5).view(2, 3, 4, 5)
    assert flash_layout(q).shape == (2, 4, 3, 5)
    assert flash_layout(q)[1, 3, 2, 4] == q[1, 2, 3, 4]
    assert torch.equal(flash_layout(flash_layout(q)), q)


@pytest.mark.skipif(
    not torch.cuda.is_available(), reason="no CUDA device: the flash kernel is not tested here"
)
def test_flash_kernel_agrees_with_sdpa() -> None:
    q, k, v = (t.cuda() for t in inputs(tokens=64, dtype=torch.bfloat16))
    torch.testing.assert_close(
        attend(q, k, v, backend="flash"), attend(q, k, v, backend="sdpa"), atol=2e-2, rtol=2e-2
    )
