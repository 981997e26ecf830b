"""Every benchmark runs on a toy size, as a file and as a module, and prints or writes what its pages promise."""

import json
import re
import runpy
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from made_up import write_goemotions
from typer.testing import CliRunner

from setscore.backbones.specs import FAMILY_SPECS, SPECS
from setscore.cli import app
from setscore.encoders import EMBEDDED, ENCODER, load_encoder
from setscore.encoders.embedded import sentence_encoder
from setscore.experiments import paper

torch = pytest.importorskip("torch")
ROOT = Path(__file__).parents[1]
BENCHMARKS = ROOT / "benchmarks"
RUN = sorted(path for path in BENCHMARKS.glob("*/*.py") if "def main(" in path.read_text(encoding="utf-8"))
DATASET = "goemotions"
WAYS = ("naive", "exact", "shared")


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Tiny matrices are not worth a second thread, and other tests run beside these; some of them want no encoder."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
    load_encoder.cache_clear()


def tables(page):
    """Each table as a list of rows, the header first, without the rule below it."""
    found = []
    for part in page.split("\n\n"):
        lines = [line for line in part.strip().splitlines() if line.startswith("|")]
        if len(lines) > 2 and set(lines[1]) <= set("|-:"):
            found.append([[cell.strip() for cell in line.strip("|").split("|")] for line in lines[:1] + lines[2:]])
    return found


# How they are run


def test_all_rooms_have_something_to_run():
    assert Counter(path.parent.name for path in RUN) == {"pages": 5, "speed": 5, "studies": 9}


IMPORT_ALL = """
import importlib, sys
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except Exception as error:
        print(f"{name}: {error!r}")
"""


def test_every_module_can_be_imported_from_the_repository():
    """In a process of its own: here other folders are on the path, and modules that tests have imported are there."""
    modules = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in sorted(BENCHMARKS.rglob("*.py"))]
    modules = [name.removesuffix(".__init__") for name in modules]
    assert {"benchmarks", "benchmarks.saved", "benchmarks.pages.scorer_shards"} <= set(modules)
    done = subprocess.run([sys.executable, "-c", IMPORT_ALL, *modules], capture_output=True, text=True, cwd=ROOT)
    assert (done.stdout, done.returncode) == ("", 0), done.stderr


@pytest.mark.parametrize("how", ["file", "module"])
@pytest.mark.parametrize("path", RUN, ids=lambda path: path.stem)
def test_help_is_the_docstring_whether_run_as_a_file_or_as_a_module(path, how, monkeypatch, capsys):
    usage = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("    python ")]
    assert usage
    assert all(line.split()[1] == path.relative_to(ROOT).as_posix() for line in usage)
    for name in [name for name in sys.modules if name.partition(".")[0] == "benchmarks"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "argv", [path.name, "--help"])
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    elsewhere = [folder for folder in sys.path if Path(folder).resolve() != ROOT]
    monkeypatch.setattr(sys, "path", elsewhere if how == "file" else [str(ROOT), *elsewhere])
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    run, place = (runpy.run_path, str(path)) if how == "file" else (runpy.run_module, module)
    with pytest.raises(SystemExit) as ended:
        run(place, run_name="__main__")
    assert ended.value.code == 0
    assert usage[0].rstrip("\\ ") in capsys.readouterr().out


def test_as_a_module_in_a_process_of_its_own():
    """As a file, `cpu` runs itself to measure memory."""
    command = [sys.executable, "-m", "benchmarks.studies.tuning", "--documents", "20", "--labels", "2", "--rounds", "1"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("20 documents, 2 labels\n")


def test_commands_in_pages_name_benchmarks_that_are_there():
    pages = [ROOT / "README.md", ROOT / "Makefile", *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/**/*.py")]
    pages += [*ROOT.glob("src/**/*.py"), *ROOT.glob("src/**/*.md"), *ROOT.glob("recipes/**/*.md")]
    named = [
        (page.name, name)
        for page in pages
        for name in re.findall(r"benchmarks/[\w/]+\.py", page.read_text(encoding="utf-8"))
    ]
    assert len({name for _, name in named}) >= len(RUN)
    assert [(page, name) for page, name in named if not (ROOT / name).exists()] == []


# Speed


def test_the_cpu_benchmark_has_a_row_for_every_contestant(capsys, tmp_path):
    from benchmarks.speed import cpu

    cpu.main(["--smoke", "--json", str(tmp_path / "n.json")])
    rates, single = tables(capsys.readouterr().out)
    numbers = json.loads((tmp_path / "n.json").read_text())
    assert rates[0][:5] == ["labels", "tokens", "shared", "exact", "pipeline"]
    assert [row[:2] for row in rates[1:]] == [["2", "8"]]
    (cell,) = numbers["rates"]
    assert cell["ratio"] == pytest.approx(cell["shared"] / cell["pipeline"])
    assert [row[0] for row in single[1:]] == list(cpu.CONTESTANTS)
    assert numbers["single"]["shared"]["peak_bytes"] > 10_000_000


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    """The GPU benchmark whole, on tiny shapes on the CPU: the page and its numbers."""
    from benchmarks.speed import gpu

    folder = tmp_path_factory.mktemp("gpu")
    gpu.main(["--smoke", "--json", str(folder / "n.json"), "--out", str(folder / "gpu.md")])
    return (folder / "gpu.md").read_text(), json.loads((folder / "n.json").read_text())


def test_the_page_is_written_whole(smoke):
    page, _ = smoke
    assert page.startswith(
        "# Speed on a GPU\n\nThe whole page was written by"
        " `python benchmarks/speed/gpu.py --smoke --out docs/results/gpu.md`:"
    )
    assert "/tmp" not in page
    assert page.endswith(".\n")
    assert "\nCPU, torch " in page
    assert [line for line in page.splitlines() if line.startswith("## ")] == [
        "## Right before fast", "## Three ways", "## Documents of mixed lengths", "## fp8", "## What it says"
    ]  # fmt: skip
    assert max(map(len, page.split("## What it says")[0].splitlines())) <= 250  # nothing ran together


def test_every_shape_is_in_one_table_in_all_three_ways(smoke):
    page, numbers = smoke
    (ways,) = [table for table in tables(page) if "times naive" in table[0]]
    assert ways[0][-4:] == ["goal", "memory GB", "over weights GB", "goal"]
    shapes = ("LLaDA-8B", "Dream-7B", "LLaDA2-mini")
    cells = [[shape, cell, way] for shape in shapes for cell in ("12, 3", "24, 2") for way in WAYS]
    assert [row[:3] for row in ways[1:]] == cells
    for row, measured in zip(ways[1:], numbers["ways"], strict=True):
        goal = {"exact": 0.75, "shared": 0.70}.get(row[2])
        assert row[7] == ("" if goal is None else "met" if measured["peak"] >= goal else "missed")
        assert float(row[3]) == pytest.approx(measured["rate"], abs=0.006)
    assert all(row[4] == "1.0" for row in ways[1:] if row[2] == "naive")


def test_the_rest_of_the_page_has_the_numbers_of_the_run(smoke):
    page, numbers = smoke
    assert len(numbers["checks"]) == 6
    assert all(check["kernels"] == check["plain"] < 0.5 for check in numbers["checks"])  # the CPU has one kernel only
    speedup = numbers["fp8"]["rates"]["fp8"] / numbers["fp8"]["rates"]["bf16"]
    assert f"- fp8 needs 0.0 GB and is {speedup:.2f} times as fast." in page
    assert f"they would waste {100 * numbers['mixed']['padded']:.0f}%." in page


def test_a_part_that_was_not_measured_is_left_out(smoke):
    from benchmarks.pages.gpu_page import Mixed, Page, Where

    where, mixed = Where(**smoke[1]["where"]), Mixed(**smoke[1]["mixed"])
    page = Page(where, checks=[], ways=[], mixed=mixed, fp8=None).markdown()
    headings = [line for line in page.splitlines() if line.startswith("## ")]
    assert headings == ["## Documents of mixed lengths", "## What it says"]
    assert "## " not in Page(where, checks=[], ways=[], mixed=None, fp8=None).markdown()


def test_all_ways_give_the_same_scores():
    """What is timed is the same work: the usual way in fp32 against exact attention."""
    from benchmarks.speed import full_size, ways

    for name, block in (("llada-8b", 0), ("dream-7b", 0), ("llada2-mini", 32)):
        model = full_size.random_model(full_size.architecture(name, small=True), device="cpu", dtype=torch.float32)
        for parameter in model.parameters():
            parameter.mul_(10 if parameter.ndim > 1 else 1)
        asked = ways.documents([12, 70, 7], 4, 500)
        usual = ways.naive(model, asked, block=block)
        exact = ways.ours(model, asked, 10_000, shared=False, block=block)
        assert sorted(usual.values) == pytest.approx(sorted(exact.values), abs=1e-4), name
        assert usual.flops > exact.flops
        assert usual.tokens > exact.tokens  # padding


def test_the_shapes_have_as_many_parameters_as_the_specs_say():
    from benchmarks.speed import full_size

    names = {"llada-8b": "llada", "illada-8b": "illada", "dream-7b": "dream", "llada2-mini": "llada2",
             "llada-moe": "llada-moe"}  # fmt: skip
    for shape, family in names.items():
        assert full_size.architecture(shape).parameters() == FAMILY_SPECS[family].parameters, shape
    assert SPECS["llada-8b-base"].parameters == 16_031_162_368 // 2  # total_size of the checkpoint's index, in bf16


# Studies


def test_int4_is_measured_beside_bf16(capsys):
    from benchmarks.studies import quantised

    quantised.main(["--smoke"])
    (table,) = tables(capsys.readouterr().out)
    assert [row[0] for row in table] == ["weights", "bf16", "int4"]
    assert float(table[1][3]) == 0.0
    assert float(table[2][3]) > 0


def test_a_shortlist_is_timed_step_by_step(capsys, monkeypatch):
    pytest.importorskip("faiss")
    from benchmarks.studies import shortlist

    monkeypatch.setattr(shortlist, "load_encoder", lambda *_, **__: sentence_encoder(threads=1))
    shortlist.main(["--labels", "300", "--words", "12", "--documents", "2"])
    (table,) = tables(capsys.readouterr().out)
    assert table[0][2:] == [*shortlist.STEPS, "time, plain = 1"]
    assert [row[1] for row in table[1:]] == [shortlist.PLAIN, *(f"fused, {name}" for name in (EMBEDDED, ENCODER))]
    assert table[1][-1] == "1.00"
    assert table[1][4:6] == ["", ""]  # the plain way has neither words nor fusion


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_goemotions(tmp_path_factory.mktemp("data"), documents=48)


def test_an_encoder_beside_itself_is_the_same(capsys, monkeypatch, data):
    from benchmarks.studies import embedding

    monkeypatch.setattr(embedding, "load_encoder", lambda *_, **__: sentence_encoder(threads=1))
    embedding.main(["--data-dir", str(data), "--documents", "10", "--sets", DATASET])
    (table,) = tables(capsys.readouterr().out)
    assert table[1][:4] == [DATASET, "1.000", "1.000", "1.000"]
    assert table[1][4] == table[1][5]


@pytest.fixture(scope="module")
def scores(data, tmp_path_factory):
    """What `setscore evaluate` leaves: a folder of scores, and a file of results."""
    folder = tmp_path_factory.mktemp("evaluated")
    command = ["evaluate", DATASET, "--data-dir", data, "--save", folder / "scores", "--json", folder / "results.json"]
    done = CliRunner().invoke(app, [*map(str, command), "--calibration", "auto,paper", "--backbone", "setscore-mini"])
    assert done.exit_code == 0, done.output
    return folder


@pytest.mark.parametrize(
    ("given", "columns", "counts"),
    [
        ([], ["documents", DATASET, "mean"], "0 8 15"),
        (["--blend"], ["documents", DATASET, "mean"], "0 8 15"),
        (["--within", "--steady", "0", "inf"], ["documents", "steady", DATASET, "mean"], "15 15"),
    ],
)
def test_few_documents_have_a_row_for_every_number_that_there_are(capsys, scores, given, columns, counts):
    from benchmarks.studies import calibrating
    from setscore.calibration import thresholds

    before = thresholds.STEADY
    calibrating.main(["--scores", str(scores / "scores"), "--sets", DATASET, *given])
    (table,) = tables(capsys.readouterr().out)
    assert table[0] == columns
    assert " ".join(row[0] for row in table[1:]) == counts
    assert all(row[-2] == row[-1] for row in table[1:])  # the mean over one set
    assert before == thresholds.STEADY


def test_a_folder_without_scores_says_what_to_do(capsys, tmp_path):
    from benchmarks.studies import calibrating

    with pytest.raises(SystemExit):
        calibrating.main(["--scores", str(tmp_path)])
    assert f"error: {tmp_path} holds no scores. Make them with `setscore evaluate" in capsys.readouterr().err


# Pages


def test_the_page_of_results_has_every_part(capsys, scores):
    from benchmarks.pages import development_results

    development_results.main([str(scores / "results.json"), "--scores", str(scores / "scores")])
    page = capsys.readouterr().out
    assert page.startswith("# Results on the development slices\n")
    assert [line for line in page.splitlines() if line.startswith("## ")] == [
        "## Expected calibration error", "## Beside the paper", "## Guarantees"
    ]  # fmt: skip
    rows, gaps, errors, beside, guarantees = tables(page)
    assert [row[0] for row in rows[1:5]] == ["auto", "paper", "learned", "threshold 0.5"]
    assert gaps[1][1] == gaps[1][2]  # the mean over one set
    assert [row[0] for row in errors[1:]] == ["raw", "auto", "paper", "learned", "threshold 0.5"]
    assert [row[0] for row in guarantees] == ["promised recall", "0.8", "0.9"]
    printed = [paper.printed("main", "llada_instruct_per_label", DATASET, measure) for measure in ("micro", "macro")]
    assert ["LLaDA-8B-Instruct, per label (paper)", f"{printed[0]} / {printed[1]}"] in beside


@pytest.mark.parametrize("dataset", ["goemotions", "reuters", "eurlex", "jigsaw", "aapd"])
def test_the_best_cell_of_the_paper_is_not_below_any_other(dataset):
    from benchmarks.pages.development_results import best_printed

    best = [float(value) for value in best_printed(dataset).split(" / ")]
    for value, measure in zip(best, ("micro", "macro"), strict=True):
        cells = [paper.printed("prompt_sweep", "express", dataset, measure)]
        cells += [paper.printed("main", method, dataset, measure) for method in ("deberta_nli", "dream_base_per_label")]
        assert value >= max(cell for cell in cells if cell is not None)


def test_the_page_in_docs_has_the_papers_numbers():
    from benchmarks.pages.development_results import best_printed, printed

    page = (ROOT / "docs" / "results" / "development.md").read_text()
    (beside,) = [table for table in tables(page) if table[1][0] == "auto" and
                 any("(paper)" in row[0] for row in table)]  # fmt: skip
    rows = {row[0]: row[1:] for row in beside}
    assert rows["LLaDA-8B-Instruct, per label (paper)"] == [printed(name) for name in rows[""]]
    assert rows["best training-free cell (paper)"] == [best_printed(name) for name in rows[""]]


def test_nothing_of_task_a_stands_beside_task_b():
    from benchmarks.pages.development_results import best_printed, printed

    assert (printed("ecthr-b"), best_printed("ecthr-b")) == ("", "")
    assert printed("ecthr") != ""


def test_baselines_have_a_column_each_and_a_second_run_scores_nothing(capsys, data, tmp_path):
    pytest.importorskip("sentence_transformers")
    from benchmarks.pages import baseline_results

    command = ["--data-dir", str(data), "--save", str(tmp_path), "--sets", DATASET, "--without", "linear", "setfit",
               "--device", "cpu"]  # fmt: skip
    baseline_results.main(command)
    first = capsys.readouterr()
    quality, speed = tables(first.out)
    assert quality[0][1:] == [
        "embedded", "own cosine", "cosine", "embedded + own cosine", "embedded + cosine", "ensemble of all"
    ]  # fmt: skip
    assert speed[0] == quality[0]
    assert all(speed[1][1:4])
    assert "## Ensembles" in first.out
    assert f"\n- {DATASET}, embedded + cosine: seed 13 " in first.out
    assert f"{DATASET} embedded: 48 of 48" in first.err
    baseline_results.main(command)
    again = capsys.readouterr()
    assert tables(again.out)[0] == quality
    assert f"{DATASET} embedded" not in again.err


def test_the_benchmark_of_batches_measures_memory_that_stays_flat(tmp_path, capsys):
    """At a fiftieth of the size that the page gives, and of the growth that is allowed there."""
    from benchmarks.speed import batch

    said, found = batch.growth("flat", tmp_path, (200, 20_000), 40)
    assert "the goal is 40 at most: met." in said
    assert [line.split()[1] for line in said.splitlines()[2:4]] == ["200", "20,000"]
    assert found[20_000]["seconds"] > found[200]["seconds"] > 0
    assert found[20_000]["written"] / 20_000 < found[200]["written"] / 200


def test_classify_reads_a_file_of_100_thousand_rows_in_the_memory_of_a_thousand(tmp_path):
    from benchmarks.speed import batch

    said, found = batch.growth("classify", tmp_path, (1_000, 100_000), batch.CLASSIFY)
    assert "the goal is 50 at most: met." in said
    assert found[100_000]["memory"] - found[1_000]["memory"] <= 50
    with (tmp_path / "classify-100000.jsonl").open(encoding="utf-8") as lines:
        assert sum(1 for _ in lines) == 100_000
