"""Make `minilm_reference.npz` again with Hugging Face's own BertModel: python -m mha_lib.data.make_reference [--model DIR]

It needs what requirements-model.txt names, and `pip install transformers==5.24.0`, which nothing else here needs.
"""

import argparse
from pathlib import Path

import numpy as np

from mha_lib.data.heads import REFERENCE
from mha_lib.data.make_heads import tokenised
from mha_lib.data.minilm import SENTENCES
from mha_lib.data.model import load_tokenizer, model_folder
from mha_lib.data.sentences import PLAIN


def make(folder):
    """All arrays of the file, by name."""
    import torch
    from transformers import BertModel

    model = BertModel.from_pretrained(model_folder(folder), attn_implementation="eager").eval()

    def run(sentences):
        _, ids, lengths = tokenised(load_tokenizer(folder), sentences)
        own = torch.tensor(np.arange(ids.shape[1]) < lengths[:, None])
        with torch.no_grad():
            options = {"output_hidden_states": True, "output_attentions": True}
            return model(torch.tensor(ids).long(), attention_mask=own.long(), **options), own[..., None]

    one, _ = run(SENTENCES[:1])
    eight, own = run(PLAIN[:8])
    return {
        "hidden": torch.cat(one.hidden_states).numpy(),
        "weights": torch.cat(one.attentions).numpy(),
        "pooled": ((eight.last_hidden_state * own).sum(1) / own.sum(1)).numpy(),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", help="folder with model.safetensors and tokenizer.json")
    parser.add_argument("--out", default=REFERENCE, type=Path, help="the file to write")
    arguments = parser.parse_args()
    np.savez_compressed(arguments.out, **make(arguments.model))
    print(f"{arguments.out}: {arguments.out.stat().st_size} bytes")
