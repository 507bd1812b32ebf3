"""Exact attention by tiles. In PyTorch the fused kernels of SDPA are that already."""

from .attention import scaled_dot_product_attention


def flash_attention(
    query, key, value, *, mask=None, bias=None, is_causal=False, query_offset=0, scale=None, softcap=None, dropout_p=0.0
):
    """`scaled_dot_product_attention` without its weights, so that PyTorch's fused kernels compute it wherever they can.

    Shapes: query (..., H, L, D), key (..., H_kv, S, D), value (..., H_kv, S, D_v) -> output (..., H, L, D_v).
    With a softcap there is no fused kernel: it is written out then, and takes memory for all scores. Errors: as there.
    Source: Dao et al. 2022.

    >>> import torch
    >>> x = torch.eye(2)
    >>> bool(torch.allclose(flash_attention(x, x, x), scaled_dot_product_attention(x, x, x)))
    True
    """
    return scaled_dot_product_attention(
        query, key, value, mask=mask, bias=bias, is_causal=is_causal, query_offset=query_offset, scale=scale,
        softcap=softcap, dropout_p=dropout_p,
    )  # fmt: skip
