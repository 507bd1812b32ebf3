"""What every picture is in the end: HTML, perhaps one SVG, and a short text for terminals."""

from pathlib import Path

from .draw import esc

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 1rem auto; padding: 0 1rem }}
</style>
</head>
<body>
{html}
</body>
</html>
"""


class Figure:
    """A picture that shows itself in a notebook.

    `html` is the whole figure, `svg` its drawing (None for tables), `text` what a terminal prints.

    >>> from mha_lib.viz import attention_map
    >>> figure = attention_map([[1.0, 0.0], [0.25, 0.75]], ["a", "cat"])
    >>> figure.html.startswith('<figure class="mha-fig mha-attention"')
    True
    """

    def __init__(self, html, text, svg=None, title=""):
        self.html, self.text, self.svg, self.title = html, text, svg, title

    def _repr_html_(self):
        return self.html

    def __repr__(self):
        return self.text

    def save(self, path):
        """Write the picture as a page (.html) or as a drawing (.svg) that stands alone; return the path.

        ValueError: another ending, or .svg for a table, which has no drawing.

        >>> import tempfile
        >>> from mha_lib.viz import bars
        >>> bars([1, 2], ["a", "b"]).save(tempfile.mkdtemp() + "/bars.svg").name
        'bars.svg'
        """
        path = Path(path)
        if path.suffix == ".html":
            content = PAGE.format(title=esc(self.title or "Figure"), html=self.html)
        elif path.suffix == ".svg" and self.svg is None:
            raise ValueError(f"path must end in .html, since this figure is an HTML table, got {str(path)!r}")
        elif path.suffix == ".svg":  # alone, it has no page to inherit from: dark on white
            alone = 'style="color:#222832;background:#fff;font-family:system-ui,sans-serif;'
            content = self.svg.replace('style="', alone, 1) + "\n"
        else:
            raise ValueError(f"path must end in .html or .svg, got {str(path)!r}")
        path.write_text(content, encoding="utf-8", newline="\n")
        return path
