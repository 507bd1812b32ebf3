"""The stored outputs of a notebook, and those of a run, in one form that can be compared."""

import nbformat


def code_cells(path):
    """The code cells of a notebook, in order."""
    return [cell for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]


def runs_in_browser(cell):
    return "native-only" not in cell.metadata.get("tags", [])


def plain(outputs):
    """What a reader sees of outputs: streams joined, data by media type, errors by name and text."""
    seen = []
    for output in outputs:
        kind = output["output_type"]
        if kind == "stream" and seen and seen[-1][:2] == ["stream", output["name"]]:
            seen[-1][2] += joined(output["text"])
        elif kind == "stream":
            seen.append(["stream", output["name"], joined(output["text"])])
        elif kind == "error":
            seen.append(["error", output["ename"], output["evalue"]])
        else:
            seen.append([kind, {media: joined(data) for media, data in output["data"].items()}])
    return seen


def joined(text):
    return text if isinstance(text, str) else "".join(text)
