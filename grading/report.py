"""A learner's page of feedback: what was right, what was not and why. Nothing of a hidden part but its points."""

from html import escape

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
body {{ font: 1rem/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; color-scheme: light dark; }}
h2 {{ font-size: 1.1rem; margin: 1.6rem 0 0; }}
ul {{ margin: .3rem 0; }}
code {{ white-space: pre-wrap; overflow-wrap: anywhere; }}
</style>
</head>
<body>
<h1>{title}</h1>
{body}
</body>
</html>
"""


def page(record, book=""):
    """The HTML of a settled record (`late.settle`). book: the address of the chapters, for links to what explains a mistake."""
    title = record["title"] or "This file could not be graded"
    body = [
        f"<p>{escape(record['learner'])} · {escape(record['file'])}</p>",
        f"<p><strong>{_total(record)}</strong></p>",
    ]
    body += [f"<p>{escape(note)}</p>" for note in record["notes"] if record["status"] != "not graded"]
    for question in record["questions"]:
        body += _question(question, book)
    if record["troubles"]:
        body += ["<h2>Cells that stopped with an error</h2>", "<ul>"]
        body += [f"<li><code>{escape(trouble['error'])}</code></li>" for trouble in record["troubles"]]
        body.append("</ul>")
    return PAGE.format(title=escape(title), body="\n".join(body))


def _total(record):
    if record["points"] is None:
        return "Not graded yet: the grader failed, not you."
    total = f"{record['points']} of {record['max']} points"
    if not record["late"]:
        return total
    days = "1 day" if record["late"] == 1 else f"{record['late']} days"
    return f"{total}; handed in late ({days} begun): {record['final']:g} points"


def _question(question, book):
    lines = [
        f"<h2>{escape(question['question'])}: {question['status']}, {question['points']} of {question['max']} points</h2>"
    ]
    if question["status"] == "wrong":
        shown = [part for part in question["parts"] if not part["hidden"]]
        hidden = [part for part in question["parts"] if part["hidden"]]
        if hidden:
            points, most = sum(part["points"] for part in hidden), sum(part["max"] for part in hidden)
            shown.append({"title": "inputs that are only used for grading", "points": points, "max": most})
        lines.append("<ul>")
        lines += [
            f"<li>{_mark(part)} {escape(part['title'])}: {part['points']} of {part['max']}</li>" for part in shown
        ]
        lines.append("</ul>")
    lines += [f"<p>{escape(question[text])}</p>" for text in ("sentence", "detail") if question[text]]
    if question["section"]:
        lines.append(f"<p>{_where(question['section'], book)}</p>")
    return lines


def _mark(part):
    return "✓" if part["points"] == part["max"] else "✗"


def _where(section, book):
    chapter, _, anchor = section.partition("#")
    part = ", “What goes wrong”" if anchor else ""
    if not book:
        return f"See chapter {escape(chapter)}{part}."
    link = escape(f"{book.rstrip('/')}/{chapter}.html{'#' * bool(anchor)}{anchor}")
    return f'See <a href="{link}">chapter {escape(chapter)}</a>{part}.'
