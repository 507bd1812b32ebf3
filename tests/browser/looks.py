"""What must hold of the look of any page, in any state: each function gives a list of what is wrong."""

from common import missing

FORMULAS = """() => {
    const all = [...document.querySelectorAll("span.math, div.math")];
    const say = (e, what) => `${what}: ${e.textContent.trim().slice(0, 60)}`;
    return [
        ...all.filter((e) => !e.querySelector("mjx-container")).map((e) => say(e, "formula not rendered")),
        ...all.filter((e) => e.querySelector("mjx-container") && !e.querySelector("mjx-assistive-mml math")).map((e) => say(e, "formula not read aloud")),
        ...[...document.querySelectorAll("[data-mjx-error], mjx-merror")].map((e) => `formula: ${e.dataset.mjxError ?? e.textContent}`),
    ];
}"""

SIDEWAYS = """() => {
    const { scrollWidth, clientWidth } = document.documentElement;
    if (scrollWidth <= clientWidth) return [];
    const wide = [...document.querySelectorAll("main *")].filter((e) => e.getBoundingClientRect().right > clientWidth + 1);
    return [`scrolls sideways: ${scrollWidth} in ${clientWidth} pixels, as ${wide.slice(0, 3).map((e) => e.tagName + "." + e.className).join(", ")}`];
}"""

OPEN_FOLDS = """() => {
    document.querySelectorAll("details:not([open])").forEach((e) => (e.open = true));
    return new Promise((done) => setTimeout(done, 60));
}"""

WIDE, PHONE = {"width": 1100, "height": 900}, {"width": 390, "height": 844}
# axe takes its time for every node, and thousands are alike. Words of code are looked at once for the whole book, one of each colour
# (test_code_can_be_read); of the formulas, each of which FORMULAS has seen, one stays; the cells of a drawn map have neither text nor
# name; outputs that a run has replaced are not seen.
THIN = """() => {
    document.querySelectorAll(".cell_input pre").forEach((e) => (e.textContent = e.textContent));
    [...document.querySelectorAll("mjx-container")].slice(1).forEach((e) => e.remove());
    document.querySelectorAll("figure svg rect").forEach((e) => e.remove());
    document.querySelectorAll(".cell_output[hidden]").forEach((e) => e.remove());
}"""
# For colours axe looks at every word, twenty times as long as at all else. Of a drawing it cannot tell them, and formulas have that of
# their text. Blocks of text alike in tags, classes, colours and all that they stand in look alike: the first two of each kind stay.
ALIKE = """() => {
    document.querySelectorAll("mjx-container, figure svg *").forEach((e) => e.remove());
    const kind = (e) => [e.tagName, e.className, e.getAttribute("style"), e.matches("tr:nth-child(even)")].join();
    const around = (e) => (e === document.body ? "" : around(e.parentElement) + ">" + kind(e));
    const look = (e) => [kind(e), ...["color", "backgroundColor", "opacity", "font"].map((name) => getComputedStyle(e)[name])].join();
    const count = {};
    const visit = (e) => {
        if (![...e.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim())) return [...e.children].forEach(visit);
        const block = around(e) + [...new Set([e, ...e.querySelectorAll("*")].map(look))].sort().join("|");
        count[block] = (count[block] ?? 0) + 1;
        if (count[block] > 2) e.textContent = "";
    };
    visit(document.body);
}"""
# Of axe's rules these are asked in light and in dark, all others wide and on a phone.
COLOURS = ["color-contrast", "link-in-text-block"]


def axe(tab, when, only=(), but=(), context=None):
    """What axe-core finds, with all rules, only these, or all but these."""
    try:
        from axe_playwright_python.sync_playwright import Axe
    except ImportError:
        missing("axe-playwright-python")
    # without preload: axe resolves what stylesheets import against the wrong folder
    options = {"preload": False, "resultTypes": ["violations"], "rules": {rule: {"enabled": False} for rule in but}}
    if only:
        options = {**options, "runOnly": {"type": "rule", "values": list(only)}}
    found = Axe().run(tab, context=context, options=options).response["violations"]
    return [f"axe {when}: {v['id']}: {n['target']} {n['html'][:150]}" for v in found for n in v["nodes"]]


def colours(tab, scheme):
    """Light or dark, as the reader's system asks."""
    tab.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    tab.wait_for_function("theme => document.documentElement.dataset.theme === theme", arg=scheme)


def every_look(tab, state, coloured=None):
    """Wide and on a phone, in light and in dark, in one tab; what the page holds is less afterwards.

    Where a selector `coloured` is given, colours are looked at in that part alone: the frame is the same on every page.
    """
    tab.set_viewport_size(PHONE)
    wrong = tab.evaluate(SIDEWAYS)
    tab.evaluate(THIN)
    wrong += axe(tab, f"{state}, phone", but=COLOURS)
    tab.set_viewport_size(WIDE)
    wrong += tab.evaluate(SIDEWAYS) + axe(tab, f"{state}, wide", but=COLOURS)
    tab.evaluate(ALIKE)
    wrong += axe(tab, f"{state}, light", only=COLOURS, context=coloured)
    colours(tab, "dark")
    return wrong + axe(tab, f"{state}, dark", only=COLOURS, context=coloured)


def use_everything(tab):
    """Bring each kind of figure and question of the page into a state of its own."""
    for figure in tab.locator("figure.mha-attention:visible").all():
        figure.locator(".mha-explore").focus()
        tab.keyboard.press("ArrowDown")
        if figure.locator("input[type=range]").count():
            figure.locator("input[type=range]").press("ArrowRight")
    for figure in tab.locator("figure.mha-heads:visible").all():
        figure.locator("select").select_option("1")
    for name in ("product", "flow"):
        for figure in tab.locator(f"figure.mha-{name}:visible").all():
            figure.get_by_role("button", name="step").click()
    for box in tab.locator("fieldset.predict").all():
        for radio in box.locator("li").first.locator("input").all():
            radio.check()
        box.get_by_role("button").click()
