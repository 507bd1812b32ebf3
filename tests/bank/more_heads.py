"""Answers to 14_more_heads."""

import numpy as np


# ------------------------------------------------------------------------------------------------------------------- q2, right
def zeroes_a_copy(heads, W_O, b_O, off, fill=None):
    heads = heads.copy()
    for m in off:
        heads[..., m, :, :] = 0 if fill is None else fill[m]
    moved = heads.swapaxes(-3, -2)
    return moved.reshape(*moved.shape[:-2], -1) @ W_O + b_O


def adds_those_that_stay(heads, W_O, b_O, off, fill=None):
    H, D = heads.shape[-3], heads.shape[-1]
    result = b_O
    for m in range(H):
        block = W_O[m * D : (m + 1) * D]
        if m not in off:
            result = result + heads[..., m, :, :] @ block
        elif fill is not None:
            result = result + fill[m] @ block
    return np.broadcast_to(result, (*heads.shape[:-3], heads.shape[-2], W_O.shape[1])).copy()


def by_a_gate(heads, W_O, b_O, off, fill=None):
    H, D = heads.shape[-3], heads.shape[-1]
    gate = np.ones((H, 1, 1))
    gate[list(off)] = 0
    stand_in = np.zeros((H, 1, D)) if fill is None else fill[:, None]
    mixed = gate * heads + (1 - gate) * stand_in
    return np.einsum("...hld,hde->...le", mixed, W_O.reshape(H, D, -1)) + b_O


# ------------------------------------------------------------------------------------------------------------------- q2, wrong
def drops_the_bias(heads, W_O, b_O, off, fill=None):
    return by_a_gate(heads, W_O, 0, off, fill)


def keeps_only_these(heads, W_O, b_O, off, fill=None):
    return by_a_gate(heads, W_O, b_O, [m for m in range(heads.shape[-3]) if m not in off], fill)


def takes_all(heads, W_O, b_O, off, fill=None):
    return by_a_gate(heads, W_O, b_O, [], fill)


def always_zeroes(heads, W_O, b_O, off, fill=None):
    return by_a_gate(heads, W_O, b_O, off)


def deletes_and_moves_up(heads, W_O, b_O, off, fill=None):
    stay = [m for m in range(heads.shape[-3]) if m not in off]
    short = heads[..., stay, :, :].swapaxes(-3, -2)
    concat = short.reshape(*short.shape[:-2], -1)
    return concat @ W_O[: concat.shape[-1]] + b_O


def makes_up_for_them(heads, W_O, b_O, off, fill=None):
    H = heads.shape[-3]
    return by_a_gate(heads, W_O, 0, off, fill) * (H / (H - len(off))) + b_O


def takes_its_own_mean(heads, W_O, b_O, off, fill=None):
    heads = heads.copy()
    for m in off:
        heads[..., m, :, :] = 0 if fill is None else heads[..., m, :, :].mean(-2, keepdims=True)
    return by_a_gate(heads, W_O, b_O, [])


def forgets_the_swap(heads, W_O, b_O, off, fill=None):
    heads = heads.copy()
    for m in off:
        heads[..., m, :, :] = 0 if fill is None else fill[m]
    return heads.reshape(*heads.shape[:-3], heads.shape[-2], -1) @ W_O + b_O


def counts_from_the_front(heads, W_O, b_O, off, fill=None):
    heads = heads.copy()
    for m in off:
        heads[m] = 0 if fill is None else fill[m]
    return by_a_gate(heads, W_O, b_O, [])


def writes_into_heads(heads, W_O, b_O, off, fill=None):
    for m in off:
        heads[..., m, :, :] = 0 if fill is None else fill[m]
    return by_a_gate(heads, W_O, b_O, [])


# -------------------------------------------------------------------------------------------------------------------------- q3
def missing_so_far(parts):
    left, order = list(range(parts.shape[0])), []
    missing = np.zeros(parts.shape[1:])
    while left:
        best = min(left, key=lambda m: ((missing + parts[m]) ** 2).sum())
        missing = missing + parts[best]
        left.remove(best)
        order.append(best)
    return np.array(order)


def recomputes_the_sum(parts):
    whole, stay, order = parts.sum(0), list(range(len(parts))), []
    for _ in range(len(parts)):
        errors = [np.linalg.norm(whole - parts[[n for n in stay if n != m]].sum(0)) for m in stay]
        order.append(stay.pop(int(np.argmin(errors))))
    return np.asarray(order)


def by_dot_products(parts):
    """|sum of the missing|^2 out of the table of dot products."""
    flat = parts.reshape(len(parts), -1)
    table, gone, order = flat @ flat.T, np.zeros(len(parts), bool), []
    for _ in range(len(parts)):
        cost = np.diag(table) + 2 * table[:, gone].sum(1)
        order.append(int(np.where(gone, np.inf, cost).argmin()))
        gone[order[-1]] = True
    return np.array(order)


def sorts_by_length(parts):
    return np.argsort([np.linalg.norm(part) for part in parts])


def _one_by_one(parts, cost):
    left, order = list(range(len(parts))), []
    while left:
        costs = [cost(parts[[m for m in range(len(parts)) if m == n or m in order]].sum(0)) for n in left]
        order.append(left.pop(int(np.argmin(costs))))
    return np.array(order)


def leaves_little(parts):
    return _one_by_one(parts, lambda gone: np.linalg.norm(parts.sum(0) - gone))


def adds_lengths_of_rows(parts):
    return _one_by_one(parts, lambda gone: np.linalg.norm(gone, axis=-1).sum())


def adds_magnitudes(parts):
    return _one_by_one(parts, lambda gone: np.abs(gone).sum())


def compares_with_the_last_sum(parts):
    """The same order: what is lost in one step is the head itself."""
    stay, order = list(range(len(parts))), []
    while stay:
        now = parts[stay].sum(0)
        errors = [np.linalg.norm(now - parts[[n for n in stay if n != m]].sum(0)) for m in stay]
        order.append(stay.pop(int(np.argmin(errors))))
    return np.array(order)


def takes_the_worst(parts):
    stay, missing, order = list(range(len(parts))), 0, []
    while stay:
        best = max(stay, key=lambda m: ((missing + parts[m]) ** 2).sum())
        missing = missing + parts[best]
        stay.remove(best)
        order.append(best)
    return np.array(order)


def most_important_first(parts):
    return recomputes_the_sum(parts)[::-1].copy()


def counts_those_left(parts):
    stay, missing, order = list(range(len(parts))), 0, []
    while stay:
        place = int(np.argmin([((missing + parts[m]) ** 2).sum() for m in stay]))
        missing = missing + parts[stay.pop(place)]
        order.append(place)
    return np.array(order)


def builds_up(parts):
    whole, have, order = parts.sum(0), np.zeros_like(parts[0]), []
    while len(order) < len(parts):
        rest = [m for m in range(len(parts)) if m not in order]
        best = min(rest, key=lambda m: np.linalg.norm(whole - have - parts[m]))
        have = have + parts[best]
        order.append(best)
    return np.array(order)[::-1]


def only_the_first(parts):
    return np.array([int(((parts**2).sum((1, 2))).argmin())])


def gives_a_list(parts):
    return recomputes_the_sum(parts).tolist()


def empties_parts(parts):
    order = recomputes_the_sum(parts)
    parts[:] = 0
    return order


# -------------------------------------------------------------------------------------------------------------------------- q4
def least_squares(change, values):
    T = np.column_stack([values, np.ones(len(values))])
    rows = np.atleast_2d(change).reshape(-1, len(values))
    fit = np.linalg.lstsq(T, rows.T, rcond=None)[0]
    return (rows - (T @ fit).T).reshape(change.shape)


def basis_of_the_rest(change, values):
    T = np.column_stack([values, np.ones(len(values))])
    U, s, _ = np.linalg.svd(T)
    free = U[:, (s > 1e-9 * s.max()).sum() :]
    return change @ free @ free.T


def projector(change, values):
    T = np.concatenate([np.ones((len(values), 1)), values], axis=1)
    return change @ (np.eye(len(values)) - T @ np.linalg.pinv(T))


def centres_first(change, values):
    """A change of sum 0, and values of mean 0: then the two conditions do not meet."""
    change = change - change.mean(-1, keepdims=True)
    values = values - values.mean(0)
    return change - change @ values @ np.linalg.pinv(values)


def forgets_the_sum(change, values):
    return change - change @ values @ np.linalg.pinv(values)


def only_the_sum(change, values):
    return change - change.mean(axis=-1, keepdims=True)


def gives_what_shows(change, values):
    T = np.column_stack([values, np.ones(len(values))])
    return change @ T @ np.linalg.pinv(T)


def one_column_at_a_time(change, values):
    T = np.column_stack([values, np.ones(len(values))])
    result = change
    for column in T.T:
        result = result - np.outer(change @ column, column).reshape(change.shape) / (column @ column)
    return result


def subtracts_after_all(change, values):
    """First the output, then the sum: the second step spoils the first."""
    result = forgets_the_sum(change, values)
    return result - result.mean(-1, keepdims=True)


def subtracts_before_all(change, values):
    return forgets_the_sum(change - change.mean(-1, keepdims=True), values)


def half_of_it(change, values):
    return change / 2


def by_qr(change, values):
    Q, _ = np.linalg.qr(np.column_stack([values, np.ones(len(values))]))
    return change - change @ Q @ Q.T


def counts_columns(change, values):
    T = np.column_stack([values, np.ones(len(values))])
    free = np.linalg.svd(T)[0][:, T.shape[1] :]
    return change @ free @ free.T


def subtracts_in_place(change, values):
    change -= gives_what_shows(change, values)
    return change


RIGHT = {
    "q1": [[2, 1, 0, 1], np.array([2, 1, 0, 1]), (2, 1, 0, 1)],
    "q2": [zeroes_a_copy, adds_those_that_stay, by_a_gate],
    "q3": [missing_so_far, recomputes_the_sum, by_dot_products],
    "q4": [least_squares, basis_of_the_rest, projector, centres_first],
}

WRONG = {
    "q1": [
        ([3, 1, 1, 2], "constant_not_removed", 0),
        ([2, 2, 2, 2], "one_less_than_the_keys", 0),
        ([3, 3, 3, 3], "as_many_as_keys", 0),
        ([2, 1, 1, 1], "constant_per_column", 0),
        ([2, 1, 0, 0], "rows_and_columns", 0),
        ([2, 1, 0], "wrong_shape", 0),
        ([1, 1, 0, 1], "different", 0),
    ],
    "q2": [
        (drops_the_bias, "output_bias_forgotten", 0),
        (keeps_only_these, "others_off", 0),
        (takes_all, "nothing_off", 0),
        (always_zeroes, "fill_ignored", 3),
        (deletes_and_moves_up, "rows_moved_up", 0),
        (makes_up_for_them, "scaled_up", 0),
        (takes_its_own_mean, "mean_of_this_input", 3),
        (forgets_the_swap, "merge_without_transpose", 0),
        (counts_from_the_front, "different", 5),
        (writes_into_heads, "input_modified", 6),
    ],
    "q3": [
        (sorts_by_length, "each_by_itself", 0),
        (compares_with_the_last_sum, "each_by_itself", 0),
        (takes_the_worst, "most_missed_first", 0),
        (leaves_little, "smallest_rest", 0),
        (adds_lengths_of_rows, "lengths_of_rows", 0),
        (adds_magnitudes, "different", 0),
        (most_important_first, "reversed", 0),
        (counts_those_left, "places_among_those_left", 0),
        (builds_up, "built_up", 0),
        (only_the_first, "wrong_shape", 0),
        (gives_a_list, "wrong_type", 0),
        (empties_parts, "input_modified", 4),
    ],
    "q4": [
        (forgets_the_sum, "sum_forgotten", 0),
        (only_the_sum, "output_forgotten", 0),
        (gives_what_shows, "the_part_that_shows", 0),
        (one_column_at_a_time, "values_not_independent", 0),
        (subtracts_after_all, "sum_last", 0),
        (subtracts_before_all, "output_last", 0),
        (half_of_it, "different", 0),
        (by_qr, "different", 5),
        (counts_columns, "different", 5),
        (subtracts_in_place, "input_modified", 6),
    ],
}
