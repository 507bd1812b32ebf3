"""Edit the library wrongly, one edit at a time, and demand that the tests turn red: python tools/mutants.py [-k WORD]

Each mutant is tried in a copy of the library with the tests that are there for it, up to the first failure. A mutant that
survives, an edit that no longer applies, and tests that cannot even run all count as failures of this command.
"""

import argparse
import contextlib
import io
import multiprocessing
import os
import shutil
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]


class Mutant(NamedTuple):
    what: str
    file: str
    old: str
    new: str
    tests: str


N, T = "mha_lib/numpy/", "mha_lib/torch/"
ATTENTION, MASKS, HEADS, LAYER, GRADIENTS, FLASH = (
    f"tests/test_{name}.py" for name in ("attention", "masks", "heads", "multihead", "gradients", "flash")
)
TRAINING = "tests/test_training.py"
JUDGE, EXERCISES = "mha_lib/questions/_judge.py", "tests/test_exercises.py::"
BANK = EXERCISES + "test_wrong_answers_lose_points_and_are_named"
PARALLEL = "tests/test_parallel.py"
MUTANTS = [
    Mutant("divide by d_k", "mha_lib/_checks.py", "1 / math.sqrt(head_dim)", "1 / head_dim", ATTENTION),
    Mutant("divide by d_k, seen by a notebook", "mha_lib/_checks.py", "1 / math.sqrt(head_dim)", "1 / head_dim",
           "chapters/04_scores.ipynb"),
    Mutant("no scaling", N + "scores.py", "query * dtype.type(scale) @", "query @", ATTENTION),
    Mutant("a scale of 0 taken for none", "mha_lib/_checks.py", "if scale is not None:", "if scale:", ATTENTION),
    Mutant("softcap forgets to multiply back", N + "scores.py", "scores = softcap * np.tanh", "scores = np.tanh", ATTENTION),
    Mutant("bias scaled too", N + "scores.py", "scores += bias", "scores += bias * dtype.type(scale)", ATTENTION),
    Mutant("bias dropped beside a mask", N + "scores.py", "if bias is not None:\n            scores += bias",
           "if bias is not None and mask is None:\n            scores += bias", ATTENTION),
    Mutant("mask dropped beside is_causal", N + "scores.py", "mask if allowed is None else allowed & mask",
           "mask if allowed is None else allowed", ATTENTION),
    Mutant("either constraint is enough", N + "scores.py", "allowed & mask", "allowed | mask", ATTENTION),
    Mutant("mask inverted", N + "scores.py", "np.copyto(scores, -np.inf, where=~allowed)",
           "np.copyto(scores, -np.inf, where=allowed)", ATTENTION),
    Mutant("finite value for masked scores", N + "scores.py", "np.copyto(scores, -np.inf,", "np.copyto(scores, -1e9,", ATTENTION),
    Mutant("key heads tiled", N + "heads.py", "np.repeat(x, scores_shape[-3] // x.shape[-3], axis=-3)",
           "np.concatenate([x] * (scores_shape[-3] // x.shape[-3]), axis=-3)", ATTENTION),
    Mutant("wrong axis of the softmax", N + "attention.py", "softmax(scores)", "softmax(scores, axis=-2)", ATTENTION),
    Mutant("no row maximum", N + "softmax.py", "x - np.where(largest == -np.inf, 0, largest)", "x", "tests/test_softmax.py"),
    Mutant("a row of -inf divides 0 by 0", N + "softmax.py", "np.where(total == 0, 1, total)", "total", "tests/test_softmax.py"),
    Mutant("float16 not widened", N + "_arrays.py", "np.dtype(np.float32) if dtype == np.float16 else dtype", "dtype", ATTENTION),
    Mutant("0 * NaN", N + "attention.py", "if allowed is None or finite.all():", "if True:", ATTENTION),
    Mutant("NaN swallowed", N + "attention.py", "output[seen @ where > 0] += strange", "pass", ATTENTION),
    Mutant("huge finite bias becomes -inf", N + "_arrays.py", "np.clip(bias, limits.min, limits.max)", "bias", ATTENTION),
    Mutant("mask may enlarge the scores", "mha_lib/_checks.py", "n in (1, t) for", "True for", ATTENTION),
    Mutant("causal shifted by one", N + "masks.py", "np.arange(S) <= offset", "np.arange(S) < offset", MASKS),
    Mutant("causal offset ignored", N + "masks.py", "<= offset + np.arange(L)", "<= np.arange(L)", MASKS),
    Mutant("window too wide by one", N + "masks.py", "> positions - window", ">= positions - window", MASKS),
    Mutant("padding shows one too many", N + "masks.py", "np.arange(S) < lengths", "np.arange(S) <= lengths", MASKS),
    Mutant("split without transpose", N + "heads.py",
           "x = x.reshape(*x.shape[:-1], num_heads, x.shape[-1] // num_heads)  # (..., L, H, D)\n    return x.swapaxes(-3, -2)",
           "return x.reshape(*x.shape[:-2], num_heads, x.shape[-2], x.shape[-1] // num_heads)", HEADS),
    Mutant("merge without transpose", N + "heads.py", "x = x.swapaxes(-3, -2)  # (..., L, H, D)\n    return x.reshape",
           "x = x.reshape(*x.shape[:-3], x.shape[-2], x.shape[-3], x.shape[-1])\n    return x.reshape", HEADS),
    Mutant("W_O dropped", N + "multihead.py", "output = project(concat, self.W_O, self.b_O)", "output = concat", LAYER),
    Mutant("b_O forgotten", N + "multihead.py", "output = project(concat, self.W_O, self.b_O)",
           "output = project(concat, self.W_O)", LAYER),
    Mutant("values projected by W_K", N + "multihead.py", "project(value, self.W_V, self.b_V)", "project(value, self.W_K, self.b_V)",
           LAYER),
    Mutant("values made of the query", N + "multihead.py", "value = key if value is None", "value = query if value is None", LAYER),
    Mutant("decoding starts at 0 again", N + "multihead.py", "start = 0 if cache is None else len(cache)", "start = 0", LAYER),
    Mutant("cache kept after an error", N + "multihead.py", "cache.reset(start)", "pass", LAYER),
    Mutant("rope turns the other way", N + "positions.py", "a * cos - b * sin, a * sin + b * cos",
           "a * cos + b * sin, b * cos - a * sin", "tests/test_positions.py"),
    Mutant("the other convention of rope, seen by a notebook", N + "positions.py", "slice(1, None, 2)) if interleaved else",
           "slice(1, None, 2)) if not interleaved else", "chapters/12_positions.ipynb"),
    Mutant("three paths to x overwritten, seen by a notebook", N + "multihead.py",
           "grad_input + grads[source] if source in grads else grad_input", "grad_input", "chapters/11_gradients.ipynb"),
    Mutant("sample variance in LayerNorm", N + "embedding.py", "(centred**2).mean(-1, keepdims=True)",
           "(centred**2).sum(-1, keepdims=True) / (x.shape[-1] - 1)", "tests/test_embedding.py"),
    Mutant("softmax backward without the row's mean", N + "attention.py",
           "weights * (grad_weights - (weights * grad_weights).sum(-1, keepdims=True))", "weights * grad_weights", GRADIENTS),
    Mutant("slope of the softcap forgotten", N + "attention.py", "grad_scores *= 1 - (capped / softcap) ** 2", "pass", GRADIENTS),
    Mutant("scale forgotten in the key's gradient", N + "attention.py", "grad_key = scale * weigh", "grad_key = weigh", GRADIENTS),
    Mutant("gradients of grouped heads dealt out in turn", N + "attention.py", "grad.reshape(*shape[:-2], group, *shape[-2:]).sum(-3)",
           "grad.reshape(*shape[:-3], group, *shape[-3:]).sum(-4)", GRADIENTS),
    Mutant("gradient of a rotation not turned back", N + "multihead.py", "-positions if back else positions", "positions", GRADIENTS),
    Mutant("value's gradient lost in self-attention", N + "multihead.py",
           "grad_input + grads[source] if source in grads else grad_input", "grads[source] if source in grads else grad_input",
           GRADIENTS),
    Mutant("flash: sums not rescaled", N + "flash.py", "total *= shrink[..., 0]", "pass", FLASH),
    Mutant("flash: outputs not rescaled", N + "flash.py", "acc *= shrink", "pass", FLASH),
    Mutant("flash: the last key of a causal tile skipped", N + "flash.py", "min(S, self.query_offset + rows.stop)",
           "min(S, self.query_offset + rows.stop - 1)", FLASH),
    Mutant("flash: no maximum however large the scores", N + "flash.py", "exponent < 60", "exponent < 6000", FLASH),
    Mutant("flash: backward without the row sums", N + "flash.py", "np.concatenate([grad[head], -row_sums[head, :, None]], 1)", "np.pad(grad[head], ((0, 0), (0, 1)))", FLASH),
    Mutant("torch: mask inverted on the fused path", T + "attention.py", "attn_mask = allowed | empty",
           "attn_mask = ~allowed | empty", ATTENTION),
    Mutant("torch: empty rows see everything", T + "attention.py",
           "return output if empty is None else output.masked_fill(empty, 0)", "return output", ATTENTION),
    Mutant("torch: no look at what hides behind a mask", T + "_tensors.py",
           'return x.device.type == "cpu" and not torch.compiler.is_compiling()', "return False", ATTENTION),
    Mutant("torch: dropout in eval", T + "multihead.py", "self.dropout if self.training else 0.0", "self.dropout",
           "tests/test_torch.py"),
    Mutant("torch: never fused", T + "attention.py", "fused = not return_weights and", "fused = False and", "tests/test_torch.py"),
    Mutant("parallel: b_O once for each process", T + "parallel.py", "output + self.b_O  # once", "output + self.mesh.size() * self.b_O  # once", PARALLEL),
    Mutant("parallel: gradients of the input not added up", T + "parallel.py", "grad_placements=[Partial()]", "grad_placements=[Replicate()]", PARALLEL),
    Mutant("parallel: rows of W_O of another process", T + "parallel.py", "own = whole.detach().chunk(size, 0 if name == \"W_O\" else -1)[rank]",
           "own = whole.detach().chunk(size, 0 if name == \"W_O\" else -1)[rank - (name == \"W_O\")]", PARALLEL),
    Mutant("parallel: the last to fail is blamed", T + "_processes.py", "_, rank, what = min(", "_, rank, what = max(", PARALLEL),
    Mutant("interop: weight not transposed", "mha_lib/interop.py", 'weights["W_O"] = _array(module.out_proj.weight).T.copy()',
           'weights["W_O"] = _array(module.out_proj.weight)', "tests/test_interop.py"),
    Mutant("interop: padding mask not inverted", "mha_lib/interop.py", "mask = ~given if", "mask = given if", "tests/test_interop.py"),
    Mutant("judge: any number of explanations is one", JUDGE, "found[0] if len(found) == 1 else None", "found[0] if found else None",
           EXERCISES + "test_two_mistakes_that_explain_the_same_name_neither"),
    Mutant("judge: the first result explains all", JUDGE, "return all(_same(t.got", "return any(_same(t.got", BANK),
    Mutant("judge: changed inputs pass", JUDGE, "and not any(t.touched for t in trials)", "", BANK),
    Mutant("judge: shapes do not count", JUDGE, "if got.shape != want.shape:", "if got.size != want.size:", BANK),
    Mutant("judge: lists pass", JUDGE, "if not isinstance(got, np.ndarray | np.generic) and not", "if False and not", BANK),
    Mutant("judge: dtypes do not count", JUDGE, "if dtype and got.dtype != want.dtype:", "if False:", BANK),
    Mutant("judge: a looser tolerance", JUDGE, "<= tolerance * largest", "<= 100_000 * tolerance * largest", BANK),
    Mutant("judge: NaN equals a number", JUDGE, "~(np.isnan(got) & np.isnan(want))", "~np.isnan(got)", "tests/test_check.py"),
    Mutant("judge: the same inputs for every seed", JUDGE, "default_rng([seed, index])", "default_rng(index)", "tests/test_check.py"),
    Mutant("check: hidden parts are shown", "mha_lib/check.py", "Local(names), seed, hidden=False", "Local(names), seed",
           "tests/test_check.py"),
    Mutant("check: an answer gets the inputs themselves", "mha_lib/check.py", "given = copy.deepcopy(call)", "given = call", BANK),
    Mutant("grader: the solutions are in the sandbox", "grading/offered.py", "if path.stem in kept:", "if True:",
           "tests/grading/test_offered.py"),
    Mutant("grader: formulas reach a spreadsheet", "grading/tables.py", "return \"'\" + value if", "return value if",
           "tests/grading/test_tables.py"),
    Mutant("grader: the environment is passed on", "grading/bubblewrap.py", '"--clearenv", ', "",
           "tests/grading/test_sandbox.py"),
    Mutant("grader: lateness costs nothing", "grading/late.py", "points * (1 - self.percent * days / 100)", "points",
           "tests/grading/test_tables.py"),
    Mutant("training: the end of the first block counts as known", "mha_lib/data/induction.py", "np.arange(length) >= period",
           "np.arange(length) >= period - 1", TRAINING),
    Mutant("training: the target is not shifted", "mha_lib/data/induction.py", "sequence[:, 1:], known", "sequence[:, :-1], known",
           TRAINING),
    Mutant("training: no residual connection", N + "training.py", "x = x + project(", "x = project(", TRAINING),
    Mutant("training: no head is taken out", N + "training.py", "if head_mask is not None:", "if False:", TRAINING),
    Mutant("training: torch sees the future", T + "training.py", "layer(x, is_causal=True)", "layer(x)", TRAINING),
    Mutant("training: what cannot be known is counted", T + "training.py", "model(tokens)[known], targets[known]",
           "model(tokens).flatten(0, 1), targets.flatten()", TRAINING),
    Mutant("training: steps do not shrink", T + "training.py", "min(1.0, 2 - 2 * step / len(batches))", "1.0", TRAINING),
    Mutant("padding counted as words", "mha_lib/measure.py", "(place < lengths[:, None] - 1)",
           "(place < L - 1) & (lengths[:, None] > 0)", "tests/test_measure.py"),
    Mutant("contributions without W_O", "mha_lib/measure.py", "values @ W_O.reshape(H, D, W_O.shape[1])", "values", "tests/test_measure.py"),
    Mutant("feed-forward net not added to its input", "mha_lib/encoder.py", "self._norm(x + self._dense(inner",
           "self._norm(self._dense(inner", "tests/test_encoder.py"),
    Mutant("encoder without a padding mask", "mha_lib/encoder.py", "mask=padding_mask(lengths, x.shape[-2])", "mask=None",
           "tests/test_encoder.py"),
]  # fmt: skip


def run(mutant):
    """What became of the mutant: "killed", or the reason why that cannot be said."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("mha_lib", "grading", "tests", "tools", "chapters", "exercises", "pyproject.toml"):
            source, target = ROOT / name, Path(folder, name)
            ignore = shutil.ignore_patterns("__pycache__", "*.checkpoint*")
            shutil.copytree(source, target, ignore=ignore) if source.is_dir() else shutil.copy(source, target)
        if mutant.old:
            file = Path(folder, mutant.file)
            text = file.read_text(encoding="utf-8")
            if text.count(mutant.old) != 1:
                return f"the edit applies {text.count(mutant.old)} times in {mutant.file}, not once"
            file.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
        code, said = pytest_in(folder, mutant.tests)
    if code == pytest.ExitCode.TESTS_FAILED:
        return "killed"
    return "survived" if code == pytest.ExitCode.OK else f"the tests did not run: {said[-600:]}"


def pytest_in(folder, tests):
    """What pytest ends with, and what it says, for the copy in this folder."""
    os.environ |= {"PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"}  # for the processes that tests start
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # plugins take seconds to load
    sys.path.insert(0, folder)
    sys.dont_write_bytecode = True
    nbval = ["-p", "nbval.plugin", "--nbval", "--nbval-current-env", "--nbval-cell-timeout=120"]
    plugin = nbval if tests.endswith(".ipynb") else []
    said = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = pytest.main(["-x", "-q", "-p", "no:cacheprovider", *plugin, tests])
    return code, said.getvalue()


def processes():
    """Each mutant has a process of its own; where the system can, it is split off one that has PyTorch loaded, which takes seconds."""
    kind = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    context = multiprocessing.get_context(kind)
    context.set_forkserver_preload(["torch"])
    return ProcessPoolExecutor(min(2, os.cpu_count() or 1), context, max_tasks_per_child=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-k", metavar="WORD", default="", help="only mutants whose description holds WORD")
    chosen = [m for m in MUTANTS if parser.parse_args().k in m.what]
    with processes() as pool:
        control = pool.submit(run, Mutant("no edit", "", "", "", "tests/test_softmax.py")).result()
        if control != "survived":
            sys.exit(f"the tests fail without any edit, so no mutant can be judged: {control}")
        results = list(pool.map(run, chosen))
    for mutant, result in zip(chosen, results, strict=True):
        if result != "killed":
            print(f"NOT KILLED  {mutant.what} ({mutant.file}; {mutant.tests}): {result}")
    killed = results.count("killed")
    print(f"mutants: {killed} of {len(chosen)} killed")
    sys.exit(killed != len(chosen))


if __name__ == "__main__":
    main()
