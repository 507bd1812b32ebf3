"""16_cost: what a layer costs in FLOPs, parameters and bytes, and at which length its quadratic part takes over."""

from ._question import Exercise, Part, Question, call, value


# ------------------------------------------------------------------------------------------------------------------- q2, FLOPs
def layer_flops(L, S, d, h, h_kv, d_k):
    """Of the six products: the projections of the queries and of the output, those of keys and values, and the pairs."""
    return 4 * L * d * h * d_k + 4 * S * d * h_kv * d_k + 4 * L * S * h * d_k


def _exact(L, S, d, h, h_kv, d_k):
    """The same with k - 1 additions for an entry of a product over k."""
    shapes = [(L, d, h * d_k), *[(S, d, h_kv * d_k)] * 2, (h * L, d_k, S), (h * L, S, d_k), (L, h * d_k, d)]
    return sum(m * (2 * k - 1) * n for m, k, n in shapes)


def _sizes(rng, *, cross=False, grouped=False, free=False):
    """L, S, d, h, h_kv, d_k: all different where they may be."""
    h, d_k, L = (int(rng.integers(*limits)) for limits in ((2, 5), (5, 9), (10, 20)))
    h_kv, h = (h, 3 * h) if grouped else (h, h)
    d = h * d_k + int(rng.integers(1, 9)) * free
    return L, L + int(rng.integers(1, 9)) * cross, d, h, h_kv, d_k


def _self(rng):
    return [call(4, 4, 6, 1, 1, 6), call(*_sizes(rng)), call(*_sizes(rng))]


def _cross(rng):
    return [call(2, 3, 4, 2, 2, 2), call(*_sizes(rng, cross=True)), call(*_sizes(rng, cross=True))]


def _grouped(rng):
    return [call(2, 2, 4, 4, 2, 1), call(*_sizes(rng, grouped=True)), call(*_sizes(rng, grouped=True, cross=True))]


def _free(rng):
    return [call(*_sizes(rng, free=True)), call(*_sizes(rng, cross=True, grouped=True, free=True))]


# -------------------------------------------------------------------------------------------------------------- q3, parameters
def parameters(d, h, h_kv, d_k, bias):
    """Entries of W_Q, W_K, W_V, W_O, and of b_Q, b_K, b_V, b_O."""
    return 2 * d * h * d_k + 2 * d * h_kv * d_k + bias * (h * d_k + 2 * h_kv * d_k + d)


def _layers(bias, **kinds):
    def draw(rng):
        return [call(*_sizes(rng, **kinds)[2:], bias) for _ in range(2)]

    return draw


def _any_layer(rng):
    return [call(*_sizes(rng, grouped=True, free=True)[2:], bias) for bias in (True, False)]


# ------------------------------------------------------------------------------------------------------------------- q4, bytes
def kept_bytes(B, n, h, h_kv, d_k, itemsize):
    """Bytes of the attention weights, and of the keys and values."""
    return B * h * n * n * itemsize, 2 * B * h_kv * n * d_k * itemsize


def _memory(batch, grouped):
    def draw(rng):
        calls = []
        for itemsize in (4, 2):
            n, _, _, h, h_kv, d_k = _sizes(rng, grouped=grouped)
            calls.append(call(int(rng.integers(2, 6)) if batch else 1, n, h, h_kv, d_k, itemsize))
        return calls

    return draw


# ---------------------------------------------------------------------------------------------------------------- q5, crossover
def crossover(d, d_ff, causal):
    """The length at which the pairs take as many FLOPs as all that is linear."""
    return 2 * (2 * d + d_ff) - 1 if causal else 2 * d + d_ff


def _lengths(causal, ffn):
    def draw(rng):
        widths = [2 * int(rng.integers(10, 200)) for _ in range(2)]
        return [call(d, 2 * int(rng.integers(10, 200)) + 4 * d if ffn else 0, causal) for d in (8, *widths)]

    return draw


def _models(rng):
    return [call(384, 1536, False), call(384, 1536, True), call(4096, 14336, True)]


EXERCISE = Exercise(
    "16_cost",
    "What it costs",
    offers=(),
    questions=(
        value(
            "q1", "flops_by_hand", lambda: layer_flops(3, 3, 8, 2, 2, 4), 1, tolerance=1e-6,
            slips={
                "multiplications_only": ("These are the multiplications: with each comes an addition, so it is twice that.",
                                         lambda: layer_flops(3, 3, 8, 2, 2, 4) / 2),
                "projections_per_head": (
                    "The projections are counted once per head: a head projects to 4 columns, both together to 8.",
                    lambda: 2 * 8 * 3 * 8**2 + 4 * 3**2 * 8),
                "pairs_halved": (
                    "Of the pairs only half is counted: there are two products, and each runs over both heads.",
                    lambda: 8 * 3 * 8**2 + 4 * 3**2 * 4),
                "pairs_doubled": ("The pairs are counted with 8 columns in each head: a head has 4.",
                                  lambda: 8 * 3 * 8**2 + 2 * 4 * 3**2 * 8),
                "output_forgotten": ("The product with W_O is missing: four projections, not three.",
                                     lambda: 6 * 3 * 8**2 + 4 * 3**2 * 8),
                "pairs_forgotten": ("These are the projections only: the scores and the weighted mean are missing.",
                                    lambda: 8 * 3 * 8**2),
                "projections_forgotten": ("These are the scores and the weighted mean only: the four projections are missing.",
                                          lambda: 4 * 3**2 * 8),
                "one_addition_less": (
                    "An entry is counted with one addition less than multiplications, which is exact; asked is 2mkn, as everybody counts.",
                    lambda: _exact(3, 3, 8, 2, 2, 4)),
            },
        ),
        Question(
            "q2", "layer_flops", layer_flops,
            parts=(
                Part("self-attention", 2, _self),
                Part("cross-attention", 1, _cross),
                Part("grouped heads", 2, _grouped),
                Part("heads whose widths do not add up to d", 1, _free, hidden=True),
            ),
            slips={
                "multiplications_only": ("These are the multiplications: with each comes an addition, so it is twice that.",
                                         lambda *s: layer_flops(*s) // 2),
                "projections_per_head": (
                    "The projections are multiplied by the number of heads twice: all heads together have h * d_k columns.",
                    lambda L, S, d, h, h_kv, d_k: h * (4 * L * d * h * d_k + 4 * S * d * h_kv * d_k) + 4 * L * S * h * d_k),
                "pairs_of_one_head": ("The pairs are those of one head: there are h of them.",
                                      lambda L, S, d, h, h_kv, d_k: layer_flops(L, S, d, h, h_kv, d_k) - 4 * L * S * (h - 1) * d_k),
                "pairs_with_d": ("The pairs of each head are counted with d columns: a head has d_k.",
                                 lambda L, S, d, h, h_kv, d_k: 4 * (L * h + S * h_kv) * d * d_k + 4 * L * S * h * d),
                "one_product_of_pairs": ("One of the two products over the pairs is missing: Q K^T and weights times V.",
                                         lambda L, S, d, h, h_kv, d_k: layer_flops(L, S, d, h, h_kv, d_k) - 2 * L * S * h * d_k),
                "keys_from_the_query": ("Keys and values are counted with L rows: they come from the other sequence and have S.",
                                        lambda L, S, d, h, h_kv, d_k: layer_flops(L, L, d, h, h_kv, d_k)),
                "keys_projected_from_the_query": (
                    "W_K and W_V are counted with L rows: they meet the other sequence, which has S.",
                    lambda L, S, d, h, h_kv, d_k: 4 * L * d * (h + h_kv) * d_k + 4 * L * S * h * d_k),
                "key_heads_ignored": ("W_K and W_V are counted with h heads: they have h_kv.",
                                      lambda L, S, d, h, h_kv, d_k: layer_flops(L, S, d, h, h, d_k)),
                "pairs_of_key_heads": (
                    "The pairs are counted for h_kv heads: every query head meets all keys, shared or not.",
                    lambda L, S, d, h, h_kv, d_k: 4 * (L * h + S * h_kv) * d * d_k + 4 * L * S * h_kv * d_k),
                "output_forgotten": ("The product with W_O is missing.",
                                     lambda L, S, d, h, h_kv, d_k: layer_flops(L, S, d, h, h_kv, d_k) - 2 * L * d * h * d_k),
                "one_addition_less": (
                    "An entry is counted with one addition less than multiplications, which is exact; asked is 2mkn, as everybody counts.",
                    _exact),
                "lengths_exchanged": ("L and S have changed places: queries and output have L rows, keys and values S.",
                                      lambda L, S, d, h, h_kv, d_k: layer_flops(S, L, d, h, h_kv, d_k)),
                "output_with_key_rows": ("The product with W_O is counted with S rows: there is one output for each query.",
                                         lambda L, S, d, h, h_kv, d_k: layer_flops(L, S, d, h, h_kv, d_k) + 2 * (S - L) * d * h * d_k),
                "softmax_counted": ("The softmax is counted, too: only the products are asked.",
                                    lambda L, S, d, h, h_kv, d_k: layer_flops(L, S, d, h, h_kv, d_k) + h * L * S),
                "width_is_d": ("The columns of all heads are taken as d: they are h * d_k, which may differ.",
                               lambda L, S, d, h, h_kv, d_k: 4 * L * d * d + 4 * S * d * h_kv * d_k + 4 * L * S * d),
            },
        ),
        Question(
            "q3", "parameters", parameters,
            parts=(
                Part("without biases", 1, _layers(False)),
                Part("with biases", 1, _layers(True)),
                Part("grouped heads", 1, _layers(True, grouped=True)),
                Part("heads whose widths do not add up to d", 1, _any_layer, hidden=True),
            ),
            slips={
                "output_forgotten": ("W_O and its bias are missing.",
                                     lambda d, h, h_kv, d_k, bias: parameters(d, h, h_kv, d_k, bias) - d * h * d_k - bias * d),
                "bias_ignored": ("The biases are never counted.",
                                 lambda d, h, h_kv, d_k, bias: parameters(d, h, h_kv, d_k, False)),
                "bias_always": ("The biases are counted where there are none.",
                                lambda d, h, h_kv, d_k, bias: parameters(d, h, h_kv, d_k, True)),
                "one_bias": ("Only one bias vector is counted: each of the four matrices has its own.",
                             lambda d, h, h_kv, d_k, bias: parameters(d, h, h_kv, d_k, False) + bias * d),
                "key_heads_ignored": ("W_K and W_V are counted with h heads: they have h_kv.",
                                      lambda d, h, h_kv, d_k, bias: parameters(d, h, h, d_k, bias)),
                "per_head_twice": ("The matrices are multiplied by the number of heads twice: h * d_k columns are all heads.",
                                   lambda d, h, h_kv, d_k, bias: h * parameters(d, h, h_kv, d_k, bias)),
                "biases_as_wide_as_d": ("Every bias is counted with d numbers: b_K and b_V have as many as W_K and W_V have columns.",
                                        lambda d, h, h_kv, d_k, bias: parameters(d, h, h_kv, d_k, False) + bias * 4 * d),
                "output_bias_forgotten": ("The bias of W_O is missing: it has d numbers.",
                                          lambda d, h, h_kv, d_k, bias: parameters(d, h, h_kv, d_k, bias) - bias * d),
                "output_matrix_forgotten": ("W_O is missing; its bias is counted.",
                                            lambda d, h, h_kv, d_k, bias: parameters(d, h, h_kv, d_k, bias) - d * h * d_k),
                "of_one_head": ("These are the parameters of one head.",
                                lambda d, h, h_kv, d_k, bias: parameters(d, 1, 1, d_k, bias)),
                "flops": ("These are twice the parameters, the FLOPs for one word.",
                          lambda d, h, h_kv, d_k, bias: 2 * parameters(d, h, h_kv, d_k, bias)),
            },
        ),
        Question(
            "q4", "kept_bytes", kept_bytes,
            parts=(
                Part("one text", 2, _memory(False, False)),
                Part("a batch", 1, _memory(True, False)),
                Part("grouped heads", 1, _memory(True, True)),
            ),
            slips={
                "numbers": ("These are numbers, not bytes: each takes itemsize bytes.",
                            lambda B, n, h, h_kv, d_k, itemsize: kept_bytes(B, n, h, h_kv, d_k, 1)),
                "bits": ("These are bits: itemsize counts bytes already.",
                         lambda B, n, h, h_kv, d_k, itemsize: kept_bytes(B, n, h, h_kv, d_k, 8 * itemsize)),
                "keys_only": ("Only the keys are counted: the values are as many.",
                              lambda *s: (kept_bytes(*s)[0], kept_bytes(*s)[1] // 2)),
                "one_map": ("The weights are those of one head: every query head has a map of its own.",
                            lambda B, n, h, h_kv, d_k, itemsize: (B * n * n * itemsize, 2 * B * h_kv * n * d_k * itemsize)),
                "maps_of_key_heads": ("The weights are counted for h_kv heads: every query head has a map of its own.",
                                      lambda B, n, h, h_kv, d_k, itemsize: kept_bytes(B, n, h_kv, h_kv, d_k, itemsize)),
                "keys_of_query_heads": ("Keys and values are counted for h heads: there are h_kv.",
                                        lambda B, n, h, h_kv, d_k, itemsize: kept_bytes(B, n, h, h, d_k, itemsize)),
                "exchanged": ("The two have changed places: the weights come first.", lambda *s: kept_bytes(*s)[::-1]),
                "allowed_pairs_only": ("Only half of the weights are counted: nothing is masked here, and a stored map has all n * n entries.",
                                       lambda B, n, h, h_kv, d_k, itemsize: (
                                           B * h * n * (n + 1) // 2 * itemsize, 2 * B * h_kv * n * d_k * itemsize)),
                "keys_as_many_as_queries": ("One of keys and values is counted for h heads: both have h_kv.",
                                            lambda B, n, h, h_kv, d_k, itemsize: (
                                                B * h * n * n * itemsize, B * (h + h_kv) * n * d_k * itemsize)),
                "batch_ignored": ("The batch is not counted: every text has its own weights, keys and values.",
                                  lambda B, *s: kept_bytes(1, *s)),
                "weights_with_width": ("The weights are counted with d_k: a weight is one number for each pair.",
                                       lambda B, n, h, h_kv, d_k, itemsize: (
                                           B * h * n * n * d_k * itemsize, 2 * B * h_kv * n * d_k * itemsize)),
            },
        ),
        Question(
            "q5", "crossover", crossover,
            parts=(
                Part("attention alone", 1, _lengths(False, False)),
                Part("with a feed-forward network", 2, _lengths(False, True)),
                Part("causal", 2, _lengths(True, True)),
                Part("models of today", 1, _models, hidden=True),
            ),
            slips={
                "ffn_forgotten": ("The feed-forward network is not counted.", lambda d, d_ff, causal: crossover(d, 0, causal)),
                "one_matrix_of_the_ffn": ("Only one matrix of the feed-forward network is counted: it has two.",
                                          lambda d, d_ff, causal: crossover(d, d_ff // 2, causal)),
                "ffn_multiplications": ("The feed-forward network counts twice here: mind multiplications and FLOPs on both sides.",
                                        lambda d, d_ff, causal: crossover(d, 2 * d_ff, causal)),
                "projections_halved": ("The projections are half of what they are: 8 n d² FLOPs against 4 n² d.",
                                       lambda d, d_ff, causal: d + d_ff if not causal else 2 * (d + d_ff) - 1),
                "causal_ignored": ("The causal case is the same as the full one here: it has n (n + 1) / 2 pairs.",
                                   lambda d, d_ff, causal: crossover(d, d_ff, False)),
                "causal_halves_the_length": ("With half of the pairs the balance comes later, not earlier.",
                                             lambda d, d_ff, causal: crossover(d, d_ff, False) // (2 if causal else 1)),
                "diagonal_forgotten": ("Nearly: n (n + 1) / 2 pairs are allowed, not n² / 2, so the length is one less.",
                                       lambda d, d_ff, causal: crossover(d, d_ff, False) * (2 if causal else 1)),
                "diagonal_excluded": ("Nearly: a word sees itself, so n (n + 1) / 2 pairs are allowed, not n (n - 1) / 2.",
                                      lambda d, d_ff, causal: crossover(d, d_ff, causal) + 2 * causal),
            },
        ),
    ),
)  # fmt: skip
