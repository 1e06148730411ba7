"""Scaled dot-product attention behind one function; the only file that names a backend.

Shape letters: B batch (or batch x windows), H heads, N queries, M keys, D head_dim.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor
from torch.nn import functional

from inspect_vit.config import AttentionBackend
from inspect_vit.errors import ConfigError

SHORT_WINDOW = 256
"""On a CPU the plain product serves up to this many keys: faster at 64, and longer ones cost memory."""


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    dropout: float = 0.0,
    backend: AttentionBackend = "auto",
) -> Tensor:
    """Softmax(q k^T / sqrt(D) + bias) v, by the asked backend.

    Args:
        q: (B, H, N, D).
        k, v: (B, H, M, D).
        mask: bool, broadcastable to (B, H, N, M); True takes part. A row with no True gives zeros.
        bias: float, broadcastable to (B, H, N, M), added to the scaled scores (ALiBi).
        dropout: probability of dropping a weight; pass 0 outside training.

    Returns:
        (B, H, N, D), dtype of q.

    Raises:
        ConfigError: a mask that is not bool, or a backend that cannot run here or on these arguments.
    """
    if mask is not None and mask.dtype != torch.bool:
        raise ConfigError(f"attention mask has dtype {mask.dtype}, wanted torch.bool where True takes part")
    chosen = _choose(q, k, mask, bias, dropout) if backend == "auto" else backend
    if chosen == "flash":
        return _flash(q, k, v, mask=mask, bias=bias, dropout=dropout)
    if chosen == "sdpa":
        return _sdpa(q, k, v, mask=mask, bias=bias, dropout=dropout)
    weights = _softmax(_scores(q, k), mask=mask, bias=bias).to(v.dtype)
    return drop(weights, dropout) @ v if dropout else weights @ v


def attention_weights(
    q: Tensor, k: Tensor, *, mask: Tensor | None = None, bias: Tensor | None = None
) -> Tensor:
    """The weights that `attend` applies, for the query rows given: (B, H, N, M) of at least float32."""
    scores = _scores(q, k)
    return _softmax(scores if scores.dtype == torch.float64 else scores.float(), mask=mask, bias=bias)


def drop(weights: Tensor, share: float) -> Tensor:
    """Dropout (Srivastava et al. 2014) of that share, in steps of 1/256, as one random byte decides.

    Torch's own draws a double per weight: on a CPU that was a twelfth of a training step.
    """
    below = min(round(share * 256), 255)
    draws = torch.empty(-(-weights.numel() // 8), dtype=torch.int64, device=weights.device)
    bytes_ = draws.random_(-(2**63), None).view(torch.uint8)[: weights.numel()].view(weights.shape)
    return weights * (bytes_ >= below).to(weights.dtype).mul_(256 / (256 - below))


def _scores(q: Tensor, k: Tensor) -> Tensor:
    scores: Tensor = (q * q.shape[-1] ** -0.5) @ k.transpose(-2, -1)
    return scores


def _softmax(scores: Tensor, *, mask: Tensor | None, bias: Tensor | None) -> Tensor:
    """Over the last axis, in the scores' type: torch sums half types in float32."""
    if bias is not None:
        scores = scores + bias
    if mask is None:
        return scores.softmax(-1)
    lowest = torch.finfo(scores.dtype).min
    return scores.masked_fill(~mask, lowest).softmax(-1) * mask.any(-1, keepdim=True)


def _choose(
    q: Tensor, k: Tensor, mask: Tensor | None, bias: Tensor | None, dropout: float
) -> AttentionBackend:
    if q.is_cuda:
        half = q.dtype in (torch.float16, torch.bfloat16)
        return "flash" if half and mask is None and bias is None and _flash_installed() else "sdpa"
    return "eager" if k.shape[-2] <= SHORT_WINDOW or dropout else "sdpa"


def _sdpa(
    q: Tensor, k: Tensor, v: Tensor, *, mask: Tensor | None, bias: Tensor | None, dropout: float
) -> Tensor:
    if mask is None:
        merged = None if bias is None else bias.to(q.dtype)
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=merged, dropout_p=dropout)
    alive = mask.any(-1, keepdim=True)
    safe = mask | ~alive
    merged = safe if bias is None else bias.to(q.dtype).masked_fill(~safe, float("-inf"))
    return functional.scaled_dot_product_attention(q, k, v, attn_mask=merged, dropout_p=dropout) * alive


@cache
def _flash_installed() -> bool:
    return find_spec("flash_attn") is not None


def flash_layout(x: Tensor) -> Tensor:
    """(B, H, N, D) to flash-attn's (B, N, H, D); its own inverse."""
    return x.transpose(1, 2)


def _flash(
    q: Tensor, k: Tensor, v: Tensor, *, mask: Tensor | None, bias: Tensor | None, dropout: float
) -> Tensor:
    if mask is not None or bias is not None:
        kind = "a mask" if mask is not None else "a bias (ALiBi)"
        raise ConfigError(f"attention backend flash takes no mask and no bias, met {kind}; use sdpa or eager")
    if not q.is_cuda:
        raise ConfigError(
            f"attention backend flash needs a CUDA device, met tensors on {q.device}; use auto or sdpa"
        )
    if q.dtype not in (torch.float16, torch.bfloat16):
        raise ConfigError(
            f"attention backend flash needs float16 or bfloat16, met {q.dtype}; use auto or sdpa"
        )
    if not _flash_installed():
        raise ConfigError("attention backend flash needs the package flash-attn; install inspect-vit[gpu]")
    from flash_attn import flash_attn_func

    out: Tensor = flash_attn_func(flash_layout(q), flash_layout(k), flash_layout(v), dropout_p=dropout)
    return flash_layout(out)
