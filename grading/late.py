"""What being late costs: a number of percent for each day begun after the due time."""

import csv
import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

DAY = timedelta(days=1)


def moment(text):
    """A time such as 2027-01-31T23:59 or 2027-01-31T23:59+01:00; without a zone it is this machine's. ValueError otherwise."""
    return datetime.fromisoformat(text.strip()).astimezone()


@dataclass(frozen=True)
class Policy:
    """due: None means that nothing is late. percent: of the points reached, for each day begun."""

    due: datetime | None = None
    percent: float = 0.0

    def days(self, submitted):
        """Days begun after the due time, 0 in time."""
        return max(0, math.ceil((submitted - self.due) / DAY)) if self.due else 0

    def final(self, points, days):
        """The points after the deduction, never below 0."""
        return round(max(0.0, points * (1 - self.percent * days / 100)), 2)


def read_table(path):
    """(header, rows as dicts) of a CSV whose cells are parted by commas, semicolons (as spreadsheets write them in half of Europe) or tabs."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f'{path} is not UTF-8: save it as "CSV UTF-8"') from None
    head = text.partition("\n")[0]
    reader = csv.DictReader(text.splitlines(keepends=True), delimiter=max(",;\t", key=head.count))
    return reader.fieldnames or [], list(reader)


def times(path):
    """Hand-in times from a CSV with the columns `file` (or `learner`) and `time`: {file or learner: time}."""
    _, rows = read_table(path)
    if rows and ("time" not in rows[0] or not {"file", "learner"} & set(rows[0])):
        raise ValueError(f"{path} needs the columns time and file (or learner), has {', '.join(map(str, rows[0]))}")
    return {(row.get("file") or row.get("learner") or "").strip(): moment(row["time"]) for row in rows if row["time"]}


def settle(records, policy, known):
    """Add to each record its days late, its final points, and whether it counts: a learner's latest graded one does."""
    best, rows = {}, []
    for record in records:
        submitted = known.get(record["file"]) or known.get(record["learner"]) or moment(record["submitted"])
        days = policy.days(submitted)
        final = None if record["points"] is None else policy.final(record["points"], days)
        rows.append(record | {"submitted": submitted.isoformat(timespec="seconds"), "late": days, "final": final})
        who = (record["canvas"] or record["learner"], record["exercise"])
        rank = (record["status"] == "graded", submitted, record["file"])
        best[who] = max(best.get(who, (rank, len(rows) - 1)), (rank, len(rows) - 1))
    counting = {index for _, index in best.values()}
    return [row | {"counts": index in counting} for index, row in enumerate(rows)]
