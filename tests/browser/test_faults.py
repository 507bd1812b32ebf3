"""The looks at the pages can fail: one fault of each kind, put into a page, is named."""

import looks
import pytest
from reading import visit

pytestmark = pytest.mark.browser

PAGE = "chapters/notation.html"
BEHIND = [
    ("asked https://elsewhere.invalid/a.png", '<img src="https://elsewhere.invalid/a.png" alt="a">'),
    ("404 /course/chapters/missing.png", '<img src="missing.png" alt="a">'),
    ("console a word", '<script>console.error("a word")</script>'),
    ("error a throw", '<script>setTimeout(() => { throw new Error("a throw"); })</script>'),
]
SEEN = [
    ("formula: Undefined control sequence", '<p><span class="math">\\(\\nosuchmacro\\)</span></p>'),
    ("formula not rendered", '<p><span class="math">no delimiters</span></p>'),
    ("scrolls sideways", '<div style="width: 3000px">wide</div>'),
    ("light: color-contrast", '<p style="color: #aaa; background: #fff">pale</p>'),
    ("dark: color-contrast", '<p style="color: #333; background: #222">dim</p>'),
    ("phone: image-alt", '<img src="../_static/favicon.svg">'),
]


def test_each_fault_is_named(chromium, server):
    def spoil(route):
        answer = route.fetch()
        faults = "\n".join(fault for _, fault in BEHIND + SEEN)
        route.fulfill(response=answer, body=answer.text().replace("</article>", faults + "</article>"))

    with pytest.raises(AssertionError) as behind, visit(chromium, server) as reader:
        reader.tab.route(f"**/{PAGE}", spoil)
        tab = reader.open(PAGE)
        seen = "\n".join(tab.evaluate(looks.FORMULAS) + looks.every_look(tab, "spoilt"))
    assert not [name for name, _ in SEEN if name not in seen], seen
    assert not [name for name, _ in BEHIND if name not in str(behind.value)]
