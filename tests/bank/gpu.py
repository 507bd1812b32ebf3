"""Answers to 19_gpu."""

import numpy as np


# ------------------------------------------------------------------------------------------------------------------------- q2
def masks_bits(x):
    bits = x.view(np.uint32)
    last = (bits >> 16) & 1
    return ((bits + (0x7FFF + last)) >> 16 << 16).view(np.float32)


def through_the_mantissa(x):
    mantissa, exponent = np.frexp(x)  # in [1/2, 1): 8 bits behind the point
    return np.ldexp(np.round(mantissa * np.float32(256)) / np.float32(256), exponent)


def nearest_of_two(x):
    bits = x.view(np.uint32)
    low = (bits >> 16 << 16).astype(np.uint32)
    below, rest = low.view(np.float32), bits & 0xFFFF
    above = (low + np.uint32(0x10000)).view(np.float32)
    up = (rest > 0x8000) | ((rest == 0x8000) & ((bits >> 16) & 1 == 1))
    return np.where(up, above, below)


def number_by_number(x):
    rounded = np.empty_like(x)
    for place, number in np.ndenumerate(x):
        bits = int(number.view(np.uint32))
        kept, rest = divmod(bits, 2**16)
        kept += rest > 2**15 or (rest == 2**15 and kept % 2 == 1)
        rounded[place] = np.uint32(kept * 2**16).view(np.float32)
    return rounded


def cuts(x):
    return (x.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)


def adds_half(x):
    return ((x.view(np.uint32) + 2**15) >> 16 << 16).view(np.float32)


def adds_less_than_half(x):
    return ((x.view(np.uint32) + np.uint32(0x7FFF)) >> 16 << 16).view(np.float32)


def adds_nearly_a_step(x):
    return ((x.view(np.uint32) + np.uint32(0xFFFF)) >> 16 << 16).view(np.float32)


def keeps_six(x):
    mantissa, exponent = np.frexp(x)
    return np.ldexp(np.round(mantissa * np.float32(128)) / np.float32(128), exponent)


def keeps_eight(x):
    mantissa, exponent = np.frexp(x)
    return np.ldexp(np.round(mantissa * np.float32(512)) / np.float32(512), exponent)


def makes_tf32(x):
    bits = x.view(np.uint32)
    return ((bits + 0xFFF + ((bits >> 13) & 1)) >> 13 << 13).view(np.float32)


def makes_float16(x):
    return x.astype(np.float16).astype(np.float32)


def gives_float64(x):
    return masks_bits(x).astype(float)


def gives_bits(x):
    return x.view(np.uint32) >> 16


def works_in_place(x):
    x.view(np.uint32)[...] = masks_bits(x).view(np.uint32)
    return x


# ------------------------------------------------------------------------------------------------------------------------- q3
def converts_first(q, k):
    q, k = np.float32(q), np.float32(k)
    return q @ k.swapaxes(-1, -2) / np.float32(q.shape[-1] ** 0.5)


def in_double_inside(q, k):
    scores = np.einsum("...ld,...sd->...ls", q.astype(float), k.astype(float)) / np.sqrt(q.shape[-1])
    return scores.astype(np.float32)


def scales_both(q, k):
    root = np.float32(q.shape[-1] ** -0.25)
    q, k = q.astype(np.float32) * root, k.astype(np.float32) * root
    return np.matmul(q, np.swapaxes(k, -1, -2))


def multiplies_in_half(q, k):
    return (q @ k.swapaxes(-1, -2)).astype(np.float32) / np.float32(np.sqrt(q.shape[-1]))


def rounds_at_the_end(q, k):
    return converts_first(q, k).astype(np.float16)


def scales_in_half(q, k):
    q = q / np.float16(np.sqrt(q.shape[-1]))
    return q.astype(np.float32) @ k.astype(np.float32).swapaxes(-1, -2)


def divides_in_half(q, k):
    return (q @ k.swapaxes(-1, -2) / np.float16(np.sqrt(q.shape[-1]))).astype(np.float32)


def stays_in_half(q, k):
    return q @ k.swapaxes(-1, -2) / np.float16(q.shape[-1] ** 0.5)


def scales_both_in_half(q, k):
    root = np.float16(q.shape[-1] ** 0.25)
    return (q / root).astype(np.float32) @ (k / root).astype(np.float32).swapaxes(-1, -2)


def divides_by_the_number_of_keys(q, k):
    return does_not_scale(q, k) / np.float32(np.sqrt(k.shape[-2]))


def does_not_scale(q, k):
    return q.astype(np.float32) @ k.astype(np.float32).swapaxes(-1, -2)


def divides_by_the_width(q, k):
    return does_not_scale(q, k) / np.float32(q.shape[-1])


def gives_double(q, k):
    return q.astype(float) @ k.astype(float).swapaxes(-1, -2) / np.sqrt(q.shape[-1])


def transposes_all(q, k):
    return q.astype(np.float32) @ k.astype(np.float32).T / np.float32(np.sqrt(q.shape[-1]))


# ------------------------------------------------------------------------------------------------------------------------- q4
def by_intensity(num_heads, num_kv_heads, L, S, D, bytes_per_number, peak, bandwidth):
    flops = 4 * num_heads * L * S * D
    nbytes = bytes_per_number * 2 * D * (num_heads * L + num_kv_heads * S)
    return min(peak, bandwidth * flops / nbytes) / peak


def by_times(num_heads, num_kv_heads, L, S, D, bytes_per_number, peak, bandwidth):
    numbers = 2 * num_heads * L * D + 2 * num_kv_heads * S * D
    arithmetic = 4 * num_heads * L * S * D / peak
    return arithmetic / max(arithmetic, numbers * bytes_per_number / bandwidth)


def head_by_head(num_heads, num_kv_heads, L, S, D, bytes_per_number, peak, bandwidth):
    flops = sum(2 * L * S * D + 2 * L * S * D for _ in range(num_heads))
    q = output = num_heads * L * D
    k = v = num_kv_heads * S * D
    return np.minimum(1, flops / ((q + k + v + output) * bytes_per_number) / (peak / bandwidth))


def counts_products_only(num_heads, num_kv_heads, L, S, D, bytes_per_number, peak, bandwidth):
    return by_intensity(num_heads, num_kv_heads, L, S, D, 2 * bytes_per_number, peak, bandwidth)


def repeats_the_keys(num_heads, num_kv_heads, L, S, D, bytes_per_number, peak, bandwidth):
    return by_intensity(num_heads, num_heads, L, S, D, bytes_per_number, peak, bandwidth)


def counts_key_heads(num_heads, num_kv_heads, L, S, D, bytes_per_number, peak, bandwidth):
    flops = 4 * num_kv_heads * L * S * D
    nbytes = bytes_per_number * 2 * D * (num_heads * L + num_kv_heads * S)
    return min(1, bandwidth * flops / nbytes / peak)


def writes_the_square(num_heads, num_kv_heads, L, S, D, bytes_per_number, peak, bandwidth):
    flops = 4 * num_heads * L * S * D
    numbers = 2 * D * (num_heads * L + num_kv_heads * S) + 4 * num_heads * L * S
    return min(1, bandwidth * flops / (bytes_per_number * numbers) / peak)


def forgets_the_values(num_heads, num_kv_heads, L, S, D, bytes_per_number, peak, bandwidth):
    flops = 4 * num_heads * L * S * D
    nbytes = bytes_per_number * (2 * num_heads * L * D + num_kv_heads * S * D)
    return min(1, bandwidth * flops / nbytes / peak)


def forgets_the_output(num_heads, num_kv_heads, L, S, D, bytes_per_number, peak, bandwidth):
    nbytes = bytes_per_number * D * (num_heads * L + 2 * num_kv_heads * S)
    return min(1, bandwidth * 4 * num_heads * L * S * D / nbytes / peak)


def counts_numbers(num_heads, num_kv_heads, L, S, D, bytes_per_number, peak, bandwidth):
    return by_intensity(num_heads, num_kv_heads, L, S, D, 1, peak, bandwidth)


def beats_the_peak(num_heads, num_kv_heads, L, S, D, bytes_per_number, peak, bandwidth):
    nbytes = bytes_per_number * 2 * D * (num_heads * L + num_kv_heads * S)
    return bandwidth * 4 * num_heads * L * S * D / nbytes / peak


def turns_it_round(num_heads, num_kv_heads, L, S, D, bytes_per_number, peak, bandwidth):
    nbytes = bytes_per_number * 2 * D * (num_heads * L + num_kv_heads * S)
    return min(1, bandwidth * nbytes / (4 * num_heads * L * S * D) / peak)


def gives_flops(num_heads, num_kv_heads, L, S, D, bytes_per_number, peak, bandwidth):
    return peak * by_intensity(num_heads, num_kv_heads, L, S, D, bytes_per_number, peak, bandwidth)


# ------------------------------------------------------------------------------------------------------------------------- q5
def by_the_largest(got, wanted, tolerance):
    return np.abs(got - wanted).max() <= tolerance * np.abs(wanted).max()


def by_allclose(got, wanted, tolerance):
    return np.allclose(got, wanted, rtol=0, atol=tolerance * np.abs(wanted).max())


def by_a_loop(got, wanted, tolerance):
    limit = tolerance * max(abs(w) for w in wanted)
    return all(abs(g - w) <= limit for g, w in zip(got, wanted, strict=True))


def by_default_allclose(got, wanted, tolerance):
    return np.allclose(got, wanted, rtol=tolerance, atol=0)


def in_absolute_terms(got, wanted, tolerance):
    return bool(np.max(np.abs(got - wanted)) <= tolerance)


def skips_nan(got, wanted, tolerance):
    seen = ~np.isnan(got)
    return by_the_largest(got[seen], wanted[seen], tolerance)


def takes_the_mean(got, wanted, tolerance):
    return np.mean(np.abs(got - wanted)) <= tolerance * np.max(np.abs(wanted))


def forgets_abs(got, wanted, tolerance):
    return np.max(got - wanted) <= tolerance * np.max(np.abs(wanted))


def keeps_the_sign(got, wanted, tolerance):
    return np.abs(got - wanted).max() <= tolerance * wanted.max()


def takes_the_largest_of_got(got, wanted, tolerance):
    return max(abs(got - wanted)) <= tolerance * max(abs(got))


def compares_the_maxima(got, wanted, tolerance):
    return abs(got.max() - wanted.max()) <= tolerance * np.abs(wanted).max()


def compares_bits(got, wanted, tolerance):
    return (got == wanted).all()


def inverts(got, wanted, tolerance):
    return not np.abs(got - wanted).max() <= tolerance * np.abs(wanted).max()


def finds_all_alike(got, wanted, tolerance):
    return True


def gives_an_array(got, wanted, tolerance):
    return np.abs(got - wanted) <= tolerance * np.abs(wanted).max()


RIGHT = {
    "q1": [[256, 260, 1000, 1004], np.array([256.0, 260.0, 1000.0, 1004.0]), (256.0, 260, 1000, 1004)],
    "q2": [masks_bits, through_the_mantissa, nearest_of_two, number_by_number],
    "q3": [converts_first, in_double_inside, scales_both],
    "q4": [by_intensity, by_times, head_by_head],
    "q5": [by_the_largest, by_allclose, by_a_loop],
}

WRONG = {
    "q1": [
        ([256, 258, 1000, 1000], "cut_off", 0),
        ([258, 260, 1000, 1004], "ties_away", 0),
        ([256, 258, 1000, 1004], "ties_down", 0),
        ([258, 260, 1004, 1004], "always_up", 0),
        ([257, 259, 1001, 1003], "ten_bits", 0),
        ([257, 259, 1000, 1004], "eight_bits", 0),
        ([256, 260, 1000], "wrong_shape", 0),
        ([256, 260, 1000, 1002], "different", 0),
    ],
    "q2": [
        (cuts, "cut_off", 0),
        (adds_half, "ties_away", 6),
        (adds_less_than_half, "ties_down", 6),
        (adds_nearly_a_step, "always_up", 0),
        (keeps_six, "six_bits", 0),
        (keeps_eight, "eight_bits", 0),
        (makes_tf32, "tf32", 0),
        (makes_float16, "float16", 0),
        (gives_float64, "wrong_dtype", 6),
        (gives_bits, "different", 0),
        (works_in_place, "input_modified", 6),
    ],
    "q3": [
        (multiplies_in_half, "raw_scores_in_half", 0),
        (rounds_at_the_end, "rounded_at_the_end", 0),
        (scales_in_half, "scaled_in_half", 0),
        (divides_in_half, "all_in_half", 0),
        (stays_in_half, "all_in_half", 0),
        (scales_both_in_half, "both_scaled_in_half", 0),
        (divides_by_the_number_of_keys, "scaled_by_the_keys", 0),
        (does_not_scale, "no_scale", 0),
        (divides_by_the_width, "divided_by_d_k", 0),
        (gives_double, "wrong_dtype", 6),
        (transposes_all, "hidden", 6),
    ],
    "q4": [
        (counts_products_only, "half_the_flops", 0),
        (repeats_the_keys, "every_query_head_reads", 3),
        (counts_key_heads, "one_head_of_flops", 3),
        (writes_the_square, "square_written_out", 0),
        (forgets_the_values, "values_forgotten", 0),
        (forgets_the_output, "output_forgotten", 0),
        (counts_numbers, "numbers_not_bytes", 0),
        (beats_the_peak, "not_capped", 4),
        (turns_it_round, "bytes_per_flop", 0),
        (gives_flops, "different", 0),
    ],
    "q5": [
        (by_default_allclose, "entry_by_entry", 3),
        (in_absolute_terms, "absolute", 5),
        (skips_nan, "nan_forgiven", 5),
        (takes_the_mean, "mean_error", 5),
        (forgets_abs, "without_abs", 5),
        (keeps_the_sign, "largest_with_its_sign", 4),
        (takes_the_largest_of_got, "largest_of_got", 4),
        (compares_the_maxima, "largest_entries_only", 5),
        (compares_bits, "bit_by_bit", 2),
        (inverts, "the_wrong_way_round", 0),
        (finds_all_alike, "different", 0),
        (gives_an_array, "wrong_shape", 0),
    ],
}
