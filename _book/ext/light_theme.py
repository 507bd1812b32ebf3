"""Give readers the theme's icons as a few glyphs, not as its script of 1.5 MB with every icon there is.

The theme's stylesheet can already draw icons from a font; the script only does the same once more, as SVG. So the script goes, the font keeps
the glyphs that the theme's own templates and scripts and this book name (it is then small enough to stand in the stylesheet), and the rules of
all other icons go too. tests/test_pages.py finds an icon on a page that the stylesheet does not know.
"""

import base64
import hashlib
import re
import shutil
from functools import partial
from io import BytesIO
from pathlib import Path

import pydata_sphinx_theme
import sphinx_book_theme
from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont
from sphinx.errors import ExtensionError

STYLESHEET = "styles/pydata-sphinx-theme.css"
ICON_SCRIPT = re.compile(r"<script[^>]*scripts/fontawesome\.js[^>]*></script>")
ICON_RULE = re.compile(r'((?:\.fa-[a-z0-9-]+:before,?)+)\{content:"\\([0-9a-f]+)"\}')
CODE = re.compile(r'(?<=content:"\\)[0-9a-f]{4}(?=")|[\ue000-\uf8ff]')  # escaped in rules, bare in variables
FONT_FILES = re.compile(r'src:url\(\.\./(vendor/fontawesome/webfonts/[a-z0-9-]+)\.woff2\) format\("woff2"\),url\([^)]*\.ttf\) format\("truetype"\)')  # fmt: skip
SOURCE_MAP = re.compile(r"/\*# sourceMappingURL=.*?\*/")

BOOK = Path(__file__).parents[1]
PYDATA = Path(pydata_sphinx_theme.__file__).parent / "theme" / "pydata_sphinx_theme"
STATIC = PYDATA / "static"
NAMING = [PYDATA, Path(sphinx_book_theme.__file__).parent, BOOK / "templates", BOOK / "static", BOOK / "ext"]


def named_icons():
    """Every name like fa-xmark in the theme's and the book's templates, scripts and extensions."""
    files = [f for folder in NAMING for kind in ("html", "py", "js") for f in folder.rglob(f"*.{kind}")]
    texts = (f.read_text(encoding="utf-8") for f in files if f.name != "fontawesome.js")
    return {name for text in texts for name in re.findall(r"\bfa-[a-z0-9-]+", text)}


def font_url(path, codes):
    """The font with these glyphs only, as a URL that holds it."""
    options = Options(desubroutinize=True, hinting=False, layout_features=[], name_IDs=[], notdef_outline=True)
    font = TTFont(path, recalcTimestamp=False)
    subsetter = Subsetter(options)
    subsetter.populate(unicodes=codes)
    subsetter.subset(font)
    font.flavor = "woff"  # woff2 would want one more package for a few hundred bytes
    out = BytesIO()
    font.save(out)
    return "data:font/woff;base64," + base64.b64encode(out.getvalue()).decode()


def light_stylesheet():
    """The theme's stylesheet with the icons that are named, and their glyphs in it."""
    text, names = (STATIC / STYLESHEET).read_text(encoding="utf-8"), named_icons()

    def keep(rule):
        return rule[0] if names & set(re.findall(r"fa-[a-z0-9-]+", rule[1])) else ""

    text = SOURCE_MAP.sub("", ICON_RULE.sub(keep, text))
    codes = {ord(code) if len(code) == 1 else int(code, 16) for code in CODE.findall(text)}
    text, fonts = FONT_FILES.subn(
        lambda m: f'src:url({font_url(STATIC / (m[1] + ".ttf"), codes)}) format("woff")', text
    )
    if fonts != 3:
        raise ExtensionError(
            f"{STYLESHEET} of the theme has {fonts} icon fonts, expected 3: look at _book/ext/light_theme.py"
        )
    return text


def digest(contents):
    """A short name for some files' contents."""
    return hashlib.sha256(b"\0".join(contents)).hexdigest()[:16]


def replace_stylesheet(app, config):
    """Put the stylesheet where it takes the place of the theme's."""
    text = light_stylesheet()
    file = Path(app.doctreedir).parent / "light_theme" / STYLESHEET
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    config.html_static_path.append(str(file.parents[1]))
    config.html_context["stylesheet_digest"] = digest([text.encode()])
    # Sphinx leaves pages and static files as they are when no text has changed; a change of these shows at once
    config.html_context["book_digest"] = digest(
        f.read_bytes()
        for part in ("static", "templates", "ext")
        for f in sorted((BOOK / part).rglob("*.*"))
        if f.is_file() and f.suffix != ".pyc"
    )


def lighten(name, markup):
    """The theme's markup without its icon script; its stylesheet has an address of its own, so that no old copy is shown."""
    return re.sub(rf"({re.escape(STYLESHEET)}\?digest=)\w+", rf"\g<1>{name}", ICON_SCRIPT.sub("", str(markup)))


def offer_lighten(app, pagename, templatename, context, doctree):
    """Hand `lighten` to _book/templates/static/webpack-macros.html."""
    context["lighten"] = partial(lighten, context["stylesheet_digest"])


def remove_unused(app, error):
    """Take what no page asks for any more out of the built book."""
    static = Path(app.outdir) / "_static"
    for file in (*static.glob("scripts/fontawesome.js*"), static / f"{STYLESHEET}.map"):
        file.unlink(missing_ok=True)
    shutil.rmtree(static / "vendor" / "fontawesome", ignore_errors=True)


def setup(app):
    app.connect("config-inited", replace_stylesheet)
    app.connect("html-page-context", offer_lighten)
    app.connect("build-finished", remove_unused)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
