"""Train the small models of chapter 13 from several seeds: `python tools/training_seeds.py` writes chapters/training_seeds.json.

The chapter trains from one seed; this says how often it comes out so. Needs torch, takes a few minutes on one core.
"""

import json
from pathlib import Path

import torch
from machine import processor

from mha_lib.data.make_induction import accuracy, trained

RESULTS = Path(__file__).parents[1] / "chapters" / "training_seeds.json"
SETTINGS = [  # layers, heads in each, steps
    {"layers": 2, "heads": 1, "steps": 250},
    {"layers": 2, "heads": 8, "steps": 400},
    {"layers": 1, "heads": 1, "steps": 250},
    {"layers": 1, "heads": 8, "steps": 800},
]
SEEDS = range(5)

if __name__ == "__main__":
    torch.set_num_threads(1)
    rows = []
    for setting in SETTINGS:
        models = [trained(setting["heads"], setting["layers"], seed, setting["steps"])[0] for seed in SEEDS]
        rows.append(setting | {"right": [round(accuracy(model), 4) for model in models]})
        print(rows[-1])
    machine = {"processor": processor(), "torch": torch.__version__, "threads": 1}
    results = {"machine": machine, "command": "python tools/training_seeds.py", "seeds": list(SEEDS), "rows": rows}
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
