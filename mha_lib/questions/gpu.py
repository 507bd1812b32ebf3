"""19_gpu: sixteen bits, scores that leave their range, the roofline, and a comparison that forgives rounding only."""

import numpy as np

from ._question import Exercise, Part, Question, call, untouched, value

# ------------------------------------------------------------------------------------------------- q1 and q2, to sixteen bits
BY_HAND = (257.0, 259.0, 1001.0, 1003.0)


def to_bfloat16(x):
    """float32 -> float32 with 7 bits of fraction, to nearest, ties to even."""
    bits = np.asarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).view(np.float32)


def _cut_off(x):
    return (np.asarray(x, np.float32).view(np.uint32) & 0xFFFF0000).view(np.float32)


def _ties_away(x):
    return ((np.asarray(x, np.float32).view(np.uint32) + 0x8000) & 0xFFFF0000).view(np.float32)


def _ties_down(x):
    return ((np.asarray(x, np.float32).view(np.uint32) + 0x7FFF) & 0xFFFF0000).view(np.float32)


def _always_up(x):
    return ((np.asarray(x, np.float32).view(np.uint32) + 0xFFFF) & 0xFFFF0000).view(np.float32)


def _with_bits(kept):
    """Rounded to another number of bits of fraction."""

    def wrong(x):
        cut = 23 - kept
        bits = np.asarray(x, np.float32).view(np.uint32)
        return ((bits + (2 ** (cut - 1) - 1) + ((bits >> cut) & 1)) >> cut << cut).view(np.float32)

    return wrong


def _float16(x):
    return np.asarray(x).astype(np.float16).astype(np.float32)


def _singles(rng, *shape, scale=1.0):
    return call((scale * rng.uniform(1, 2, shape) * rng.choice([-1, 1], shape)).astype(np.float32))


def _ties(rng):
    """Numbers halfway between two neighbours, below even and odd ones."""
    return call((1 + (rng.integers(0, 128, 12) + 0.5) / 128).astype(np.float32))


# ------------------------------------------------------------------------------------------------------------------- q3, scores
def scores_from_half(q, k):
    """float16 (..., L, D) and (..., S, D) -> scaled scores (..., L, S), float32."""
    q, k = q.astype(np.float32), k.astype(np.float32)
    return q @ k.swapaxes(-1, -2) / np.float32(np.sqrt(q.shape[-1]))


def _late(q, k):
    """The raw scores are rounded to float16, where large ones are inf."""
    return _float16(_raw(q, k)) / np.float32(np.sqrt(q.shape[-1]))


def _raw(q, k):
    return scores_from_half(q, k) * np.float32(np.sqrt(q.shape[-1]))


def _all_in_half(q, k):
    """Multiplied and divided in float16."""
    return _raw(q, k).astype(np.float16) / np.float16(np.sqrt(q.shape[-1]))


def _both_scaled_in_half(q, k):
    root = np.float16(q.shape[-1] ** 0.25)
    return _raw(q / root, k / root)


def _scaled_in_half(q, k):
    """The queries are divided in float16, then multiplied in float32."""
    return _raw(q / np.float16(np.sqrt(q.shape[-1])), k)


def _halves(rng, *B, L=3, S=4, D=8, scale=1.0):
    q, k = (scale * rng.uniform(0.5, 2, (*B, n, D)) for n in (L, S))
    return call(q.astype(np.float16), (k * rng.choice([-1, 1], (*B, S, 1))).astype(np.float16))


# ----------------------------------------------------------------------------------------------------------------- q4, roofline
def share_of_peak(num_heads, num_kv_heads, L, S, D, bytes_per_number, peak, bandwidth):
    """The share of the peak that fused attention can reach at most."""
    return _share(peak, bandwidth, *_counts(num_heads, num_kv_heads, L, S, D, bytes_per_number))


def _counts(H, H_kv, L, S, D, b):
    return 4 * H * L * S * D, b * (2 * H * L * D + 2 * H_kv * S * D)


def _share(peak, bandwidth, flops, nbytes):
    return min(1.0, flops / nbytes * bandwidth / peak)


def _otherwise(change):
    """The same with other counts: `change(sizes, flops, nbytes)` gives them."""

    def wrong(*sizes_and_card):
        *sizes, peak, bandwidth = sizes_and_card
        return _share(peak, bandwidth, *change(sizes, *_counts(*sizes)))

    return wrong


def _not_capped(*sizes_and_card):
    *sizes, peak, bandwidth = sizes_and_card
    flops, nbytes = _counts(*sizes)
    return flops / nbytes * bandwidth / peak


def _bytes_per_flop(*sizes_and_card):
    *sizes, peak, bandwidth = sizes_and_card
    flops, nbytes = _counts(*sizes)
    return min(1.0, nbytes / flops * bandwidth / peak)


_A100 = (312e12, 1555e9)


# --------------------------------------------------------------------------------------------------------------- q5, comparing
def alike(got, wanted, tolerance):
    """Whether the largest difference is at most `tolerance` of the largest entry of `wanted`; a NaN never is."""
    return bool(np.abs(got - wanted).max() <= tolerance * np.abs(wanted).max())


def _with_error(rng, size, scale=1.0, at=None, n=24, most=1.0, tolerance=1e-3):
    """A comparison with errors of `size` times the largest entry, everywhere or `at` some; `most` is the largest without a minus."""
    wanted = scale * rng.uniform(-1, min(most, 1), n)
    wanted[:4] = scale * np.array([most, -1, 1e-5, -1e-5])
    noise = size * scale * rng.choice([-1.0, 1.0], n)
    if at is not None:
        noise[:] = 0
        noise[at] = -size * scale
    return call(wanted + noise, wanted, tolerance)


def _with_nan(rng):
    one = _with_error(rng, 0.0)
    one.args[0][5] = np.nan
    return one


EXERCISE = Exercise(
    "19_gpu",
    "Short numbers and the roofline",
    offers=("project", "softmax"),
    questions=(
        value(
            "q1", "in_bfloat16", lambda: to_bfloat16(BY_HAND).astype(float), 1, tolerance=1e-6,
            slips={
                "cut_off": ("The bits are cut off: take the nearest number.", lambda: _cut_off(BY_HAND).astype(float)),
                "ties_away": (
                    "A tie goes up: it goes to the number whose last bit is 0, the even multiple of the step.",
                    lambda: _ties_away(BY_HAND).astype(float)),
                "ties_down": (
                    "A tie goes down: it goes to the number whose last bit is 0, the even multiple of the step.",
                    lambda: _ties_down(BY_HAND).astype(float)),
                "always_up": (
                    "Everything is rounded up: take the nearest number.", lambda: _always_up(BY_HAND).astype(float)),
                "ten_bits": (
                    "These are all exact in float16, with 10 bits of fraction: bfloat16 has 7.",
                    lambda: np.array(BY_HAND)),
                "eight_bits": (
                    "These have 8 bits of fraction: bfloat16 has 7, and the 1 in front of the point is not among them.",
                    lambda: _with_bits(8)(BY_HAND).astype(float)),
            },
        ),
        Question(
            "q2", "to_bfloat16", to_bfloat16,
            parts=(
                Part("numbers between 1 and 2", 2, lambda rng: [_singles(rng, 1), _singles(rng, 20)]),
                Part("ties go to the even one", 1, lambda rng: [_ties(rng), call(np.array(BY_HAND, np.float32))]),
                Part("far outside of float16", 1, lambda rng: [_singles(rng, 8, scale=1e6), _singles(rng, 8, scale=1e30)]),
                Part("float32 stays float32", 1, lambda rng: [_singles(rng, 12)], dtype=True),
                Part("matrices, zeros and inf", 1, lambda rng: [
                    _singles(rng, 3, 4), call(np.array([0.0, 1.001, np.inf, -np.inf], np.float32))], hidden=True),
                untouched(),
            ),
            slips={
                "cut_off": (
                    "The last 16 bits are cut off: add half of a step first, so that the nearest number is taken.",
                    _cut_off),
                "ties_away": (
                    "Ties are rounded up: a tie goes to the number whose last kept bit is 0.", _ties_away),
                "ties_down": (
                    "Ties are rounded down: a tie goes to the number whose last kept bit is 0.", _ties_down),
                "always_up": (
                    "Everything is rounded up, away from zero: only what is beyond half of a step may be.", _always_up),
                "six_bits": ("6 bits of fraction are kept: bfloat16 has 7.", _with_bits(6)),
                "eight_bits": (
                    "8 bits of fraction are kept: bfloat16 has 7, and the 1 in front of the point is not among them.",
                    _with_bits(8)),
                "tf32": ("10 bits of fraction are kept, that is TF32: bfloat16 has 7.", _with_bits(10)),
                "float16": ("This is float16: 10 bits of fraction, and inf from 65520 on.", _float16),
            },
        ),
        Question(
            "q3", "scores_from_half", scores_from_half,
            parts=(
                Part("scores of ordinary size", 2, lambda rng: [
                    _halves(rng, L=1, S=2, D=3), _halves(rng), _halves(rng, L=2, S=5, D=32)]),
                Part("raw scores beyond 65504", 2, lambda rng: [
                    _halves(rng, D=64, scale=40.0), _halves(rng, L=2, S=2, D=128, scale=60.0)]),
                Part("float32 comes back", 1, lambda rng: [_halves(rng)], dtype=True),
                Part("heads and a batch in front", 1, lambda rng: [_halves(rng, 2, 3), _halves(rng, 2, scale=90.0)], hidden=True),
                untouched(),
            ),
            mistakes={
                "no_scale": _raw,
                "divided_by_d_k": lambda q, k: scores_from_half(q, k) / np.float32(np.sqrt(q.shape[-1])),
            },
            slips={
                "raw_scores_in_half": (
                    "The raw scores are held in float16: beyond 65504 they are inf, and below they are rounded. Convert "
                    "the inputs first.", _late),
                "all_in_half": (
                    "Product and division are both done in float16: beyond 65504 the raw scores are inf. Convert the inputs first.",
                    _all_in_half),
                "both_scaled_in_half": (
                    "Queries and keys are scaled in float16, which rounds them once more: convert first, then scale.",
                    _both_scaled_in_half),
                "scaled_by_the_keys": (
                    "The scores are divided by the root of the number of keys: it is the width, sqrt(D).",
                    lambda q, k: _raw(q, k) / np.float32(np.sqrt(k.shape[-2]))),
                "rounded_at_the_end": (
                    "The scores are rounded to float16 at the end: leave them in float32.",
                    lambda q, k: _float16(scores_from_half(q, k))),
                "scaled_in_half": (
                    "The queries are scaled in float16, which rounds them once more: scale in float32.",
                    _scaled_in_half),
            },
            tolerance=1e-5,
        ),
        Question(
            "q4", "share_of_peak", share_of_peak,
            parts=(
                Part("decoding", 2, lambda rng: [
                    call(1, 1, 1, 1024, 64, 2, *_A100), call(3, 3, 1, int(rng.integers(50, 900)), 32, 4, *_A100)]),
                Part("shared key heads", 1, lambda rng: [call(32, 8, 1, 4096, 128, 2, *_A100), call(6, 1, 2, 77, 16, 2, *_A100)]),
                Part("prefill, below the roof and on it", 1, lambda rng: [
                    call(2, 2, 90, 90, 64, 2, *_A100), call(4, 4, 4096, 4096, 64, 2, *_A100)]),
                Part("another card", 1, lambda rng: [call(8, 4, 3, 500, 64, 2, 125e12, 900e9)], hidden=True),
            ),
            slips={
                "half_the_flops": (
                    "Half of the FLOPs are missing: scores and weighted mean are 2 L S D each, additions counted.",
                    _otherwise(lambda sizes, flops, nbytes: (flops // 2, nbytes))),
                "every_query_head_reads": (
                    "Keys and values are read once for each query head: a group reads its key head once.",
                    _otherwise(lambda sizes, flops, nbytes: (flops, _counts(sizes[0], sizes[0], *sizes[2:])[1]))),
                "one_head_of_flops": (
                    "FLOPs are counted per key head: every query head meets all keys.",
                    _otherwise(lambda sizes, flops, nbytes: (flops * sizes[1] // sizes[0], nbytes))),
                "square_written_out": (
                    "The L x S scores and weights are counted as traffic: the fused kernel keeps them on the chip.",
                    _otherwise(lambda sizes, flops, nbytes: (
                        flops, nbytes + 4 * sizes[5] * sizes[0] * sizes[2] * sizes[3]))),
                "values_forgotten": (
                    "The bytes of the values (or of the keys) are missing: both are read.",
                    _otherwise(lambda sizes, flops, nbytes: (
                        flops, nbytes - sizes[5] * sizes[1] * sizes[3] * sizes[4]))),
                "output_forgotten": (
                    "The bytes of the output (or of the queries) are missing: one is read, the other written.",
                    _otherwise(lambda sizes, flops, nbytes: (
                        flops, nbytes - sizes[5] * sizes[0] * sizes[2] * sizes[4]))),
                "numbers_not_bytes": (
                    "Numbers are counted, not bytes: each takes bytes_per_number.",
                    _otherwise(lambda sizes, flops, nbytes: (flops, nbytes / sizes[5]))),
                "not_capped": ("The share is larger than 1: no kernel is faster than the peak.", _not_capped),
                "bytes_per_flop": (
                    "The intensity is upside down: it is FLOPs divided by bytes.", _bytes_per_flop),
            },
        ),
        Question(
            "q5", "alike", alike,
            parts=(
                Part("small errors everywhere, also near zero", 2, lambda rng: [
                    _with_error(rng, 5e-4), _with_error(rng, 9e-4), _with_error(rng, 2e-3),
                    _with_error(rng, 9e-4, most=0.2)]),
                Part("large and small numbers", 1, lambda rng: [
                    _with_error(rng, 5e-4, scale=1e4), _with_error(rng, 0.1, scale=1e-4), _with_error(rng, 5e-4, scale=1e-4)]),
                Part("one error, large or small", 1, lambda rng: [
                    _with_error(rng, 5e-3, at=7), _with_error(rng, -5e-3, at=9), _with_error(rng, 1e-4, at=0),
                    _with_error(rng, -5e-3, at=slice(4, None)), _with_error(rng, -0.6, tolerance=0.5, at=0)]),
                Part("a NaN", 1, lambda rng: [_with_nan(rng), _with_error(rng, 0.0)], hidden=True),
                untouched(),
            ),
            slips={
                "entry_by_entry": (
                    "Each entry is compared with itself: near zero, rounding fails that test. Compare with the largest entry.",
                    lambda got, wanted, tolerance: bool((np.abs(got - wanted) <= tolerance * np.abs(wanted)).all())),
                "absolute": (
                    "The difference is compared with the tolerance alone: it must be a share of the largest entry.",
                    lambda got, wanted, tolerance: bool(np.abs(got - wanted).max() <= tolerance)),
                "largest_with_its_sign": (
                    "The largest entry is taken with its sign: a minus does not make an entry small.",
                    lambda got, wanted, tolerance: bool(np.abs(got - wanted).max() <= tolerance * wanted.max())),
                "largest_of_got": (
                    "The tolerance is a share of the largest entry of `got`: take that of `wanted`.",
                    lambda got, wanted, tolerance: bool(np.abs(got - wanted).max() <= tolerance * np.abs(got).max())),
                "largest_entries_only": (
                    "Only the largest entries are compared: take the largest of all differences.",
                    lambda got, wanted, tolerance: bool(
                        np.abs(got.max() - wanted.max()) <= tolerance * np.abs(wanted).max())),
                "nan_forgiven": (
                    "A NaN is skipped: it is never a rounding error.",
                    lambda got, wanted, tolerance: bool(
                        np.nanmax(np.abs(got - wanted)) <= tolerance * np.abs(wanted).max())),
                "mean_error": (
                    "The mean error is compared: one large error hides in it. Take the largest.",
                    lambda got, wanted, tolerance: bool(
                        np.abs(got - wanted).mean() <= tolerance * np.abs(wanted).max())),
                "without_abs": (
                    "Negative differences are forgiven: take the absolute value first.",
                    lambda got, wanted, tolerance: bool((got - wanted).max() <= tolerance * np.abs(wanted).max())),
                "bit_by_bit": (
                    "Bits are compared: right results differ in their last digits.",
                    lambda got, wanted, tolerance: bool(np.array_equal(got, wanted))),
                "the_wrong_way_round": (
                    "The answer is inverted: True means alike.",
                    lambda got, wanted, tolerance: not alike(got, wanted, tolerance)),
            },
        ),
    ),
)  # fmt: skip
