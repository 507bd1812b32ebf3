"""The known wrong ways, in one place: each a function, one sentence of diagnosis, and the section that explains it.

Every mistake takes the arguments of the right function that it replaces (`mistake.of` names it) and computes what people who make
that mistake compute. The chapters show them failing, the page of common mistakes lists them, and every check must reject them.

>>> MISTAKES["no_scale"].of, MISTAKES["no_scale"].section
('scaled_dot_product_attention', '04_scores#what-goes-wrong')
>>> no_scale([[2.0]], [[1.0], [1.0]], [[0.0], [4.0]])
array([[2.]])
"""

# ruff: noqa: F401 (__all__ takes the names from MISTAKES)
from ._mistake import MISTAKES, Mistake
from .attention import keys_as_values, weights_transposed
from .cache import causal_mask_top_left
from .embedding import norm_over_tokens
from .flash import (
    accumulator_not_rescaled,
    divided_in_every_tile,
    masked_tile_is_nan,
    maximum_of_the_tile,
    rescaled_nowhere,
)
from .gradients import (
    mask_forgotten_backwards,
    row_sum_forgotten,
    scale_forgotten_backwards,
    softmax_slope_diagonal,
    weights_not_transposed_backwards,
)
from .heads import (
    merge_without_transpose,
    one_projection_for_all_heads,
    projected_twice,
    split_in_turn,
    split_without_transpose,
)
from .masks import (
    causal_mask_hides_itself,
    causal_mask_sees_next,
    causal_mask_transposed,
    mask_added,
    mask_after_softmax,
    mask_ignored,
    mask_inverted,
    mask_multiplied,
    mask_with_finite_value,
    masked_row_is_nan,
    padding_mask_inverted,
    padding_mask_shifted,
)
from .multihead import cross_attention_to_itself, key_heads_tiled, values_from_the_query
from .output import heads_averaged, output_bias_forgotten, output_projection_missing, output_projection_transposed
from .parallel import (
    blocks_averaged,
    blocks_without_rescaling,
    columns_dealt_in_turn,
    output_bias_on_every_device,
    output_rows_of_another_device,
    packed_matrix_cut_through,
    parts_averaged,
    parts_not_added_up,
)
from .positions import (
    alibi_one_slope,
    alibi_sign_flipped,
    alibi_starts_at_0,
    frequency_of_each_column,
    positions_start_at_0,
    rope_exponent_halved,
    rope_of_the_other_convention,
    sines_before_cosines,
)
from .projection import bias_forgotten, weight_transposed
from .scores import divided_by_d_k, divided_by_sqrt_d_model, no_scale, query_and_key_swapped
from .softmax import (
    normalised_without_exp,
    softmax_over_everything,
    softmax_over_heads,
    softmax_over_queries,
    softmax_without_maximum,
)

__all__ = ["MISTAKES", "Mistake", *MISTAKES]
