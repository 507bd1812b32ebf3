"""Answers to 13_training."""

import numpy as np

from mha_lib.data import load_induction, repeated_sequences
from mha_lib.numpy import causal_mask, scaled_dot_product_attention, softmax, split_heads


# ------------------------------------------------------------------------------------------------------------------- q1, right
def by_comparing(sequences):
    tokens = sequences[:, :-1]
    same = tokens[:, :, None] == tokens[:, None, :]
    return tokens, sequences[:, 1:], np.triu(same.swapaxes(1, 2), 1).any(1)


def by_sets(sequences):
    known = []
    for row in sequences[:, :-1]:
        seen, line = set(), []
        for token in row:
            line.append(token in seen)
            seen.add(token)
        known.append(line)
    return sequences[:, :-1].copy(), sequences[:, 1:].copy(), np.array(known)


def by_first_place(sequences):
    tokens, targets = np.delete(sequences, -1, 1), np.delete(sequences, 0, 1)
    first = np.array([[list(row).index(token) for token in row] for row in tokens])
    return tokens, targets, first < np.arange(tokens.shape[1])


# ------------------------------------------------------------------------------------------------------------------- q1, wrong
def without_shift(sequences):
    tokens, _, known = by_sets(sequences)
    return tokens, tokens, known


def past_for_future(sequences):
    return sequences[:, 1:], sequences[:, :-1], by_sets(np.hstack([sequences[:, 1:], sequences[:, :1]]))[2]


def once_the_target_was_read(sequences):
    tokens, targets, _ = by_sets(sequences)
    known = [[targets[b, t] in tokens[b, : t + 1] for t in range(tokens.shape[1])] for b in range(len(tokens))]
    return tokens, targets, np.array(known)


def looks_ahead(sequences):
    tokens, targets, _ = by_sets(sequences)
    known = [[tokens[b, t] in tokens[b, t + 1 :] for t in range(tokens.shape[1])] for b in range(len(tokens))]
    return tokens, targets, np.array(known)


def unknown_for_known(sequences):
    tokens, targets, known = by_sets(sequences)
    return tokens, targets, ~known


def counts_all(sequences):
    tokens, targets, known = by_sets(sequences)
    return tokens, targets, np.ones_like(known)


def a_step_late(sequences):
    tokens, targets, known = by_sets(sequences)
    late = np.zeros_like(known)
    late[:, 1:] = known[:, :-1]
    return tokens, targets, late


def uncut(sequences):
    return sequences, np.roll(sequences, -1, axis=1), by_sets(np.hstack([sequences, sequences[:, :1]]))[2]


def as_numbers(sequences):
    tokens, targets, known = by_sets(sequences)
    return tokens, targets, known.astype(int)


def only_two(sequences):
    return by_sets(sequences)[:2]


def in_place(sequences):
    result = by_sets(sequences)
    sequences[:] = 0
    return result


# ------------------------------------------------------------------------------------------------------------------- q2, right
def by_logsumexp(logits, targets, known):
    top = logits.max(-1, keepdims=True)
    log_p = logits - top - np.log(np.exp(logits - top).sum(-1, keepdims=True))
    return -np.take_along_axis(log_p, targets[..., None], -1)[..., 0][known].mean()


def position_by_position(logits, targets, known):
    losses = []
    for b, t in np.argwhere(known):
        z = logits[b, t] - logits[b, t, targets[b, t]]
        losses.append(max(z) + np.log(sum(np.exp(z - max(z)))))
    return sum(losses) / len(losses)


def by_logaddexp(logits, targets, known):
    z, y = logits[known], targets[known]
    return np.mean(np.logaddexp.reduce(z, -1) - z[np.arange(len(y)), y])


# ------------------------------------------------------------------------------------------------------------------- q2, wrong
def with_plain_exp(logits, targets, known):
    e = np.exp(logits)
    p = np.take_along_axis(e / e.sum(-1, keepdims=True), targets[..., None], -1)[..., 0]
    return -np.log(p[known]).mean()


def log_after_softmax(logits, targets, known):
    p = softmax(logits)[known]
    return -np.log(p[np.arange(len(p)), targets[known]]).mean()


def over_everything(logits, targets, known):
    return by_logaddexp(logits, targets, np.ones_like(known))


def over_the_others(logits, targets, known):
    return by_logaddexp(logits, targets, ~known)


def the_sum(logits, targets, known):
    return by_logaddexp(logits, targets, known) * known.sum()


def by_the_size(logits, targets, known):
    return the_sum(logits, targets, known) / known.size


def sequence_by_sequence(logits, targets, known):
    return np.mean([by_logaddexp(*(x[b : b + 1] for x in (logits, targets, known))) for b in range(len(logits))])


def log_likelihood(logits, targets, known):
    return -by_logaddexp(logits, targets, known)


def in_bits(logits, targets, known):
    return by_logaddexp(logits, targets, known) / np.log(2)


def minus_the_logit(logits, targets, known):
    z = logits[known]
    return -z[np.arange(len(z)), targets[known]].mean()


def softmax_of_the_sequence(logits, targets, known):
    log_p = logits - np.logaddexp.reduce(logits, 1, keepdims=True)
    return -np.take_along_axis(log_p, targets[..., None], -1)[..., 0][known].mean()


def epsilon_in_the_log(logits, targets, known):
    p = softmax(logits)[known]
    return -np.log(p[np.arange(len(p)), targets[known]] + 1e-12).mean()


def minus_p(logits, targets, known):
    p = softmax(logits)[known]
    return -p[np.arange(len(p)), targets[known]].mean()


def log_at_the_end(logits, targets, known):
    return -np.log(-minus_p(logits, targets, known))


def shifts_in_place(logits, targets, known):
    logits -= logits.max(-1, keepdims=True)
    return by_logaddexp(logits, targets, known)


def ln_of_the_size(logits, targets, known):
    return np.float64(3.4657)


# ------------------------------------------------------------------------------------------------------------------- q3, right
def by_masks(weights, tokens):
    L = tokens.shape[1]
    before = weights.diagonal(-1, -2, -1).mean((0, 2))
    keys = np.zeros((len(tokens), L, L), bool)
    keys[:, :, 1:] = tokens[:, :, None] == tokens[:, None, :-1]
    keys &= causal_mask(L)
    mass = (weights * keys[:, None]).sum(-1).swapaxes(0, 1)
    return before, mass[:, keys.any(-1)].mean(-1)


def head_by_head(weights, tokens):
    B, H, L, _ = weights.shape
    before, followed = [], []
    for h in range(H):
        before.append(np.mean([weights[b, h, t, t - 1] for b in range(B) for t in range(1, L)]))
        found = []
        for b in range(B):
            for t in range(L):
                if tokens[b, t] in tokens[b, :t]:
                    found.append(sum(weights[b, h, t, j] for j in range(1, t + 1) if tokens[b, j - 1] == tokens[b, t]))
        followed.append(np.mean(found))
    return np.array(before), np.array(followed)


def by_one_hot(weights, tokens):
    L = tokens.shape[1]
    X = np.eye(tokens.max() + 1)[tokens]
    notes = np.eye(L, k=-1) @ X
    keys = (X @ notes.swapaxes(1, 2)) * np.tri(L)
    has = (keys.sum(-1) > 0).astype(float)
    before = np.einsum("bhts,ts->h", weights, np.eye(L, k=-1)) / (len(tokens) * (L - 1))
    return before, np.einsum("bhts,bts,bt->h", weights, keys, has) / has.sum()


# ------------------------------------------------------------------------------------------------------------------- q3, wrong
def on_itself(weights, tokens):
    return np.einsum("bhtt->h", weights) / tokens.size, by_masks(weights, tokens)[1]


def one_ahead(weights, tokens):
    return weights[:, :, :-1].diagonal(1, -2, -1).mean((0, 2)), by_masks(weights, tokens)[1]


def mean_of_all_rows(weights, tokens):
    return np.einsum("bhts,ts->h", weights, np.eye(tokens.shape[1], k=-1)) / tokens.size, by_masks(weights, tokens)[1]


def _mass(weights, tokens, chosen):
    before, _ = by_masks(weights, tokens)
    found = []
    for b, row in enumerate(tokens):
        for t in range(len(row)):
            if row[t] in row[:t]:
                found.append(weights[b][:, t, [j for j in range(len(row)) if chosen(row, t, j)]].sum(-1))
    return before, np.mean(found, axis=0)


def on_the_copies(weights, tokens):
    return _mass(weights, tokens, lambda row, t, j: j < t and row[j] == row[t])


def on_what_came_before(weights, tokens):
    return _mass(weights, tokens, lambda row, t, j: j + 1 < t and row[j + 1] == row[t])


def on_the_latest(weights, tokens):
    return _mass(weights, tokens, lambda row, t, j: j == 1 + max(i for i in range(t) if row[i] == row[t]))


def on_the_first(weights, tokens):
    return _mass(weights, tokens, lambda row, t, j: j == 1 + min(i for i in range(t) if row[i] == row[t]))


def by_sequences(weights, tokens):
    each = [by_masks(w[None], t[None])[1] for w, t in zip(weights, tokens, strict=True)]
    return by_masks(weights, tokens)[0], np.mean(each, axis=0)


def mean_of_right_keys(weights, tokens):
    B, H, L, _ = weights.shape
    found = [[weights[b, h, t, j] for b in range(B) for t in range(L) for j in range(1, t + 1)
              if tokens[b, j - 1] == tokens[b, t]] for h in range(H)]  # fmt: skip
    return by_masks(weights, tokens)[0], np.mean(found, axis=1)


def over_all_queries(weights, tokens):
    before, found = by_masks(weights, tokens)
    L = tokens.shape[1]
    repeats = sum(row[t] in row[:t] for row in tokens for t in range(L))
    return before, found * repeats / tokens.size


def the_other_way_round(weights, tokens):
    before, found = by_masks(weights, tokens)
    return found, before


def one_number_each(weights, tokens):
    before, found = by_masks(weights, tokens)
    return before.mean(), found.mean()


def for_each_sequence(weights, tokens):
    both = [by_masks(weights[b : b + 1], tokens[b : b + 1]) for b in range(len(tokens))]
    return tuple(np.stack(x) for x in zip(*both, strict=True))


def clears_the_diagonal(weights, tokens):
    result = by_masks(weights.copy(), tokens)
    weights[:] = 0
    return result


# --------------------------------------------------------------------------------------------------------------------------- q4
def of_layer(n=0, *, length=16, positions=True, **options):
    model = load_induction()
    tokens = repeated_sequences(50, rng=13)[0][:, :length]
    x = model.token_table[tokens] + positions * model.position_table[:length]
    q, k = split_heads(x @ model.W_Q[n], 8), split_heads(x @ model.W_K[n], 8)
    _, weights = scaled_dot_product_attention(q, k, k, return_weights=True, **{"is_causal": True, **options})
    return by_masks(weights, tokens)[0]


# ------------------------------------------------------------------------------------------------------------------- q5, right
def by_two_attentions(tokens, count):
    text = np.array(tokens)
    for _ in range(count):
        n = len(text)
        places, names = np.eye(n), np.eye(text.max() + 1)[text]
        notes = scaled_dot_product_attention(1000 * places, np.roll(places, 1, axis=1), names)
        notes[0] = 0
        copied = scaled_dot_product_attention(1000 * names, notes, names, is_causal=True)
        text = np.append(text, copied[-1].argmax())
    return text[len(tokens) :]


def by_search(tokens, count):
    text = [int(t) for t in tokens]
    for _ in range(count):
        text.append(text[text.index(text[-1]) + 1])
    return np.array(text[-count:])


def by_the_period(tokens, count):
    period = len(set(tokens.tolist()))
    return tokens[(len(tokens) + np.arange(count)) % period]


# ------------------------------------------------------------------------------------------------------------------- q5, wrong
def says_it_again(tokens, count):
    return np.full(count, tokens[-1])


def asks_once(tokens, count):
    return np.full(count, by_search(tokens, 1)[0])


def goes_back(tokens, count):
    period, text = list(tokens[1:]).index(tokens[0]) + 1, []
    for step in range(count):
        text.append(tokens[(len(tokens) - 2 - step) % period])
    return np.array(text)


def with_prompt(tokens, count):
    return np.concatenate([tokens, by_search(tokens, count)])


def keeps_the_first_note(tokens, count):
    text = np.array(tokens)
    for _ in range(count):
        places, names = np.eye(len(text)), np.eye(text.max() + 1)[text]
        notes = scaled_dot_product_attention(1000 * places, np.roll(places, -1, axis=0), names)
        text = np.append(text, scaled_dot_product_attention(1000 * names[-1:], notes, names).argmax())
    return text[len(tokens) :]


def starts_the_block_again(tokens, count):
    return np.resize(tokens, count)


def as_a_list(tokens, count):
    return by_search(tokens, count).tolist()


RIGHT = {
    "q1": [by_comparing, by_sets, by_first_place],
    "q2": [by_logsumexp, position_by_position, by_logaddexp],
    "q3": [by_masks, head_by_head, by_one_hot],
    "q4": [of_layer(), of_layer().round(2), of_layer().tolist()],
    "q5": [by_two_attentions, by_search, by_the_period],
}
WRONG = {
    "q1": [
        (without_shift, "not_shifted", 0),
        (past_for_future, "shifted_backwards", 0),
        (once_the_target_was_read, "target_read_before", 0),
        (looks_ahead, "comes_again_later", 0),
        (unknown_for_known, "known_inverted", 0),
        (counts_all, "everything_known", 0),
        (a_step_late, "one_too_late", 0),
        (uncut, "wrong_shape", 0),
        (as_numbers, "wrong_dtype", 0),
        (only_two, "wrong_type", 0),
        (in_place, "input_modified", 5),
    ],
    "q2": [
        (with_plain_exp, "softmax_without_maximum", 5),
        (log_after_softmax, "log_of_zero", 5),
        (over_everything, "all_positions", 0),
        (over_the_others, "unknown_positions", 0),
        (the_sum, "sum_for_mean", 0),
        (by_the_size, "divided_by_all", 0),
        (sequence_by_sequence, "mean_of_means", 0),
        (log_likelihood, "sign", 0),
        (minus_p, "log_forgotten", 0),
        (log_at_the_end, "log_of_the_mean", 0),
        (in_bits, "base_2", 0),
        (minus_the_logit, "without_softmax", 0),
        (softmax_of_the_sequence, "over_positions", 0),
        (epsilon_in_the_log, "different", 5),
        (shifts_in_place, "input_modified", 6),
        (ln_of_the_size, "different", 0),
    ],
    "q3": [
        (on_itself, "itself", 0),
        (one_ahead, "next_token", 0),
        (mean_of_all_rows, "divided_by_L", 0),
        (on_the_copies, "same_token", 0),
        (on_what_came_before, "what_preceded", 0),
        (on_the_latest, "last_copy_only", 0),
        (on_the_first, "different", 0),
        (over_all_queries, "all_positions", 0),
        (by_sequences, "mean_of_means", 3),
        (mean_of_right_keys, "mean_over_keys", 0),
        (the_other_way_round, "swapped", 0),
        (one_number_each, "heads_averaged", 0),
        (for_each_sequence, "wrong_shape", 0),
        (clears_the_diagonal, "input_modified", 7),
    ],
    "q4": [
        (of_layer(scale=1.0), "no_scale", 0),
        (of_layer(is_causal=False), "mask_ignored", 0),
        (of_layer(positions=False), "positions_forgotten", 0),
        (of_layer(scale=1 / 8), "scale_of_the_layer", 0),
        (of_layer(1), "layer_1", 0),
        (of_layer(length=40), "all_40_tokens", 0),
        (of_layer()[::-1], "different", 0),
        (of_layer()[:4], "wrong_shape", 0),
    ],
    "q5": [
        (says_it_again, "repeats_itself", 0),
        (keeps_the_first_note, "note_of_the_first", 2),
        (asks_once, "not_fed_back", 2),
        (goes_back, "backwards", 0),
        (with_prompt, "with_the_beginning", 0),
        (starts_the_block_again, "different", 0),
        (as_a_list, "wrong_type", 0),
    ],
}
