"""The report of two runs: what it says, and what a browser makes of it."""

import csv
import io
import re
import shutil

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

from commands import invoke

from setscore.experiments.reporting.content import sections
from setscore.experiments.runs.folder import read_run

HOSTILE = "</script><script>document.title='broken'</script> & <b>bold</b>"
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--window-size=1100,1400"),
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two runs on a small file, one of which has a document that would break a careless page."""
    folder = tmp_path_factory.mktemp("runs")
    words = {"oil": "crude fell", "sport": "the match ended", "music": "a song was played"}
    rows = ["id,text,labels"]
    for number in range(24):
        first, second = list(words)[number % 3], list(words)[(number // 3) % 3]
        text = f"{words[first]} and {words[second]} on day {number}"
        rows.append(f'{number},"{text if number else HOSTILE}",{first}|{second}')
    (folder / "news.csv").write_text("\n".join(rows) + "\n")
    config = 'title = "{}"\nseeds = [13]\n[dataset]\nfile = "news.csv"\nlabels = "oil, sport, music"\n[method]\n{}\n'
    (folder / "plain.toml").write_text(config.format("plain <i>", 'decided = "zero-shot"'))
    (folder / "fitted.toml").write_text(config.format("fitted", 'template = ["express", "article-about"]'))
    code, _, told = invoke("run", folder / "plain.toml", folder / "fitted.toml", "--out", folder / "runs")
    assert code == 0, told
    return folder / "runs"


@pytest.fixture(scope="module")
def page(runs):
    out = runs.parent / "report.html"
    code, _, told = invoke("report", runs, "--out", out, "--title", "Two runs & more")
    assert code == 0, told
    return out


def test_the_page_needs_nothing_else_and_no_text_becomes_markup(page):
    text = page.read_text()
    assert "Two runs &amp; more" in text
    assert "plain &lt;i&gt;" in text
    assert "<b>bold</b>" not in text
    assert text.count("<script") == 2
    assert not re.search(r"""(src|href)=["'](?!data:|#)""", text)
    assert text.count("<svg") == 1 + 2 * 3  # accuracy against time; bars, reliability and thresholds of each run


def test_tables_say_what_the_runs_say(page, runs):
    fitted = read_run(runs / "fitted")
    (row,) = [
        row for row in csv.DictReader(io.StringIO(page.with_suffix(".csv").read_text())) if row["run"] == "fitted"
    ]
    assert float(row["micro_f1"]) == pytest.approx(fitted.spread().mean["micro_f1"])
    shown = f"{100 * fitted.spread().mean['micro_f1']:.1f}"
    assert f"| {shown} |" in page.with_suffix(".md").read_text()
    assert rf"& {shown} &" in page.with_suffix(".tex").read_text()
    assert "plain <i>" in page.with_suffix(".tex").read_text()
    assert (row["protocol"], row["label_text"], row["regime"]) == ("setscore", "both", fitted.first.regime)


def test_mistakes_are_those_of_the_decisions(runs):
    found = {one.name: one for one in sections([runs])}
    one = found["fitted"]
    first = one.run.first
    wrong = (first.decisions != first.test.gold).any(axis=1)
    assert len(one.mistakes) == wrong.sum()
    for mistake in one.mistakes:
        row = first.test.ids.index(mistake["id"])
        named = {name: place for place, name in enumerate(first.test.labels)}
        assert all(first.test.gold[row, named[name]] for name in mistake["missed"] + mistake["right"])
        assert all(first.decisions[row, named[name]] for name in mistake["wrong"] + mistake["right"])


def test_mistakes_of_the_command_are_named(tmp_path):
    code, _, told = invoke("report", tmp_path)
    assert (code, "holds no finished run" in told) == (2, True)
    code, _, told = invoke("report", tmp_path, "--tables", "word")
    assert (code, told.splitlines()[0]) == (2, "error: unknown format 'word'. Known: csv, latex, markdown.")


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """Chromium without a screen."""
    selenium = pytest.importorskip("selenium.webdriver")
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("no chromium and chromedriver here; Debian has them in chromium and chromium-driver")
    from selenium.webdriver.chrome.service import Service

    options = selenium.ChromeOptions()
    options.binary_location = program
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    made = selenium.Chrome(options=options, service=Service(driver))
    yield made
    made.quit()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_browser_sorts_filters_and_shows_pictures_without_an_error(browser, page, scheme, tmp_path):
    features = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", features)
    browser.get(page.as_uri())
    assert browser.title == "Two runs & more"
    first_column = "return [...document.querySelectorAll('#runs tbody tr')].map(row => row.cells[0].textContent)"
    names = browser.execute_script(first_column)
    heads = browser.find_elements("css selector", "#runs th button")
    micro = next(head for head in heads if head.text.startswith("micro"))
    micro.click()
    values = "return [...document.querySelectorAll('#runs tbody tr')].map(r => Number(r.cells[{}].dataset.value))"
    place = [head.text for head in heads].index(micro.text)
    falling = browser.execute_script(values.format(place))
    assert falling == sorted(falling, reverse=True)
    micro.click()
    assert browser.execute_script(values.format(place)) == sorted(falling)
    heads[0].click()
    assert browser.execute_script(first_column) == sorted(names, key=str.lower)
    sizes = "return [...document.querySelectorAll('figure svg')].map(s => s.getBoundingClientRect().width)"
    assert len(widths := browser.execute_script(sizes)) == 7
    assert min(widths) > 100
    shown = "return document.querySelectorAll('section:last-of-type .mistake').length"
    before = browser.execute_script(shown)
    browser.execute_script(
        "const s = document.querySelector('section:last-of-type .by-kind'); s.value = 'wrong';"
        "s.dispatchEvent(new Event('change'))"
    )
    assert browser.execute_script(shown) <= before
    paper = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert paper == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 24, 29)"}[scheme]
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
    assert browser.save_screenshot(str(tmp_path / f"{scheme}.png"))
