"""13_training: targets and what can be known, the loss, measures of heads, the heads of a trained model, and a model by hand."""

import numpy as np

from ..data import load_induction, repeated_sequences
from ..numpy import scaled_dot_product_attention, softmax, split_heads
from ._question import Exercise, Part, Question, call, untouched, value


def _sequences(rng, B, L, period):
    """B sequences of L tokens, each a block of `period` different tokens again and again."""
    block = rng.permuted(np.tile(np.arange(9, 9 + 3 * period), (B, 1)), axis=1)[:, :period]  # (B, period)
    return block[:, np.arange(L) % period]


def _mixed(rng, L, periods):
    return np.concatenate([_sequences(rng, 1, L, p) for p in periods])


# ------------------------------------------------------------------------------------------------------------------ q1, the targets
def _read_before(tokens):
    """(B, L): whether the token at t stands at an earlier place."""
    same = tokens[:, :, None] == tokens[:, None, :]  # (B, L, L)
    return (same & np.tri(tokens.shape[1], k=-1, dtype=bool)).any(-1)


def training_pair(sequences):
    """Tokens, targets and what can be known: (B, L + 1) -> (B, L) each."""
    tokens, targets = sequences[:, :-1], sequences[:, 1:]
    return tokens, targets, _read_before(tokens)


def _one_then_many(rng):
    return [call(_sequences(rng, 1, 5, 2)), call(_sequences(rng, 3, 10, 4)), call(_mixed(rng, 13, (3, 5, 4, 6)))]


def _at_the_ends(rng):
    """Nothing comes again; everything does, from the second token on; the block ends with the sequence."""
    return [call(_sequences(rng, 2, 6, 8)), call(_sequences(rng, 2, 4, 1)), call(_sequences(rng, 1, 6, 5))]


def _of_other_sizes(rng):
    return [call(_mixed(rng, 30, (7, 2, 11, 12, 1)))]


def _pair_with(known):
    """The right tokens and targets with another idea of what can be known."""
    return lambda sequences: (sequences[:, :-1], sequences[:, 1:], known(sequences))


# --------------------------------------------------------------------------------------------------------------------- q2, the loss
def _picked(log_p, targets):
    return np.take_along_axis(log_p, targets[..., None], -1)[..., 0]  # (B, L)


def _log_softmax(logits, axis=-1):
    shifted = logits - logits.max(axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))


def loss(logits, targets, known):
    """Mean of -ln p(target) over the known positions."""
    return -_picked(_log_softmax(logits), targets)[known].mean()


def _case(rng, B, L, V, shift=0.0):
    known = np.arange(L) >= rng.integers(1, L, (B, 1))  # (B, L)
    return call(2 * rng.standard_normal((B, L, V)) + shift, rng.integers(0, V, (B, L)), known)


def _small_losses(rng):
    return [_case(rng, 1, 2, 3), _case(rng, 2, 5, 4), _case(rng, 3, 8, 8)]


def _far_losses(rng):
    """Logits that exp cannot hold, rows far apart, and a target whose probability is too small for a float."""
    far = _case(rng, 2, 4, 5)
    far.args[0][0] += 1000
    far.args[0][1] -= 2000
    sure = np.zeros((1, 3, 4))
    sure[0, :, 1] = 900
    return [call(sure, np.array([[1, 2, 1]]), np.array([[False, True, True]])), far, _case(rng, 1, 3, 4, shift=5000.0)]


def _other_losses(rng):
    return [_case(rng, 4, 11, 6)]


def _plain_loss(logits, targets, known):
    e = np.exp(logits)
    return -np.log(_picked(e / e.sum(-1, keepdims=True), targets))[known].mean()


def _mean_of_means(logits, targets, known):
    each = -_picked(_log_softmax(logits), targets)
    return np.mean([row[may].mean() for row, may in zip(each, known, strict=True)])


# ------------------------------------------------------------------------------------------------------------------- q3, two measures
def head_scores(weights, tokens):
    """Weight on the token before, and on what followed the same token: (B, H, L, L), (B, L) -> (H,), (H,)."""
    return _before(weights), _found(weights, tokens, _followed(tokens))


def _before(weights, k=-1):
    return weights.diagonal(k, 2, 3).mean((0, 2))  # (H,)


def _earlier(tokens):
    """(B, L, L): whether key j is an earlier copy of the token at t."""
    return (tokens[:, :, None] == tokens[:, None, :]) & np.tri(tokens.shape[1], k=-1, dtype=bool)


def _followed(tokens):
    """(B, L, L): whether key j follows an earlier copy of the token at t."""
    keys = np.zeros((*tokens.shape, tokens.shape[1]), bool)
    keys[:, :, 1:] = _earlier(tokens)[:, :, :-1]
    return keys


def _found(weights, tokens, keys, where=None):
    where = _read_before(tokens) if where is None else where  # (B, L)
    mass = (weights * keys[:, None]).sum(-1)  # (B, H, L)
    return (mass * where[:, None]).sum((0, 2)) / where.sum()


def _mean_of_sequences(weights, tokens):
    return np.mean([_found(w[None], t[None], _followed(t[None])) for w, t in zip(weights, tokens, strict=True)], 0)


def _preceded(tokens):
    keys = np.zeros((*tokens.shape, tokens.shape[1]), bool)
    keys[:, :, :-1] = _earlier(tokens)[:, :, 1:]
    return keys


def _last_only(tokens):
    keys = _followed(tokens)
    later = np.cumsum(keys[..., ::-1], -1)[..., ::-1]
    return keys & (later == 1)


def _weights(rng, B, H, L):
    scores = 2 * rng.standard_normal((B, H, L, L))
    return softmax(np.where(np.tri(L, dtype=bool), scores, -np.inf))


def _measured(rng, B, H, L, periods):
    return call(_weights(rng, B, H, L), _mixed(rng, L, periods))


def _batches(rng):
    return [_measured(rng, 2, 3, 10, (3, 4)), _measured(rng, 4, 2, 14, (3, 5, 6, 4))]


def _one_head(rng):
    return [_measured(rng, 1, 1, 7, (3,)), _measured(rng, 1, 1, 12, (5,))]


def _pure_heads(rng):
    """A head that always looks at the token before, and one that always looks at what followed the same token."""
    tokens = _mixed(rng, 11, (4, 3))
    before = np.broadcast_to(np.eye(11, k=-1), (2, 11, 11)).copy()
    before[:, 0, 0] = 1
    followed = _followed(tokens).astype(float)
    followed[:, :, 0] += followed.sum(-1) == 0
    followed /= followed.sum(-1, keepdims=True)
    return [call(np.stack([before, followed], 1), tokens)]


def _other_heads(rng):
    return [_measured(rng, 3, 5, 17, (4, 7, 5))]


# ------------------------------------------------------------------------------------------------------------------ q4, trained heads
def _note_takers(*, causal=True, scale=None, positions=True, layer=0, length=16, k=-1):
    """The previous-token score of the eight heads of layer 0 of the trained model, (H,) = (8,)."""
    model = load_induction()
    tokens = repeated_sequences(50, rng=13)[0][:, :length]  # (B, L)
    x = model.token_table[tokens].astype(float) + positions * model.position_table[:length]  # (B, L, E)
    q, k_ = (split_heads(x @ W[layer].astype(float), 8) for W in (model.W_Q, model.W_K))  # (B, H, L, D)
    options = {"is_causal": causal, "scale": scale, "return_weights": True}
    return _before(scaled_dot_product_attention(q, k_, k_, **options)[1], k)


# -------------------------------------------------------------------------------------------------------------------- q5, by hand
def _next(tokens, offset=1):
    """What stands `offset` after the first copy of the last token."""
    return tokens[np.flatnonzero(tokens == tokens[-1])[0] + offset]


def write_on(tokens, count):
    """The next `count` tokens: (n,) -> (count,)."""
    text = list(tokens)
    for _ in range(count):
        text.append(_next(np.array(text)))
    return np.array(text[len(tokens) :])


def _with_a_note_at_0(tokens, count):
    text = np.array(tokens)
    for _ in range(count):
        votes = text[np.append(True, text[:-1] == text[-1])]
        text = np.append(text, np.bincount(votes).argmax())
    return text[len(tokens) :]


def _backwards(tokens, count):
    period = len(np.unique(tokens))
    return tokens[(len(tokens) - 2 - np.arange(count)) % period]


def _written(rng, cases):
    return [call(_sequences(rng, 1, period + more, period)[0], count) for period, more, count in cases]


EXERCISE = Exercise(
    "13_training",
    "Training and induction",
    offers=("attention_scores", "causal_mask", "embedding", "project", "scaled_dot_product_attention", "softmax", "split_heads"),
    questions=(
        Question(
            "q1", "training_pair", training_pair,
            parts=(
                Part("one sequence, and a batch with different periods", 3, _one_then_many),
                Part("nothing comes again, or everything does", 1, _at_the_ends),
                Part("sizes that are not announced", 1, _of_other_sizes, hidden=True),
                untouched(),
            ),
            slips={
                "not_shifted": ("The targets are the tokens themselves: the model would learn to repeat what it reads; shift them by one.",
                                lambda s: (s[:, :-1], s[:, :-1], _read_before(s[:, :-1]))),
                "shifted_backwards": ("The targets are the tokens before: the model would learn to look back; the next token is asked.",
                                      lambda s: (s[:, 1:], s[:, :-1], _read_before(s[:, 1:]))),
                "target_read_before": (
                    "A target counts as known as soon as it has been read before: at the end of the first block nobody can know that "
                    "the block ends there. Ask whether the token at t itself came before.",
                    _pair_with(lambda s: _read_before(s)[:, 1:])),
                "comes_again_later": ("A target counts as known if its token comes again later: that is in the future.",
                                      _pair_with(lambda s: _read_before(s[:, -2::-1])[:, ::-1])),
                "known_inverted": ("True and False have changed places: known is True where the target can be known.",
                                   _pair_with(lambda s: ~_read_before(s[:, :-1]))),
                "everything_known": ("Every target counts as known: the first block is random, nobody can know it.",
                                     _pair_with(lambda s: np.ones(s[:, 1:].shape, bool))),
                "one_too_late": ("The first target that can be known is left out: one copy of the token before t is enough.",
                                 _pair_with(lambda s: np.pad(_read_before(s[:, :-1])[:, :-1], ((0, 0), (1, 0))))),
            },
        ),
        Question(
            "q2", "loss", loss,
            parts=(
                Part("a few positions", 3, _small_losses),
                Part("logits far from 0, and far from each other", 2, _far_losses),
                Part("other sizes", 1, _other_losses, hidden=True),
                untouched(),
            ),
            mistakes={"softmax_without_maximum": _plain_loss},
            slips={
                "log_of_zero": (
                    "A probability that is too small for a float becomes 0, and its logarithm -inf: compute the logarithm of the softmax "
                    "as logit - maximum - ln(sum of exponentials).",
                    lambda logits, targets, known: -np.log(_picked(softmax(logits), targets))[known].mean()),
                "all_positions": ("The mean runs over all positions: only those count whose target can be known.",
                                  lambda logits, targets, known: -_picked(_log_softmax(logits), targets).mean()),
                "unknown_positions": ("The mean runs over the positions that cannot be known.",
                                      lambda logits, targets, known: -_picked(_log_softmax(logits), targets)[~known].mean()),
                "sum_for_mean": ("This is the sum: divide by the number of known positions.",
                                 lambda logits, targets, known: -_picked(_log_softmax(logits), targets)[known].sum()),
                "divided_by_all": ("The sum over the known positions is divided by the number of all positions.",
                                   lambda logits, targets, known: -(_picked(_log_softmax(logits), targets) * known).mean()),
                "mean_of_means": (
                    "A mean for each sequence, then the mean of these: every known position must weigh the same, so take one mean over all.",
                    _mean_of_means),
                "log_forgotten": ("The logarithm is missing: the loss of a position is -ln p, not -p.",
                                  lambda logits, targets, known: -_picked(softmax(logits), targets)[known].mean()),
                "log_of_the_mean": (
                    "The logarithm is taken of the mean probability: take it at each position, then the mean.",
                    lambda logits, targets, known: -np.log(_picked(softmax(logits), targets)[known].mean())),
                "sign": ("The minus sign is missing: a loss is positive, and falls as the model learns.",
                         lambda logits, targets, known: -loss(logits, targets, known)),
                "base_2": ("The logarithm has the base 2: the natural one is asked.",
                           lambda logits, targets, known: loss(logits, targets, known) / np.log(2)),
                "without_softmax": ("The logits are taken for logarithms of probabilities: subtract the ln of the sum of exponentials first.",
                                    lambda logits, targets, known: -_picked(logits, targets)[known].mean()),
                "over_positions": ("The softmax runs over the positions: at each position the probabilities of the tokens sum to 1.",
                                   lambda logits, targets, known: -_picked(_log_softmax(logits, 1), targets)[known].mean()),
            },
        ),
        Question(
            "q3", "head_scores", head_scores,
            parts=(
                Part("a batch of sequences, several heads", 4, _batches),
                Part("one head, one sequence", 1, _one_head),
                Part("heads that do nothing else", 1, _pure_heads),
                Part("sizes that are not announced", 1, _other_heads, hidden=True),
                untouched(),
            ),
            slips={
                "itself": ("The first measure takes the weight on the query's own position: the token before is one column to the left.",
                           lambda w, t: (_before(w, 0), head_scores(w, t)[1])),
                "next_token": ("The first measure takes the weight on the next token, which a causal head cannot see.",
                               lambda w, t: (_before(w, 1), head_scores(w, t)[1])),
                "divided_by_L": (
                    "The first measure is divided by L: the first token has none before it, so L - 1 positions count.",
                    lambda w, t: (_before(w) * (w.shape[-1] - 1) / w.shape[-1], head_scores(w, t)[1])),
                "same_token": (
                    "The second measure takes the weight on earlier copies of the token: an induction head looks at what *followed* them.",
                    lambda w, t: (_before(w), _found(w, t, _earlier(t)))),
                "what_preceded": ("The second measure takes the weight on what stood before the copies: what followed them is asked.",
                                  lambda w, t: (_before(w), _found(w, t, _preceded(t)))),
                "last_copy_only": (
                    "The second measure takes the last copy alone: what followed any earlier copy is an answer, so add up all of them.",
                    lambda w, t: (_before(w), _found(w, t, _last_only(t)))),
                "all_positions": (
                    "The second measure is divided by all positions: only those count whose token has been read before.",
                    lambda w, t: (_before(w), _found(w, t, _followed(t), np.ones(t.shape, bool)))),
                "mean_of_means": (
                    "The second measure is a mean for each sequence, then the mean of these: each position must weigh the same.",
                    lambda w, t: (_before(w), _mean_of_sequences(w, t))),
                "mean_over_keys": (
                    "The second measure is a mean over the keys that are right: add up their weights, then take the mean over "
                    "the positions.",
                    lambda w, t: (_before(w), np.moveaxis(w, 1, 0)[:, _followed(t)].mean(-1))),
                "swapped": ("The two results have changed places.", lambda w, t: head_scores(w, t)[::-1]),
                "heads_averaged": ("The heads are averaged: each head has two numbers of its own.",
                                   lambda w, t: tuple(np.array(x.mean()) for x in head_scores(w, t))),
            },
        ),
        value(
            "q4", "note_takers", _note_takers, 2,
            mistakes={"no_scale": lambda: _note_takers(scale=1.0), "mask_ignored": lambda: _note_takers(causal=False)},
            slips={
                "positions_forgotten": ("The position rows are missing: without them layer 0 cannot tell which token stands before.",
                                        lambda: _note_takers(positions=False)),
                "scale_of_the_layer": ("The scores are divided by sqrt(64), the width of the layer: a head has d_k = 8.",
                                       lambda: _note_takers(scale=1 / 8)),
                "layer_1": ("These are the weights of layer 1: W_Q and W_K have the layer as their first axis, and 0 is asked.",
                            lambda: _note_takers(layer=1)),
                "all_40_tokens": ("All 40 tokens are measured: take the first 16.", lambda: _note_takers(length=40)),
                "itself": ("This is the weight on the query's own position: the token before is one column to the left.",
                           lambda: _note_takers(k=0)),
            },
        ),
        Question(
            "q5", "write_on", write_on,
            parts=(
                Part("one token", 1, lambda rng: _written(rng, [(2, 1, 1), (3, 2, 1), (6, 3, 1), (4, 1, 1), (5, 2, 1), (7, 1, 1)])),
                Part("several tokens, past the end of the block", 2, lambda rng: _written(rng, [(3, 1, 5), (5, 3, 12), (4, 4, 1)])),
                Part("a longer text", 1, lambda rng: _written(rng, [(17, 20, 30)]), hidden=True),
                untouched(),
            ),
            slips={
                "repeats_itself": ("The last token is written again and again: copy what *followed* its earlier copy, and make "
                                   "each attention as good as a choice.",
                                   lambda tokens, count: np.repeat(tokens[-1], count)),
                "note_of_the_first": (
                    "Position 0 wears the last token as its note, since np.roll closes the circle: nothing stands before it, so its "
                    "note is zeros.", _with_a_note_at_0),
                "not_fed_back": (
                    "The first new token is written `count` times: append each new token to the text before you ask for the next one.",
                    lambda tokens, count: np.repeat(_next(tokens), count)),
                "backwards": ("The text is written backwards: what stood before the earlier copy is copied, not what followed it.",
                              _backwards),
                "with_the_beginning": ("The result holds the given tokens too: give back the new ones alone.",
                                       lambda tokens, count: np.append(tokens, write_on(tokens, count))),
            },
        ),
    ),
)  # fmt: skip
