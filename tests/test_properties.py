"""What must hold for every input: hypothesis draws sizes, masks and dtypes, both paths answer to the loops."""

import numpy as np
import reference
from common import close, numpy_path, torch_path
from hypothesis import given
from hypothesis import strategies as st

PATHS = [numpy_path(), torch_path()]


@st.composite
def problem(draw, dtypes=(np.float32, np.float64)):
    """Query, key, value and options of random sizes."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    B, H_kv, group, L, S, D, D_v = (draw(st.integers(1, n)) for n in (2, 2, 3, 6, 6, 5, 5))
    H, dtype = H_kv * group, draw(st.sampled_from(dtypes))
    size = draw(st.sampled_from([0.1, 1.0, 10.0]))
    q, k, v = (
        rng.standard_normal(s).astype(dtype) * dtype(size) for s in ((B, H, L, D), (B, H_kv, S, D), (B, H_kv, S, D_v))
    )
    layout = draw(st.sampled_from(["plain", "length first", "backwards", "every other"]))
    if layout == "length first":  # as split_heads gives them
        q, k, v = (np.ascontiguousarray(x.swapaxes(1, 2)).swapaxes(1, 2) for x in (q, k, v))
    elif layout == "backwards":
        q, k, v = (np.ascontiguousarray(x[..., ::-1])[..., ::-1] for x in (q, k, v))
    elif layout == "every other":
        q, k, v = (np.repeat(x, 2, axis=-1)[..., ::2] for x in (q, k, v))
    options = {"is_causal": draw(st.booleans()), "scale": draw(st.sampled_from([None, 0.0, -0.5, 2.0])),
               "softcap": draw(st.sampled_from([None, 0.5, 30.0]))}  # fmt: skip
    if options["is_causal"]:
        options["query_offset"] = draw(st.integers(-2, 4))
    shape = [draw(st.sampled_from([1, n])) for n in (B, H, L, S)][draw(st.integers(0, 3)) :]
    if draw(st.booleans()):
        options["mask"] = rng.random(shape) > draw(st.sampled_from([0.2, 0.6, 1.0]))
    if draw(st.booleans()):
        bias = rng.standard_normal(shape)
        options["bias"] = np.where(rng.random(shape) > 0.8, -np.inf, bias)
    return q, k, v, options


@given(problem())
def test_every_route_equals_the_loops(given_problem):
    q, k, v, options = given_problem
    want, want_weights = reference.attention(q, k, v, **options)
    # float32 scores of size s carry an error of about s * 6e-8, which exp turns into a relative error of the weights
    largest = np.abs(q).max() * np.abs(k).max() * q.shape[-1]
    tolerance = {np.float32: 1e-6, np.float64: 1e-12}[q.dtype.type] * max(1, largest / 8)
    for path in PATHS:
        output, weights = path.scaled_dot_product_attention(q, k, v, return_weights=True, **options)
        close(output, want, tolerance)
        close(weights, want_weights, tolerance)
        close(path.scaled_dot_product_attention(q, k, v, **options), want, tolerance)
        close(path.flash_attention(q, k, v, **options), want, tolerance)
        sums = weights.sum(-1)
        assert np.logical_or(np.abs(sums - 1) < 1e-5, sums == 0).all() and (weights >= 0).all()


@given(problem(dtypes=(np.float64,)))
def test_batch_and_heads_are_independent(given_problem):
    q, k, v, options = given_problem
    options = {name: x for name, x in options.items() if not isinstance(x, np.ndarray)}
    group = q.shape[1] // k.shape[1]
    for path in PATHS:
        whole = path.scaled_dot_product_attention(q, k, v, **options)
        for b, h in np.ndindex(q.shape[:2]):
            alone = path.scaled_dot_product_attention(q[b, h], k[b, h // group], v[b, h // group], **options)
            close(whole[b, h], alone)


@given(problem(dtypes=(np.float64,)), st.randoms(use_true_random=False))
def test_order_of_queries_and_keys_does_not_matter(given_problem, random):
    """Permuted queries give permuted outputs; permuted keys with their values change nothing."""
    q, k, v, _ = given_problem
    rows, columns = list(range(q.shape[2])), list(range(k.shape[2]))
    random.shuffle(rows)
    random.shuffle(columns)
    for path in PATHS:
        output = path.scaled_dot_product_attention(q, k, v)
        close(path.scaled_dot_product_attention(q[:, :, rows], k, v), output[:, :, rows])
        close(path.scaled_dot_product_attention(q, k[:, :, columns], v[:, :, columns]), output)


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 3), st.integers(1, 5))
def test_the_layer_is_permutation_equivariant(seed, H, D, L):
    rng = np.random.default_rng(seed)
    x, order = rng.standard_normal((L, H * D)), rng.permutation(L)
    for path in PATHS:
        options = {"dtype": np.float64} if path.name == "numpy" else {"dtype": __import__("torch").float64}
        layer = path.layer(H * D, H, **options)
        close(path.call(layer, x[order]), path.call(layer, x)[order])


@given(st.integers(0, 4), st.integers(0, 4), st.integers(-3, 6), st.integers(1, 5))
def test_masks_agree(L, S, offset, window):
    a, b = (path.sliding_window_mask(L, S, window, offset) for path in PATHS)
    assert (a == b).all() and (a <= PATHS[0].causal_mask(L, S, offset)).all()
    assert (PATHS[0].causal_mask(L, S, offset) == PATHS[1].causal_mask(L, S, offset)).all()
