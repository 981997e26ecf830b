"""No command writes over what it reads, nor two results into one file."""

import pytest
from commands import invoke

LABELS, DOCUMENTS = "oil: the oil price\nsports: games and players\n", "text,labels\nOil fell.,oil\nA goal.,sports\n"
READS = ["--file", "a.csv", "--labels", "l.yaml"]


@pytest.mark.parametrize(
    ("command", "option", "file"),
    [
        (["calibrate", *READS], "--out", "a.csv"),
        (["calibrate", *READS], "--out", "l.yaml"),
        (["calibrate", *READS], "--json", "./a.csv"),
        (["calibrate", *READS], "--curve", "a.csv"),
        (["calibrate", *READS], "--mistakes", "a.csv"),
        (["evaluate", *READS], "--json", "l.yaml"),
        (["suggest", *READS, "--n", "1"], "--output", "a.csv"),
        (["suggest", *READS, "--n", "1"], "--output", "link.csv"),
        (["classify", *READS], "--output", "l.yaml"),
        (["classify", "--file", "a.csv", "--classifier", "l.yaml"], "--output", "l.yaml"),
    ],
)
def test_what_is_read_stays(tmp_path, command, option, file):
    (tmp_path / "a.csv").write_text(DOCUMENTS)
    (tmp_path / "l.yaml").write_text(LABELS)
    (tmp_path / "link.csv").symlink_to("a.csv")
    code, out, err = invoke(*command, option, file, folder=tmp_path)
    assert (code, out) == (2, "")
    read = "l.yaml" if file == "l.yaml" else "a.csv"
    assert err == f"error: {option} is the file that is read, {read}. Name another one.\n"
    assert (tmp_path / "a.csv").read_text() == DOCUMENTS
    assert (tmp_path / "l.yaml").read_text() == LABELS


def test_two_results_have_two_files(tmp_path):
    (tmp_path / "a.csv").write_text(DOCUMENTS)
    code, _, err = invoke(
        "calibrate", "--file", "a.csv", "-l", "oil,sports", "--out", "x", "--json", "x", folder=tmp_path
    )
    assert (code, err) == (2, "error: --out and --json are the same file, x. Name two.\n")
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]
