"""02_embedding: rows of three tables, the last touch of LayerNorm, and the input of layer 0."""

import numpy as np

from ..data import load_layer
from ..mistakes import MISTAKES
from ..numpy import layer_norm
from ._question import Exercise, Part, Question, call, untouched, value

# --------------------------------------------------------------------------------------------------------------------- q1, by hand
TOKEN, POSITION, TYPE = np.array([[1, 0, 2, 1], [0, 1, 1, 0], [0, 0, 2, 4]])
GAMMA, BETA = np.array([[2, 1, 1, 3], [0, 1, 0, -1]])


def _by_hand(rows=TOKEN + POSITION + TYPE, *, stretch=1.0):
    """The LayerNorm of a sum of three rows, (4,); `stretch` multiplies the normalised row."""
    return layer_norm(rows, eps=0.0) * stretch * GAMMA + BETA


# ------------------------------------------------------------------------------------------------------------------- q2, three rows
def summed_rows(ids, token_table, position_table, type_row):
    """Token row + position row + type row: (..., L) -> (..., L, E)."""
    return token_table[ids] + position_table[: ids.shape[-1]] + type_row


def _tables(rng, *ids, N, P, E):
    """Ids of the given shape, N token rows, P position rows, and a type row."""
    return rng.integers(N, size=ids), *(rng.standard_normal(shape) for shape in ((N, E), (P, E), (E,)))


def _sentences(rng):
    """One token, a token twice, L = P, N = P = L = E, and more positions than tokens."""
    twice = (np.array([1, 0, 1]), *_tables(rng, 3, N=2, P=5, E=4)[1:])
    sizes = ((1, 3, 2, 2), (3, 5, 3, 2), (4, 4, 4, 4), (5, 4, 9, 3))
    return [call(*_tables(rng, L, N=N, P=P, E=E)) for L, N, P, E in sizes] + [call(*twice)]


def _batch_of_ids(rng):
    return [call(*_tables(rng, 1, 3, N=4, P=6, E=2)), call(*_tables(rng, 2, 3, N=4, P=6, E=5)),
            call(*_tables(rng, 3, 3, N=7, P=7, E=3)), call(*_tables(rng, 2, 1, 4, N=5, P=8, E=3))]  # fmt: skip


def _float32_tables(rng):
    ids, *tables = _tables(rng, 4, N=6, P=5, E=3)
    return [call(ids, *(table.astype(np.float32) for table in tables))]


# ------------------------------------------------------------------------------------------------------------------- q3, LayerNorm
def normalise(x, weight, bias, eps):
    """LayerNorm of every row: x (..., E), weight (E,), bias (E,)."""
    return layer_norm(x, weight, bias, eps)


def _norm(x, weight, bias, eps, *, axis=-1, ddof=0):
    """LayerNorm along any axis, with any divisor of the variance."""
    deviation = x - x.mean(axis, keepdims=True)
    return deviation / np.sqrt(x.var(axis, keepdims=True, ddof=ddof) + eps) * weight + bias


def _without_keepdims(x, weight, bias, eps):
    return (x - x.mean(-1)) / np.sqrt(x.var(-1) + eps) * weight + bias


def _rows(rng, *shape, size=10.0, plain=False, eps=1e-12):
    """Rows of any mean, a weight and a bias (1 and 0 where plain), eps."""
    E = shape[-1]
    affine = (np.ones(E), np.zeros(E)) if plain else (1 + rng.random(E), rng.standard_normal(E))
    return call(size * (rng.standard_normal(shape) + 2 * rng.standard_normal((*shape[:-1], 1))), *affine, eps)


def _plain(rng):
    """One token; more features than tokens and fewer; L = E, where a lost axis changes no shape."""
    return [_rows(rng, *shape, plain=True) for shape in ((1, 3), (2, 4), (5, 3), (4, 4))]


def _scaled(rng):
    return [_rows(rng, *shape) for shape in ((1, 2), (3, 5), (3, 3))]


def _nearly_constant(rng):
    """Rows whose variance is about as small as eps, and a constant one."""
    constant = call(np.full((2, 4), 3.0), np.ones(4), np.arange(4.0), 1e-5)
    return [_rows(rng, 2, 4, size=0.01, eps=1e-4), _rows(rng, 3, 6, size=0.1, eps=1e-2), constant]


def _leading(rng):
    return [_rows(rng, 5), _rows(rng, 2, 3, 4), _rows(rng, 3, 3, 3), _rows(rng, 2, 2, 3, 5)]


def _float32(rng):
    x, weight, bias, eps = _rows(rng, 3, 8, eps=1e-5).args
    return [call(*(a.astype(np.float32) for a in (x, weight, bias)), eps)]


# --------------------------------------------------------------------------------------------------------------------- q4, the real X
def _real(*, positions=1, types=1, norm=layer_norm, eps=1e-12, affine=True):
    """The input of layer 0 for the sentence of the course, (16, 384)."""
    layer = load_layer()
    rows = layer.token_rows.astype(float) + positions * layer.position_rows + types * layer.type_rows
    scale, shift = (layer.norm_weight, layer.norm_bias) if affine else (np.ones(384), np.zeros(384))
    return norm(rows, scale, shift, eps)


EXERCISE = Exercise(
    "02_embedding",
    "The input X",
    offers=(),
    questions=(
        value(
            "q1", "first_row", _by_hand, 2,
            slips={
                "scale_and_shift_forgotten": (
                    "This is the normalised row: it must still be multiplied by gamma and shifted by beta.",
                    lambda: layer_norm(TOKEN + POSITION + TYPE, eps=0.0)),
                "shift_first": ("Beta is added before gamma multiplies: scale first, then shift.",
                                lambda: (layer_norm(TOKEN + POSITION + TYPE, eps=0.0) + BETA) * GAMMA),
                "divided_by_variance": ("The distances are divided by the variance: the divisor is its square root.",
                                        lambda: _by_hand(stretch=0.5)),
                "divided_by_e_minus_1": (
                    "The squares are divided by 3, one less than there are numbers: LayerNorm divides them by all 4.",
                    lambda: _by_hand(stretch=np.sqrt(3 / 4))),
                "mean_not_subtracted": ("The mean is not subtracted: a normalised row has mean 0.",
                                        lambda: (TOKEN + POSITION + TYPE) / 2 * GAMMA + BETA),
                "type_forgotten": ("The type row is not added: three rows make the sum.",
                                   lambda: _by_hand(TOKEN + POSITION)),
                "position_forgotten": ("The position row is not added: three rows make the sum.",
                                       lambda: _by_hand(TOKEN + TYPE)),
                "token_row_alone": ("Only the token row is normalised: add the position row and the type row first.",
                                    lambda: _by_hand(TOKEN)),
                "not_normalised": ("The sum is scaled and shifted, but not normalised: subtract its mean and divide first.",
                                   lambda: (TOKEN + POSITION + TYPE) * GAMMA + BETA),
            },
        ),
        Question(
            "q2", "summed_rows", summed_rows,
            parts=(
                Part("one sentence", 2, _sentences),
                Part("leading axes for a batch", 1, _batch_of_ids),
                Part("float32 stays float32", 1, _float32_tables, dtype=True),
                Part("sizes that are not announced", 1, lambda rng: [
                    call(*_tables(rng, 7, N=11, P=8, E=6)), call(*_tables(rng, 3, 2, N=5, P=5, E=4))], hidden=True),
                untouched(),
            ),
            slips={
                "position_forgotten": ("The position rows are not added: the same piece gets the same row at every place.",
                                       lambda i, t, p, y: t[i] + y),
                "type_forgotten": ("The type row is not added.", lambda i, t, p, y: t[i] + p[: i.shape[-1]]),
                "position_by_id": (
                    "The position rows are picked by the ids: the first token gets row 0, the next row 1, whatever they are.",
                    lambda i, t, p, y: t[i] + p[i] + y),
                "token_by_place": (
                    "The token rows are picked by the place: the ids say which rows of token_table are meant.",
                    lambda i, t, p, y: t[: i.shape[-1]] + p[: i.shape[-1]] + y),
                "positions_from_1": ("The positions are counted from 1: the first token stands at position 0.",
                                     lambda i, t, p, y: t[i] + p[1 : i.shape[-1] + 1] + y),
                "last_positions": ("The last rows of position_table are taken: the positions begin at 0.",
                                   lambda i, t, p, y: t[i] + p[-i.shape[-1] :] + y),
                "whole_position_table": (
                    "All rows of position_table are added: a sentence of L tokens needs the first L.",
                    lambda i, t, p, y: t[i] + p + y),
                "positions_of_the_batch": (
                    "The positions are counted along the first axis: with a batch in front, the tokens stand on the last.",
                    lambda i, t, p, y: t[i] + p[: len(i)] + y),
                "position_of_the_sentence": (
                    "All tokens of sentence b get position row b: the position is that of the token in its sentence.",
                    lambda i, t, p, y: np.array([t[one] + p[place] + y for place, one in enumerate(i)])),
                "type_for_every_token": (
                    "Entry i of the type row is added to the whole of row i: it belongs to feature i of every token.",
                    lambda i, t, p, y: t[i] + p[: i.shape[-1]] + y[:, None]),
                "averaged": ("The three rows are averaged: they are added.", lambda i, t, p, y: summed_rows(i, t, p, y) / 3),
                "side_by_side": (
                    "The three rows stand side by side: they are added, and the result is as wide as each of them.",
                    lambda i, t, p, y: np.concatenate(
                        [t[i], *(np.broadcast_to(r, t[i].shape) for r in (p[: i.shape[-1]], y))], -1)),
                "columns_for_rows": (
                    "The ids pick columns of token_table: a piece has a row, so the ids belong on the first axis.",
                    lambda i, t, p, y: t[:, i] + p[: i.shape[-1]] + y),
            },
        ),
        Question(
            "q3", "normalise", normalise, tolerance=1e-5,
            parts=(
                Part("every row by itself, with a weight of 1 and a bias of 0", 2, _plain),
                Part("a weight and a bias for every feature", 1, _scaled),
                Part("eps inside the root", 2, _nearly_constant),
                Part("leading axes, and a single row", 1, _leading),
                Part("float32 stays float32", 1, _float32, dtype=True),
                Part("sizes that are not announced", 1, lambda rng: [_rows(rng, 6, 7), _rows(rng, 2, 4, 4, size=0.02, eps=1e-3)],
                     hidden=True),
                untouched(),
            ),
            mistakes={"norm_over_tokens": MISTAKES["norm_over_tokens"]},
            slips={
                "norm_over_everything": (
                    "Mean and variance are those of the whole array: every row has its own.",
                    lambda x, weight, bias, eps: _norm(x, weight, bias, eps, axis=None)),
                "norm_over_first_axis": (
                    "Mean and variance run over axis 0, the tokens, or the batch: they run over the features, the last axis.",
                    lambda x, weight, bias, eps: _norm(x, weight, bias, eps, axis=0)),
                "norm_over_axis_1": (
                    "Mean and variance run over axis 1: with a batch in front, or a single row, the features are not there, so "
                    "count from the back, -1.",
                    lambda x, weight, bias, eps: _norm(x, weight, bias, eps, axis=1)),
                "lost_axis": (
                    "The means lose their axis, and entry j is subtracted from column j: keep it with keepdims=True.",
                    _without_keepdims),
                "divided_by_e_minus_1": (
                    "The variance is divided by E - 1 (ddof=1): LayerNorm divides by E, the number of features.",
                    lambda x, weight, bias, eps: _norm(x, weight, bias, eps, ddof=1)),
                "divided_by_variance": (
                    "The distances are divided by the variance: the divisor is its square root.",
                    lambda x, weight, bias, eps: (x - x.mean(-1, keepdims=True)) / (x.var(-1, keepdims=True) + eps) * weight
                    + bias),
                "eps_outside_the_root": (
                    "eps is added to the root, the standard deviation: add it to the variance, inside the root.",
                    lambda x, weight, bias, eps: (x - x.mean(-1, keepdims=True)) / (x.std(-1, keepdims=True) + eps) * weight
                    + bias),
                "eps_forgotten": (
                    "eps is not added: a constant row becomes 0 / 0.",
                    lambda x, weight, bias, eps: _norm(x, weight, bias, 0.0)),
                "eps_of_its_own": (
                    "eps is 1e-5, whatever is given: use the argument.",
                    lambda x, weight, bias, eps: _norm(x, weight, bias, 1e-5)),
                "mean_not_subtracted": (
                    "The mean is not subtracted: a normalised row has mean 0.",
                    lambda x, weight, bias, eps: x / np.sqrt(x.var(-1, keepdims=True) + eps) * weight + bias),
                "only_centred": (
                    "The rows are not divided by their standard deviation: a normalised row has variance 1.",
                    lambda x, weight, bias, eps: (x - x.mean(-1, keepdims=True)) * weight + bias),
                "root_mean_square": (
                    "The rows are divided by the root of their mean square, without their mean: subtract it first.",
                    lambda x, weight, bias, eps: x / np.sqrt((x**2).mean(-1, keepdims=True) + eps) * weight + bias),
                "weight_forgotten": ("The weight is not used: each normalised feature is multiplied by its own.",
                                     lambda x, weight, bias, eps: normalise(x, None, bias, eps)),
                "bias_not_added": ("The bias is not added.",
                                   lambda x, weight, bias, eps: normalise(x, weight, None, eps)),
                "scale_and_shift_forgotten": ("Weight and bias are not used: they come after the normalisation.",
                                              lambda x, weight, bias, eps: normalise(x, None, None, eps)),
                "shift_first": ("The bias is added before the weight multiplies: scale first, then shift.",
                                lambda x, weight, bias, eps: (normalise(x, None, None, eps) + bias) * weight),
            },
        ),
        value(
            "q4", "X", _real, 2, tolerance=2e-5,
            mistakes={"norm_over_tokens": lambda: _real(norm=MISTAKES["norm_over_tokens"])},
            slips={
                "default_eps": ("The eps is 1e-5, the default of PyTorch: this model has 1e-12.", lambda: _real(eps=1e-5)),
                "divided_by_e_minus_1": (
                    "The variance is divided by E - 1: LayerNorm divides by E, the number of features.",
                    lambda: _real(norm=lambda *args: _norm(*args, ddof=1))),
                "position_forgotten": ("The position rows are not added.", lambda: _real(positions=0)),
                "type_forgotten": ("The type row is not added: this model has one for every text, even where there is one text.",
                                   lambda: _real(types=0)),
                "token_rows_alone": ("Only the token rows are normalised: add the position rows and the type rows first.",
                                     lambda: _real(positions=0, types=0)),
                "scale_and_shift_forgotten": ("Scale and shift are missing: layer.norm_weight and layer.norm_bias.",
                                              lambda: _real(affine=False)),
                "not_normalised": ("This is the sum of the three rows: LayerNorm is still to come.",
                                   lambda: _real(norm=lambda x, *_: x)),
                "input_of_layer_3": ("This is layer.x, the input of layer 3: the input of layer 0 is asked.",
                                     lambda: load_layer().x.astype(float)),
            },
        ),
    ),
)  # fmt: skip
