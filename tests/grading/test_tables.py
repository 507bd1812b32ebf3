"""Late policy, tables and feedback, from records alone."""

import csv
import io
from datetime import timedelta

import pytest

from grading import late, report, tables

DUE = late.moment("2027-01-31T23:59")


def question(name, points, most, **more):
    parts = [{"title": "shown", "points": points, "max": most - 1, "hidden": False}]
    parts.append({"title": "secret title", "points": 0, "max": 1, "hidden": True})
    empty = {"sentence": "", "detail": "", "section": "", "kind": ""}
    return {"question": name, "status": "wrong", "points": points, "max": most, "parts": parts} | empty | more


def record(learner="ada", points=8, **more):
    usual = {
        "file": f"{learner}_04_scores.ipynb", "learner": learner, "canvas": "", "exercise": "04_scores", "title": "Scores",
        "status": "graded", "points": points, "max": 10, "notes": [], "troubles": [], "submitted": DUE.isoformat(),
        "questions": [question("q1", points, 10)],
    }  # fmt: skip
    return usual | more


def settled(*records, policy=None, known=None):
    return late.settle(records, policy or late.Policy(), known or {})


def rows(text):
    return list(csv.reader(io.StringIO(text)))


# ------------------------------------------------------------------------------------------------------------------------- late
@pytest.mark.parametrize(
    ("after", "days"),
    [(-1000, 0), (0, 0), (1, 1), (86400, 1), (86401, 2), (10 * 86400, 10)],
)
def test_days_begun(after, days):
    assert late.Policy(DUE, 10).days(DUE + timedelta(seconds=after)) == days


def test_the_deduction_is_of_the_points_reached_and_ends_at_zero():
    policy = late.Policy(DUE, 15)
    assert [policy.final(8, days) for days in (0, 1, 2, 7)] == [8, 6.8, 5.6, 0]
    assert late.Policy().days(DUE) == 0


def test_a_zone_is_respected():
    assert late.moment("2027-01-31T23:59+05:00") - late.moment("2027-01-31T23:59+00:00") == timedelta(hours=-5)
    with pytest.raises(ValueError):
        late.moment("yesterday")


def test_hand_in_times_come_from_a_table_or_the_file(tmp_path):
    table = tmp_path / "times.csv"
    table.write_text("\ufefflearner,file,time\nada,,2027-02-01T10:00\n,bob_04_scores.ipynb,2027-02-02T10:00\n")
    result = settled(record(), record("bob"), record("eve"), policy=late.Policy(DUE, 10), known=late.times(table))
    assert [(r["late"], r["final"]) for r in result] == [(1, 7.2), (2, 6.4), (0, 8)]
    table.write_text("name,when\nada,now\n")
    with pytest.raises(ValueError, match="columns time and file"):
        late.times(table)


def test_the_latest_that_could_be_graded_counts():
    first, second = (
        record(file="a", submitted="2027-01-01T10:00+00:00"),
        record(file="b", submitted="2027-01-02T10:00+00:00"),
    )
    broken = record(file="c", submitted="2027-01-03T10:00+00:00", status="unreadable", points=0)
    assert [r["counts"] for r in settled(second, first, broken, record("bob"))] == [True, False, False, True]


def test_learners_of_one_name_are_kept_apart_by_their_id():
    assert all(r["counts"] for r in settled(record(canvas="1"), record(canvas="2", file="b")))


# ----------------------------------------------------------------------------------------------------------------------- tables
@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1", " =1", "\n=1", '=HYPERLINK("x")'])
def test_no_cell_is_a_formula(text):
    assert rows(tables.table(["x"], [[text]]))[1][0].startswith("'")


def test_numbers_and_plain_text_stay():
    assert rows(tables.table(["x"], [["a,b", 3, 2.5, None, "x=1"]]))[1] == ["a,b", "3", "2.5", "", "x=1"]
    assert tables.cell("a\0\x1b\u202eb\ud800") == "a\ufffd\ufffd\ufffdb\ufffd"


def test_the_table_of_grades():
    header, first, second = rows(
        tables.grades(settled(record(), record("=bob", None, status="not graded", questions=[])))
    )
    assert first[header.index("final")] == "8" and first[header.index("questions")] == "q1 8/10"
    assert second[0] == "'=bob" and second[header.index("points")] == second[header.index("final")] == ""


ROSTER = """\
Student,ID,SIS User ID,SIS Login ID,Section,Scores and more (98765)
    Points Possible,,,,,10
"Lovelace, Ada",123,u1,ada,One,
"Babbage, Charles",124,u2,cb7,One,
"Hopper, Grace",125,u3,gh1,Two,
"Twin, Same",126,u4,t1,Two,
"Twin, Same",127,u5,t2,Two,
"""


def test_canvas_gets_its_own_names_and_columns(tmp_path):
    path = tmp_path / "roster.csv"
    path.write_text("\ufeff" + ROSTER)
    header, students = tables.roster(path)
    records = settled(
        record("lovelaceada", canvas="123"),
        record("cb7", 5),
        record("Grace Hopper", 2),
        record("Same Twin"),
        record("nobody"),
    )
    text, lost = tables.canvas(records, header, students)
    assert lost == ["Same Twin", "nobody"]
    assert rows(text) == [
        ["Student", "ID", "SIS Login ID", "Section", "Scores and more (98765)"],
        ["    Points Possible", "", "", "", "10"],
        ["Lovelace, Ada", "123", "ada", "One", "8"],
        ["Babbage, Charles", "124", "cb7", "One", "5"],
        ["Hopper, Grace", "125", "gh1", "Two", "2"],
        ["Twin, Same", "126", "t1", "Two", ""],
        ["Twin, Same", "127", "t2", "Two", ""],
    ]


def test_of_two_identities_of_one_learner_the_later_hand_in_counts(tmp_path):
    path = tmp_path / "roster.csv"
    path.write_text("Student;ID;SIS Login ID\nLovelace, Ada;7;ada\n", encoding="utf-8-sig")  # as spreadsheets write it
    header, students = tables.roster(path)
    early = record("lovelaceada", points=8, canvas="7", file="a")
    late_ = record("Ada Lovelace", points=3, file="b", submitted=(DUE + timedelta(hours=1)).isoformat())
    for records in ([early, late_], [late_, early]):
        text, lost = tables.canvas(settled(*records), header, students)
        assert rows(text)[2][-1] == "3" and not lost


def test_a_table_in_another_encoding_is_refused(tmp_path):
    (tmp_path / "roster.csv").write_bytes("Student,ID\nÄda,1\n".encode("latin-1"))
    with pytest.raises(ValueError, match="is not UTF-8"):
        tables.roster(tmp_path / "roster.csv")


def test_canvas_without_a_roster_has_a_line_for_each_learner():
    text, lost = tables.canvas(settled(record(), record("bob", 3, canvas="9"), record(exercise="05_softmax", file="c")))
    assert lost == [] and rows(text)[0][4:] == ["04_scores", "05_softmax"]
    assert rows(text)[2:] == [["ada", "", "", "", "8", "8"], ["bob", "9", "", "", "3", ""]]


def test_what_is_no_gradebook_is_refused(tmp_path):
    (tmp_path / "roster.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="no gradebook"):
        tables.roster(tmp_path / "roster.csv")


def test_a_regrade_says_what_changed():
    old = [record(), record("bob", 3), record("eve")]
    new = [record(), record("bob", 5), record("zoe", None, status="not graded", questions=[])]
    assert tables.changes(old, new) == [
        ["bob_04_scores.ipynb", "bob", "04_scores", 3, 5, "q1 3 → 5"],
        ["eve_04_scores.ipynb", "eve", "04_scores", 8, None, "no longer there"],
        ["zoe_04_scores.ipynb", "zoe", "04_scores", None, None, "new"],
    ]
    assert len(rows(tables.changes_table(tables.changes(old, new)))) == 4


# --------------------------------------------------------------------------------------------------------------------- feedback
def test_what_comes_from_a_submission_is_escaped():
    evil = "<script>alert('1')</script>&\"{x}"
    names = {"learner": evil, "file": evil, "notes": [evil], "troubles": [{"cell": 1, "error": evil}]}
    [settled_record] = settled(
        record(**names, questions=[question("q1", 0, 4, sentence=evil, detail=evil, section=evil)])
    )
    for book in ("", "https://example.org/book"):
        page = report.page(settled_record, book)
        assert "<script" not in page and page.count("&lt;script&gt;") >= 6


def test_a_hidden_part_shows_its_points_and_nothing_else():
    page = report.page(settled(record())[0])
    assert "secret title" not in page and "only used for grading: 0 of 1" in page and "shown: 8 of 9" in page


def test_lateness_and_links_are_shown():
    wrong = question("q1", 4, 10, sentence="No scale.", section="04_scores#what-goes-wrong")
    known = {"ada": DUE + timedelta(hours=1)}
    [settled_record] = settled(record(points=4, questions=[wrong]), policy=late.Policy(DUE, 10), known=known)
    page = report.page(settled_record, "https://example.org/")
    assert "4 of 10 points; handed in late (1 day begun): 3.6 points" in page
    assert 'href="https://example.org/04_scores.html#what-goes-wrong"' in page and "No scale." in page


def test_a_failure_of_the_grader_is_not_put_on_the_learner():
    failed = settled(record(points=None, status="not graded", questions=[], notes=["the grader failed: /secret/path"]))[
        0
    ]
    page = report.page(failed)
    assert "the grader failed, not you" in page and "/secret/path" not in page
