"""The definition of attention in float64, by explicit loops. No test compares the library with itself alone."""

import math

import numpy as np


def attention(query, key, value, *, mask=None, bias=None, is_causal=False, query_offset=0, scale=None, softcap=None):
    """Output and weights; a key that may not be attended is never read."""
    query, key, value = (np.asarray(x, np.float64) for x in (query, key, value))
    *lead, L, D = query.shape
    S, group = key.shape[-2], query.shape[-3] // key.shape[-3] if query.ndim > 2 and key.shape[-3] else 1
    scale = 1 / math.sqrt(D) if scale is None else scale
    mask = np.broadcast_to(True if mask is None else mask, (*lead, L, S))
    bias = np.broadcast_to(0.0 if bias is None else np.asarray(bias, np.float64), (*lead, L, S))
    output, weights = np.zeros((*lead, L, value.shape[-1])), np.zeros((*lead, L, S))
    for index in np.ndindex(*lead):
        kv = (*index[:-1], index[-1] // group) if index else ()
        for i in range(L):
            seen, scores = [], []
            for j in range(S):
                if not mask[index][i, j] or (is_causal and j > query_offset + i) or bias[index][i, j] == -math.inf:
                    continue
                score = sum(query[index][i, d] * key[kv][j, d] for d in range(D)) * scale
                if softcap is not None:
                    score = softcap * math.tanh(score / softcap)
                seen.append(j)
                scores.append(score + bias[index][i, j])
            if not seen:
                continue
            exps = [math.exp(score - max(scores)) for score in scores]
            for j, e in zip(seen, exps, strict=True):
                weights[index][i, j] = e / math.fsum(exps)
                output[index][i] += weights[index][i, j] * value[kv][j]
    return output, weights


def multihead(x, W_Q, W_K, W_V, W_O, num_heads, b_Q=0, b_K=0, b_V=0, b_O=0, key=None, value=None, mask=None):
    """The whole layer on one sequence (L, E), head by head with slices: no split, no merge, no transposed axes."""
    key = x if key is None else key
    value = key if value is None else value
    q, k, v = x @ W_Q + b_Q, key @ W_K + b_K, value @ W_V + b_V
    D = W_Q.shape[1] // num_heads
    heads = [slice(h * D, (h + 1) * D) for h in range(num_heads)]
    return sum(attention(q[:, h], k[:, h], v[:, h], mask=mask)[0] @ W_O[h] for h in heads) + b_O
