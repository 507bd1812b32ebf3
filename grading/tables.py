"""The tables for the class: all grades, Canvas's gradebook, what a regrade changed. No cell of them is a formula."""

import csv
import io
import unicodedata

from .late import moment, read_table

CANVAS = ("Student", "ID", "SIS Login ID", "Section")


def cell(value):
    """A value as a spreadsheet may safely see it: text that it would take for a formula gets a quote in front."""
    if value is None:
        return ""
    if not isinstance(value, str):
        return f"{value:g}" if isinstance(value, float) else str(value)
    value = "".join(c if c.isprintable() or c in "\t\r\n" else "\N{REPLACEMENT CHARACTER}" for c in value)
    return "'" + value if value.lstrip(" \n").startswith(("=", "+", "-", "@", "\t", "\r")) else value


def table(header, rows):
    """CSV text."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\r\n")
    writer.writerows([[cell(value) for value in row] for row in [header, *rows]])
    return stream.getvalue()


def grades(records):
    """Every submission of the class, one line each."""
    fields = ("learner", "canvas", "exercise", "file", "status", "points", "max", "submitted", "late", "final")
    rows = [[*(r[f] for f in fields), "yes" if r["counts"] else "no", _questions(r), _remarks(r)] for r in records]
    return table([*fields, "counts", "questions", "remarks"], rows)


def _questions(record):
    return "; ".join(f"{q['question']} {q['points']}/{q['max']} {q['kind']}".strip() for q in record["questions"])


def _remarks(record):
    return "; ".join([*record["notes"], *(trouble["error"] for trouble in record["troubles"])])


# ---------------------------------------------------------------------------------------------------------------------- Canvas
def roster(path):
    """(header, students as dicts) of a gradebook exported from Canvas."""
    header, rows = read_table(path)
    if not {"Student", "ID"} <= set(header):
        raise ValueError(f"{path} is no gradebook of Canvas: the columns Student and ID are missing")
    students = [row for row in rows if (row["ID"] or "").strip() or (row["Student"] or "").strip()]
    return header, [row for row in students if (row["Student"] or "").strip() != "Points Possible"]


def canvas(records, header=(), students=()):
    """(CSV text for Canvas, names of learners whom the roster does not have).

    One column for each exercise, named as in the roster where it has one ("Exercise 4 (98765)" for 04_scores if it starts
    with the title or the slug). Without a roster every learner becomes a line of its own.
    """
    counting = [r for r in records if r["counts"] and r["exercise"] and r["final"] is not None]
    most = {r["exercise"]: r["max"] for r in counting}
    titles = {r["exercise"]: r["title"] for r in counting}
    slugs = sorted(most)
    found, lost = _by_student(counting, students) if students else _as_students(counting)
    rows = [["    Points Possible", "", "", "", *(most[slug] for slug in slugs)]]
    for student, points in found:
        rows.append([student.get(name, "") for name in CANVAS] + [points.get(slug) for slug in slugs])
    return table([*CANVAS, *(_column(slug, titles[slug], header) for slug in slugs)], rows), lost


def _column(slug, title, header):
    return next((name for name in header if name.startswith((slug, title))), slug)


def _as_students(records):
    found = {}
    for r in records:
        student = {"Student": r["learner"], "ID": r["canvas"]}
        found.setdefault(r["canvas"] or r["learner"], (student, {}))[1][r["exercise"]] = r["final"]
    return list(found.values()), []


def _by_student(records, students):
    known, points, lost = {}, [{} for _ in students], []
    for index, student in enumerate(students):
        last, _, first = (student["Student"] or "").partition(",")
        names = {_plain(last + first), _plain(first + last), _plain(student.get("SIS Login ID") or "")}
        for key in {("id", (student["ID"] or "").strip()), *(("name", name) for name in names if name)}:
            known.setdefault(key, []).append(index)
    # two identities of one learner, such as a Canvas id and a name, meet here only: the later hand-in counts
    for r in sorted(records, key=lambda r: moment(r["submitted"])):
        places = known.get(("id", r["canvas"])) if r["canvas"] else known.get(("name", _plain(r["learner"])))
        if places and len(places) == 1:
            points[places[0]][r["exercise"]] = r["final"]
        else:
            lost.append(r["learner"])
    return list(zip(students, points, strict=True)), sorted(set(lost))


def _plain(name):
    return "".join(c for c in unicodedata.normalize("NFKC", name).casefold() if c.isalnum())


# --------------------------------------------------------------------------------------------------------------------- regrade
def changes(old, new):
    """What differs between two lists of records: rows of (file, learner, exercise, old points, new points, what changed)."""
    old, new = ({r["file"]: r for r in records} for records in (old, new))
    rows = []
    for file in sorted(old.keys() | new.keys()):
        before, after = old.get(file), new.get(file)
        what = _change(before, after)
        if what:
            known = after or before
            rows.append(
                [
                    file,
                    known["learner"],
                    known["exercise"],
                    before and before["points"],
                    after and after["points"],
                    what,
                ]
            )
    return rows


def _change(before, after):
    if before is None or after is None:
        return "new" if before is None else "no longer there"
    parts = [f"{name} {before[name]} → {after[name]}" for name in ("status", "exercise") if before[name] != after[name]]
    old, new = ({q["question"]: q["points"] for q in r["questions"]} for r in (before, after))
    parts += [
        f"{name} {old.get(name, '-')} → {new.get(name, '-')}"
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    ]
    return "; ".join(parts)


def changes_table(rows):
    """The same as CSV text."""
    return table(["file", "learner", "exercise", "points before", "points now", "what changed"], rows)
