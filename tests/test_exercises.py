"""Every exercise: right answers score full marks and are accused of nothing, wrong ones lose their points and are named."""

import ast
from dataclasses import replace
from importlib import import_module

import nbformat
import pytest
import yaml

import exercises
from mha_lib.check import Check, Local
from mha_lib.mistakes import MISTAKES
from mha_lib.questions import SLUGS, judge, load

GENERAL = {
    "raised", "wrong_type", "wrong_shape", "wrong_dtype", "different", "hard_coded", "input_modified", "returns_nothing",
    "solution_imported", "hidden",
}  # fmt: skip


def bank(slug):
    return import_module(f"bank.{slug.partition('_')[2]}")


def verdict(slug, name, answer, seed=0):
    exercise = load(slug)
    question = exercise[name]
    return judge(exercise, question, Local({question.asks: answer}), seed)


def cases(which):
    """(slug, question, answer ...) of one side of the bank."""
    found = []
    for slug in SLUGS:
        for name, answers in getattr(bank(slug), which).items():
            for number, answer in enumerate(answers):
                label = getattr(answer[0] if which == "WRONG" else answer, "__name__", str(number))
                found.append(pytest.param(slug, name, answer, id=f"{slug}-{name}-{label}"))
    return found


@pytest.mark.parametrize("slug, name, answer", cases("RIGHT"))
def test_right_answers_score_full_marks(slug, name, answer):
    for seed in (0, 1, 2):
        v = verdict(slug, name, answer, seed)
        assert (v.status, v.points, v.kind) == ("right", v.max, ""), f"{v.kind} {v.sentence} {v.detail}"


@pytest.mark.parametrize("slug, name, wrong", cases("WRONG"))
def test_wrong_answers_lose_points_and_are_named(slug, name, wrong):
    answer, kind, points = wrong
    for seed in (0, 1, 2):
        v = verdict(slug, name, answer, seed)
        assert (v.status, v.kind, v.points) == ("wrong", kind, points), f"{v.sentence} {v.detail}"
        assert v.sentence or v.detail


KNOWN = [
    pytest.param(slug, q.name, mistake, function, id=f"{slug}-{q.name}-{mistake.name}")
    for slug in SLUGS
    for q in load(slug).questions
    for mistake, function in q.wrong(slug)
]


@pytest.mark.parametrize("slug, name, mistake, function", KNOWN)
def test_each_known_mistake_is_named_as_itself(slug, name, mistake, function):
    """So no two mistakes of a question behave alike on its inputs."""
    answer = function() if load(slug)[name].value else function
    v = verdict(slug, name, answer)
    assert v.kind == mistake.name and v.points < v.max
    assert v.sentence == mistake.diagnosis and v.section


@pytest.mark.parametrize("slug", SLUGS)
def test_the_bank_is_complete(slug):
    names = {question.name for question in load(slug).questions}
    assert 3 <= len(names) <= 5
    right, wrong = bank(slug).RIGHT, bank(slug).WRONG
    assert set(right) == set(wrong) == names
    assert all(len(answers) >= 3 for answers in right.values())
    known = {m.name for q in load(slug).questions for m, _ in q.wrong(slug)} | set(MISTAKES)
    assert {kind for answers in wrong.values() for _, kind, _ in answers} <= known | GENERAL


def test_the_bank_is_large():
    assert len(cases("WRONG")) + len(KNOWN) >= 60 and len(cases("RIGHT")) >= 3 * len(SLUGS)


@pytest.mark.parametrize("slug", SLUGS)
def test_blank_scores_nothing(slug):
    for question in load(slug).questions:
        for blank in (
            {},
            {question.asks: ...},
            {} if question.value else {question.asks: lambda *args, **kwargs: None},
        ):
            v = judge(load(slug), question, Local(blank), 0)
            assert (v.status, v.points, v.max) == ("not answered", 0, question.points)


@pytest.mark.parametrize("slug", SLUGS)
def test_each_exercise_has_a_part_that_is_only_graded(slug):
    assert any(part.hidden for q in load(slug).questions for part in q.parts)


def test_an_unknown_question_is_named():
    with pytest.raises(ValueError, match="04_scores has no question 'q9'; it has q1, q2, q3, q4, q5"):
        Check("04_scores")("q9")
    with pytest.raises(ValueError, match="slug must be one of 01_why"):
        Check("scores")


# ------------------------------------------------------------------------------------------------------------------- masters
@pytest.fixture(params=exercises.masters(), ids=lambda path: path.stem)
def path(request):
    return request.param


@pytest.fixture
def master(path):
    return nbformat.read(path, as_version=4)


def run(cells):
    """Run the cells in one namespace; the value of each cell's last line, with the namespace."""
    names, values = {"__name__": "__main__"}, []
    for source in cells:
        tree = ast.parse(source)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "cell", "exec"), names)
        values.append(None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), names))
    return values, names


def code(notebook):
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


def test_every_exercise_has_a_master():
    assert [path.stem for path in exercises.masters()] == list(SLUGS)


def test_the_master_asks_what_the_questions_check(path, master):
    asked = [yaml.safe_load(c.source) for c in master.cells if c.cell_type == "raw" and "BEGIN QUESTION" in c.source]
    assert [(q["name"], q["points"]) for q in asked] == [(q.name, q.points) for q in load(path.stem).questions]
    assert not any(q["check_cell"] for q in asked)
    config = yaml.safe_load(master.cells[0].source)
    assert config["name"] == path.stem and config["tests"] == {"files": True, "ok_format": False}


def test_each_question_says_how_hard_and_how_long_and_helps(path, master):
    notebook = exercises.learner(master)
    for question in load(path.stem).questions:
        stub = next(i for i, c in enumerate(notebook.cells) if f'check("{question.name}")' in c.source)
        prompt, after = notebook.cells[stub - 1].source, notebook.cells[stub + 1].source
        points = f"{question.points} point{'s' * (question.points > 1)}"
        assert any(f"{dots} · " in prompt for dots in ("●○○", "●●○", "●●●")) and f" minutes · {points}" in prompt
        assert after.count("<summary>Hint") >= 1 and after.count("<summary>A solution") == 1
        assert after.count("<summary>I get") >= (0 if question.value else 1)
        assert after.count("<details>") == after.count("</details>")


def test_the_solutions_score_full_marks(path, master):
    _, names = run(code(master))
    for question in load(path.stem).questions:
        v = judge(load(path.stem), question, Local(names), 5)
        assert v.status == "right", f"{v.question}: {v.sentence} {v.detail}"


def test_the_stubs_score_nothing_and_raise_nothing(path, master):
    values, names = run(code(exercises.learner(master)))
    for question in load(path.stem).questions:
        assert judge(load(path.stem), question, Local(names), 5).status == "not answered"
        assert any(repr(value).startswith(f"{question.name}: not answered yet") for value in values)


def test_no_stub_holds_a_solution(master):
    for source in exercises.answers(master):
        secret = exercises.secret_lines(source)
        assert secret, f"nothing is left out of {source}"
        assert "SOLUTION" not in exercises.stub(source) and "..." in exercises.stub(source)


def test_the_learners_notebook_is_fresh(path):
    assert not exercises.stale(path), "run `make exercises`"


def test_the_solutions_use_only_what_is_offered(path, master):
    """In grading, mha_lib offers nothing else."""
    allowed = {f"mha_lib.numpy.{name}" for name in load(path.stem).offers}
    for node in (n for source in code(master) for n in ast.walk(ast.parse(source))):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("mha_lib"):
            found = {f"{node.module}.{alias.name}" for alias in node.names}
            outside = {n for n in found - allowed if n.split(".")[1] not in ("check", "data", "viz")}
            assert not outside, f"{path.stem} uses {outside}, which it does not offer"


def test_two_mistakes_that_explain_the_same_name_neither():
    question = load("04_scores")["q2"]
    slip = question.slips["one_by_one"]
    alike = replace(question, slips={"one": slip, "other": ("Another sentence.", slip[1])})
    answer = Local({question.asks: slip[1]})
    assert judge(load("04_scores"), replace(question, slips={"one": slip}), answer, 0).kind == "one"
    v = judge(load("04_scores"), alike, answer, 0)
    assert v.kind == "wrong_shape" and not v.section
