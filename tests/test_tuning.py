"""The benchmark of tuning times runs and prints a row for every calibration that it names."""

from benchmarks.studies import tuning


def test_a_small_run_prints_every_row(capsys):
    tuning.main(["--documents", "40", "--labels", "3", "--rounds", "1"])
    printed = capsys.readouterr().out
    rows = [line.split("|")[1].strip() for line in printed.splitlines() if line.startswith("| ")]
    assert rows[1:8] == ["auto", "levelled", "platt", "shrunk", "isotonic", "temperature", "paper"]
    assert rows[8].startswith("scikit-learn")
    assert "40 documents, 3 labels" in printed
