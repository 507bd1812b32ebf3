"""The mha_lib of an answer: what the exercise offers works, what it asks for is not there."""

import ast
import subprocess
import sys

import pytest

from grading.offered import LIBRARY, folder_for, imports, modules_for
from mha_lib import questions

EXERCISES = [slug for slug in questions.SLUGS if (LIBRARY / "questions" / f"{slug.partition('_')[2]}.py").exists()]


@pytest.fixture(params=EXERCISES)
def exercise(request):
    return questions.load(request.param)


def inside(folder, code):
    """What a plain Python says that has the folder's mha_lib and no other."""
    program = f"import sys; sys.path[:0] = [{str(folder)!r}]\n{code}"
    done = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).strip()


def test_what_is_offered_can_be_used(exercise):
    names = ", ".join(exercise.offers)
    code = f"from mha_lib.numpy import {names}\n" if names else ""
    code += "import mha_lib.numpy, mha_lib.data, mha_lib.viz\nfrom mha_lib.check import Check\n"
    code += "print(sorted(mha_lib.numpy.__all__), mha_lib.__file__)\n"
    code += "check = Check('04_scores'); check('q1', seed=3); check.summary()"
    said = inside(folder_for(exercise), code)
    assert said == f"{sorted(exercise.offers)} {folder_for(exercise)}/mha_lib/__init__.py"


def test_what_is_not_offered_is_refused_with_a_sentence(exercise):
    home = {name: module for module, name in imports(LIBRARY / "numpy" / "__init__.py")}
    withheld = sorted(set(home) - set(exercise.offers))
    kept = modules_for(exercise.offers, LIBRARY / "numpy")
    lines = [f"from mha_lib.numpy import {name}" for name in withheld]
    lines += [f"import mha_lib.numpy.{module}" for module in sorted(set(home.values()) - kept)]
    lines += [f"import mha_lib.{name}" for name in ("mistakes", "questions", "torch", "interop")]
    code = "\n".join(f"try: {line}; print('got', {line!r})\nexcept ImportError as e: print(e)" for line in lines)
    said = inside(folder_for(exercise), code).splitlines()
    assert len(said) == len(lines)
    wanted = f"{exercise.slug}: mha_lib does not offer"
    assert [line for line in said if not line.startswith(wanted) or "write it yourself" not in line] == []


def test_no_module_that_is_kept_defines_an_answer(exercise):
    kept = modules_for(exercise.offers, LIBRARY / "numpy")
    defined = set()
    for module in kept:
        tree = ast.parse((LIBRARY / "numpy" / f"{module}.py").read_text(encoding="utf-8"))
        defined |= {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    asked = {question.asks for question in exercise.questions} | {
        getattr(question.reference, "__name__", "") for question in exercise.questions if not question.value
    }
    assert not asked & (defined - set(exercise.offers))


def test_a_name_that_nobody_has_is_an_ordinary_error(exercise):
    assert "cannot import name" in inside(folder_for(exercise), "from mha_lib.numpy import attend")


def test_an_offer_that_the_library_lacks_is_an_error():
    with pytest.raises(ValueError, match="mha_lib.numpy has no attend"):
        modules_for(("softmax", "attend"), LIBRARY / "numpy")


def test_the_folder_holds_no_question_no_mistake_no_test(exercise):
    folder = folder_for(exercise)
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*.py")}
    assert names & {"mha_lib/questions.py", "mha_lib/mistakes.py"} and not any("questions/" in name for name in names)
    for name in ("questions", "mistakes", "torch", "interop"):
        assert (folder / "mha_lib" / f"{name}.py").read_text().startswith("raise ImportError")
