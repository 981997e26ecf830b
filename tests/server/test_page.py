"""The page in a real browser: the whole way, by keyboard; nothing is lost, nothing runs that came with a document."""

import json
import shutil
import time
from pathlib import Path

import pytest
from commands import invoke

from setscore import LabelSet, SetScoreClassifier

pytest.importorskip("selenium", reason="selenium is not installed")

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
AXE = Path(__file__).parents[2] / "node_modules" / "axe-core" / "axe.min.js"
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
)  # fmt: skip
LABELS = {"delivery": "a late or lost parcel", "billing": "a wrong charge or invoice", "praise": "the writer is happy"}
GOLD = [
    ("The parcel never came.", {"delivery"}),
    ("You charged me twice for one order.", {"billing"}),
    ("Thank you, the team was wonderful.", {"praise"}),
    ("My package is two weeks late and the invoice is wrong.", {"delivery", "billing"}),
    ("Great service, I am very happy with it.", {"praise"}),
    ("The courier lost my parcel.", {"delivery"}),
    ("The invoice shows a sum that I never agreed to.", {"billing"}),
    ("Fast delivery, thank you so much!", {"praise"}),
    ("Where is my order? It should have come on Monday.", {"delivery"}),
    ("Please refund the second charge on my card.", {"billing"}),
    ("What are your opening hours?", set()),
    ("The delivery was late again.", {"delivery"}),
]
HOSTILE = [
    "<script>window.harmed = true</script><img src=x onerror='window.harmed = true'> The parcel never came.",
    "Emoji 👩‍👩‍👧‍👦 🏳️‍🌈 and combining e\u0301. The invoice is wrong.",
    "هذا النص من اليمين إلى اليسار. الطرد لم يصل. " + "שלום עולם.",
    "word " * 200_000 + "the end",
]

pytestmark = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None, reason="no chromium and chromedriver: apt-get install chromium chromium-driver"
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    options = Options()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def page(browser, address):
    """The browser at the page, as on a new machine; in the end nothing has been complained about."""
    browser.get(f"{address}/health")
    browser.execute_script("localStorage.clear(); sessionStorage.clear()")
    browser.get_log("browser")
    look(browser)
    yield browser
    assert [entry for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")] == []


def look(browser, width=1280, height=900, scheme="light"):
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def until(browser, found, seconds=30):
    wait = WebDriverWait(browser, seconds, poll_frequency=0.05, ignored_exceptions=[StaleElementReferenceException])
    return wait.until(lambda _: found())


def all_of(browser, selector):
    return browser.find_elements(By.CSS_SELECTOR, selector)


def one(browser, selector):
    return until(browser, lambda: next(iter(all_of(browser, selector)), None))


def button(browser, text):
    return until(browser, lambda: next((b for b in all_of(browser, "button") if b.text.startswith(text)), None))


def visit(browser, address, view):
    browser.get("about:blank")
    browser.get(f"{address}/#{view}")


def applies(browser, label):
    """Whether the label is said to apply; None while the page still shows the labels of before."""
    return bars(browser).get(label, (None, None))[1]


def bars(browser):
    """Shares by label, once there are any."""

    def read():
        found = browser.execute_script(
            "return [...document.querySelectorAll('.bar')].map(b =>"
            " [b.dataset.label, parseInt(b.querySelector('.share').textContent), b.classList.contains('applies')])"
        )
        return {name: (share, applies) for name, share, applies in found}

    return until(browser, read)


def press_first_bar(browser):
    """In one step in the page: bars are drawn anew with every answer, so one that was found may be gone."""
    press = "const bar = document.querySelector('.bar'); bar?.click(); return bar !== null"
    until(browser, lambda: browser.execute_script(press))


def write(browser, element, text):
    """Sets a text as typing would; a megabyte of keys would take minutes."""
    browser.execute_script(
        "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input', {bubbles: true}))",
        element,
        text,
    )


def set_labels(browser, labels):
    """Leaves these labels in the editor of Try."""
    for cross in all_of(browser, "main .label-row button[aria-label^=Remove]"):
        cross.click()
    for name, description in labels.items():
        button(browser, "+ Add a label").click()
        row = all_of(browser, "main .label-row")[-1].find_elements(By.CSS_SELECTOR, "input")
        row[0].send_keys(name)
        row[1].send_keys(description)


def test_from_pasted_labels_to_a_classifier_that_the_command_line_uses(page, address, tmp_path):
    visit(page, address, "try")
    set_labels(page, LABELS)
    write(page, one(page, "textarea"), GOLD[1][0])
    until(page, lambda: bars(page).keys() == LABELS.keys() and bars(page)["billing"][1])
    button(page, "Label documents with these").click()
    one(page, "dialog label.field input").send_keys("The whole way")
    button(page, "Create").click()
    documents = tmp_path / "documents.csv"
    documents.write_text("text\n" + "\n".join(f'"{text}"' for text, _ in GOLD), encoding="utf-8")
    until(page, lambda: "No documents yet" in one(page, "main").text)
    one(page, "main input[type=file]").send_keys(str(documents))
    until(page, lambda: "0 of 12 done" in one(page, "main").text)

    label_by_keyboard(page, 6)
    page.refresh()  # in the middle
    until(page, lambda: "6 of 12 done" in one(page, "main").text)
    label_by_keyboard(page, 6)
    until(page, lambda: "All documents are done" in one(page, "main").text)

    visit(page, address, "learn")
    until(page, lambda: "It has learned from every answer" in one(page, "main").text or learn_now(page), 60)
    assert len(all_of(page, "svg.figure")) == 2
    assert [row.text for row in all_of(page, "tbody tr th")][:3] == list(LABELS)
    saved = downloaded(page, tmp_path, "Download classifier")
    compare(page, address, saved, tmp_path)


def learn_now(page):
    """Answers that came after the last lesson are learned by hand."""
    if "since it last learned" in one(page, "main").text:
        button(page, "Learn now").click()


def label_by_keyboard(page, count):
    """Makes each document's labels what GOLD says, with the keys that the page shows, and accepts."""
    gold = dict(GOLD)
    for _ in range(count):
        text = until(page, lambda: next((t.text for t in all_of(page, "main .text") if t.text in gold), None))
        for place, name in enumerate(LABELS, start=1):
            (choice,) = (c for c in all_of(page, ".choice") if c.get_attribute("data-label") == name)
            if (choice.get_attribute("aria-checked") == "true") != (name in gold[text]):
                page.switch_to.active_element.send_keys(str(place))
        page.switch_to.active_element.send_keys("a")
        until(page, lambda text=text: not [t for t in all_of(page, "main .text") if t.text == text])


def downloaded(page, folder, text):
    page.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder)})
    before = set(folder.iterdir())
    button(page, text).click()

    def finished():
        return next((f for f in set(folder.iterdir()) - before if f.suffix in (".zip", ".csv", ".jsonl")), None)

    return until(page, finished)


def compare(page, address, saved, folder):
    """What the command line says with the file is what the page proposes, and what Python says."""
    texts = folder / "new.txt"
    texts.write_text("\n".join(text for text, _ in GOLD), encoding="utf-8")
    code, out, _ = invoke("classify", "--file", texts, "--classifier", saved, "--format", "jsonl")
    assert code == 0
    rows = [json.loads(line) for line in out.splitlines()]
    project = page.execute_script("return localStorage.getItem('project')")
    fetch = "const [at, done] = arguments; fetch(at).then(r => r.json()).then(done)"
    model = SetScoreClassifier.load(saved)
    for place, (row, (text, _)) in enumerate(zip(rows, GOLD, strict=True)):
        shown = page.execute_async_script(fetch, f"{address}/projects/{project}/documents/{place}")
        assert shown["document"]["text"] == text
        assert shown["prediction"]["labels"] == row["labels"]
        shares = shown["prediction"]["probabilities"]
        assert {name: round(share, 6) for name, share in shares.items()} == row["probabilities"]
        assert shares == pytest.approx(dict(model.classify([text])[0].probabilities), abs=1e-12)


def test_undo_skip_filter_and_export(page, address, tmp_path):
    project(page, address, "Undo", ["The parcel never came.", "The invoice is wrong.", "Thank you!"])
    visit(page, address, "label")
    first = until(page, lambda: next((t.text for t in all_of(page, "main .text") if t.text), None))
    page.switch_to.active_element.send_keys("a")
    until(page, lambda: "1 of 3 done" in one(page, "main").text)
    page.switch_to.active_element.send_keys("u")
    until(page, lambda: "0 of 3 done" in one(page, "main").text and one(page, "main .text").text == first)
    page.switch_to.active_element.send_keys("s")
    until(page, lambda: "1 skipped" in one(page, "main").text)
    Select(one(page, "main select")).select_by_visible_text("Likely billing")
    until(page, lambda: one(page, "main .text").text != first)
    page.execute_script("document.activeElement.blur()")
    page.switch_to.active_element.send_keys("a")
    until(page, lambda: "1 of 3 done" in one(page, "main").text)
    exported = downloaded(page, tmp_path, "Export JSONL")
    assert len(until(page, lambda: exported.read_text(encoding="utf-8")).splitlines()) == 1


def project(page, address, name, texts):
    """A project made through the page's own routes, chosen."""
    make = """const [name, labels, texts, done] = arguments;
    const json = {'content-type': 'application/json'};
    const body = JSON.stringify({name, labels});
    fetch('/projects', {method: 'POST', headers: json, body}).then(r => r.json()).then(p =>
      fetch(`/projects/${p.id}/documents?format=jsonl`, {method: 'POST', headers: {'content-type': 'text/plain'},
        body: texts.map(t => JSON.stringify({text: t})).join('\\n')}).then(() => {
          localStorage.setItem('project', p.id); done(p.id); }))"""
    page.get(f"{address}/health")
    page.set_script_timeout(60)
    return page.execute_async_script(make, name, LABELS, texts)


@pytest.mark.parametrize("text", HOSTILE, ids=["script", "emoji", "right to left", "a megabyte"])
def test_documents_show_as_text(page, address, text):
    visit(page, address, "try")
    set_labels(page, LABELS)
    bars(page)
    write(page, one(page, "textarea"), text)
    time.sleep(0.3)
    until(page, lambda: len(bars(page)) == 3)
    press_first_bar(page)
    shown = "const e = document.querySelector('[aria-labelledby=evidence-title] .text'); return e && e.textContent"
    until(page, lambda: (page.execute_script(shown) or "").startswith(text.strip()[:1000]))
    identifier = project(page, address, "Hostile", [text])
    visit(page, address, "label")
    until(
        page,
        lambda: text.startswith(page.execute_script("return document.querySelector('main .text')?.textContent ?? '?'")),
    )
    assert page.execute_script("return window.harmed") is None
    assert not all_of(page, "main .text *")
    assert page.execute_async_script(
        "fetch(`/projects/${arguments[0]}`, {method: 'DELETE'}).then(r => arguments[1](r.status))", identifier
    ) == 204  # fmt: skip


def test_the_threshold_moves_and_wordings_stand_side_by_side(page, address):
    visit(page, address, "try")
    set_labels(page, LABELS)
    write(page, one(page, "textarea"), GOLD[1][0])
    until(page, lambda: applies(page, "billing"))
    slider = one(page, "input[type=range]")
    slider.send_keys(Keys.END)
    until(page, lambda: applies(page, "praise") is False)
    slider.send_keys(Keys.HOME)
    until(page, lambda: all(applies for _, applies in bars(page).values()))
    all_of(page, "button[aria-label='Compare wordings']")[1].click()
    write(page, one(page, "dialog textarea"), "a wrong charge\nthe weather in spring")
    until(page, lambda: [row[0] for row in wordings(page)][1:] == ["a wrong charge", "the weather in spring"])
    # Each as Python asks a label of that name with that description: "billing (a wrong charge)".
    asked = [{"billing": None}, {"billing": "a wrong charge"}, {"billing": "the weather in spring"}]
    python = [
        SetScoreClassifier(one, competition=0).classify([GOLD[1][0]])[0].probabilities["billing"] for one in asked
    ]
    assert [share for _, share in wordings(page)] == [f"{100 * share:.0f}%" for share in python]
    assert python[1] > python[2]
    all_of(page, "dialog .bar")[1].click()
    values = [field.get_attribute("value") for field in all_of(page, "main .label-row input")]
    assert values[3] == "a wrong charge"


def wordings(page):
    """What stands in the dialog: each wording, and its share."""
    return page.execute_script(
        "return [...document.querySelectorAll('dialog .bar')].map(b =>"
        " [b.querySelector('.name').textContent, b.querySelector('.share').textContent])"
    )


def test_descriptions_are_asked_as_in_python(page, address):
    """By name and description, on Try and in a project."""
    visit(page, address, "try")
    set_labels(page, LABELS)
    write(page, one(page, "textarea"), GOLD[3][0])
    model = SetScoreClassifier(LABELS)
    assert LabelSet.of(LABELS).texts[0] == "delivery (a late or lost parcel)"
    found = model.classify([GOLD[3][0]])[0].probabilities
    wanted = {name: round(100 * share) for name, share in found.items()}
    until(page, lambda: {name: share for name, (share, _) in bars(page).items()} == wanted)
    project(page, address, "Descriptions", [GOLD[3][0]])
    visit(page, address, "label")
    shares = "return Object.fromEntries([...document.querySelectorAll('.choice')].map(c => [c.dataset.label,"
    shares += " parseInt(c.querySelector('.share').lastChild.textContent)]))"
    until(page, lambda: page.execute_script(shares) == wanted)
    meanings = [element.text for element in all_of(page, ".choice .meaning")]
    assert sorted(meanings) == sorted(LABELS.values())


@pytest.fixture(scope="module")
def learned(browser, address):
    """A project that has been learned from."""
    identifier = project(browser, address, "Learned", ["What are your opening hours?", "The parcel came today."])
    rows = [json.dumps({"text": text, "labels": sorted(gold)}) for text, gold in GOLD]
    browser.execute_async_script(
        "fetch(`/projects/${arguments[0]}/documents?format=jsonl`, {method: 'POST', body: arguments[1],"
        " headers: {'content-type': 'text/plain'}}).then(() => arguments[2]())",
        identifier,
        "\n".join(rows),
    )
    state = "fetch(`/projects/${arguments[0]}`).then(r => r.json()).then(p => arguments[1](!p.state.working))"
    until(browser, lambda: browser.execute_async_script(state, identifier), 60)
    return identifier


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", ["try", "label", "learn"])
def test_axe_finds_nothing_serious(learned, page, address, view, scheme):
    if not AXE.exists():
        pytest.skip("axe-core is not there: npm install --no-save axe-core")
    page.execute_script("localStorage.setItem('project', arguments[0])", learned)
    look(page, scheme=scheme)
    visit(page, address, view)
    settled = {"try": ".bar", "label": ".choice", "learn": "svg.figure"}[view]
    one(page, settled)
    if view == "try":
        press_first_bar(page)
        one(page, "mark")
    page.execute_cdp_cmd("Page.setBypassCSP", {"enabled": True})
    found = page.execute_async_script(
        AXE.read_text(encoding="utf-8") + "; const done = arguments[0]; axe.run().then(r => done(r.violations.map(v =>"
        " [v.id, v.impact, v.nodes.slice(0, 3).map(n => n.html + ' ' + n.failureSummary)])))"
    )
    page.execute_cdp_cmd("Page.setBypassCSP", {"enabled": False})
    assert [entry for entry in found if entry[1] in ("serious", "critical")] == []


@pytest.mark.parametrize("view", ["try", "label", "learn"])
def test_at_phone_width_nothing_is_wider_than_the_screen(learned, page, address, view):
    page.execute_script("localStorage.setItem('project', arguments[0])", learned)
    look(page, width=360, height=780)
    visit(page, address, view)
    one(page, {"try": ".bar", "label": ".choice", "learn": "svg.figure"}[view])
    assert (
        page.execute_script("return document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    )


def test_everything_comes_from_this_server(page, address):
    visit(page, address, "try")
    bars(page)
    names = page.execute_script("return performance.getEntriesByType('resource').map(entry => entry.name)")
    assert len(names) > 6
    assert [name for name in names if not name.startswith(address)] == []
