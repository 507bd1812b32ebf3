"""Make `minilm_heads.npz` again, what chapter 15 measures: python -m mha_lib.data.make_heads [--model DIR]

It needs what requirements-model.txt names. It runs the whole model in float64 on the sentences of `sentences.py`, once as it is and
216 times with one head changed; ten minutes on one core.
"""

import re

import numpy as np

from mha_lib import measure
from mha_lib.data import make_file
from mha_lib.data.heads import HEADS
from mha_lib.data.model import NUM_HEADS, load_model, load_tokenizer
from mha_lib.data.sentences import AGREEMENT, PLAIN, SENSE, readings
from mha_lib.encoder import Encoder, mean_pool


def tokenised(tokenizer, sentences):
    """The encodings, ids (B, L) with 0 as padding, and lengths (B,)."""
    encoded = [tokenizer.encode(sentence) for sentence in sentences]
    lengths = np.array([len(e.ids) for e in encoded])
    ids = np.zeros((len(encoded), lengths.max()), np.int32)
    for row, e in zip(ids, encoded, strict=True):
        row[: len(e.ids)] = e.ids
    return encoded, ids, lengths


def run(encoder, ids, lengths):
    """The inputs of all layers with the last output, and the trace of each layer's attention."""
    x, inputs, traces = encoder.embed(ids), [], []
    for n in range(encoder.num_layers):
        inputs.append(x)
        x, trace = encoder.layer(n, x, lengths)
        traces.append(trace)
    return [*inputs, x], traces


def places(encoded, sentence, word):
    """Which tokens are pieces of the word, which stands in the sentence once: (L,) boolean."""
    ((start, end),) = (m.span() for m in re.finditer(rf"\b{word}\b", sentence.lower()))
    found = np.array([start <= a < b <= end for a, b in encoded.offsets])
    assert found.any(), f"{word!r} has no piece of its own in {sentence!r}"
    return found


def where_weights_fall(encoder, lengths, traces):
    """Numbers per layer, sentence and head, (6, B, 12), by name."""
    weights = np.stack([t.weights for t in traces])  # (layers, B, H, L, L)
    W_O = [layer.W_O for layer in encoder.attention]
    shares = [measure.contribution_shares(t.weights, t.v, W) for t, W in zip(traces, W_O, strict=True)]
    images = np.stack([measure.image_lengths(t.v, W) for t, W in zip(traces, W_O, strict=True)])
    added = [measure.image_lengths(t.heads, W) for t, W in zip(traces, W_O, strict=True)]
    return {
        "previous": measure.offset_weight(weights, lengths, -1),
        "next": measure.offset_weight(weights, lengths, 1),
        "first": measure.mean_over_words(weights[..., 0], lengths),
        "largest": measure.mean_over_words(weights.max(-1), lengths),
        "first_share": measure.mean_over_words(np.stack(shares)[..., 0], lengths),
        "first_image": images[..., 0] / measure.mean_over_words(images, lengths),
        "added": measure.mean_over_words(np.stack(added), lengths),
    }


def one_head_changed(encoder, inputs, traces, lengths):
    """How far the embedding of each sentence moves, (6, B, 12), when a head is silent, constant, or weighs evenly."""
    B, L = inputs[0].shape[:2]
    own = np.arange(L) < lengths[:, None]  # (B, L)
    before = mean_pool(inputs[-1], lengths)
    moved = {name: np.zeros((encoder.num_layers, B, encoder.num_heads)) for name in ("silent", "constant", "even")}
    for n, (x, trace) in enumerate(zip(inputs[:-1], traces, strict=True)):
        for m in range(encoder.num_heads):
            mean = np.where(own[..., None], trace.v[:, m], 0).sum(1, keepdims=True) / lengths[:, None, None]
            other = {"silent": 0, "constant": trace.heads[:, m][own].mean(0), "even": mean}
            for name, rows in other.items():
                heads = trace.heads.copy()
                heads[:, m] = rows
                y, _ = encoder.layer(n, x, lengths, edit=lambda _n, _trace, heads=heads: heads)
                y = mean_pool(encoder.finish(n + 1, y, lengths), lengths)
                moved[name][n, :, m] = measure.distance(y, before)
    return moved


def pronouns(encoder, tokenizer, pairs):
    """Token places and weights of all readings: the pronoun's weight on the noun it means and on the other, (6, B, 12)."""
    read = [reading for pair in pairs for reading in readings(pair)]
    encoded, ids, lengths = tokenised(tokenizer, [sentence for sentence, *_ in read])
    marks = np.zeros((3, *ids.shape), bool)  # pronoun, the noun it means, the other noun
    for b, (sentence, *named) in enumerate(read):
        for mark, word in zip(marks[:, b], named, strict=True):
            mark[: lengths[b]] = places(encoded[b], sentence, word)
    assert (marks[0].sum(-1) == 1).all(), "a pronoun is one token"
    _, traces = run(encoder, ids, lengths)
    rows = np.stack([t.weights for t in traces])[:, np.arange(len(ids)), :, marks[0].argmax(-1)]  # (B, layers, H, L)
    to_meant, to_other = ((rows * mark[:, None, None]).sum(-1).swapaxes(0, 1) for mark in marks[1:])
    return {"ids": ids, "lengths": lengths, "marks": marks, "to_meant": to_meant, "to_other": to_other}


def make(folder):
    """All arrays of the file, by name."""
    encoder, tokenizer = Encoder(load_model(folder), NUM_HEADS), load_tokenizer(folder)
    _, ids, lengths = tokenised(tokenizer, PLAIN)
    inputs, traces = run(encoder, ids, lengths)
    arrays = {"ids": ids, "lengths": lengths} | where_weights_fall(encoder, lengths, traces)
    arrays |= one_head_changed(encoder, inputs, traces, lengths)
    for kind, pairs in {"sense": SENSE, "agreement": AGREEMENT}.items():
        arrays |= {f"{kind}_{name}": x for name, x in pronouns(encoder, tokenizer, pairs).items()}
    return {name: x.astype(np.float16) if x.dtype.kind == "f" else x for name, x in arrays.items()}


if __name__ == "__main__":
    make_file.main(__doc__, HEADS, make)
