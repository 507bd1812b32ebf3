"""Make `minilm_reference.npz` again with Hugging Face's own BertModel: python -m mha_lib.data.make_reference [--model DIR]

It needs what requirements-model.txt names, and `pip install transformers==5.24.0`, which nothing else here needs.
"""

import numpy as np

from mha_lib.data import make_file
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
    make_file.main(__doc__, REFERENCE, make)
