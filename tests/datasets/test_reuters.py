import io
import itertools
import re
import tarfile

import pytest

from setscore.datasets import load_dataset, reuters
from setscore.errors import DataFileError

HEAD = '<!DOCTYPE lewis SYSTEM "lewis.dtd">\n'


def story(number: int, topics: tuple[str, ...] = (), split: str = "TEST", yes: str = "YES", text: str = "") -> str:
    marked = "".join(f"<D>{topic}</D>" for topic in topics)
    body = f"<DATELINE>    BONN, </DATELINE><BODY>Body {number}.\n&#3;</BODY>"
    text = text or f"<TEXT>&#2;\n<TITLE>TITLE {number}</TITLE>\n{body}</TEXT>"
    return (
        f'<REUTERS TOPICS="{yes}" LEWISSPLIT="{split}" CGISPLIT="TRAINING-SET" OLDID="5{number}" NEWID="{number}">\n'
        f"<DATE> 1-JAN-1987 12:00:00.00</DATE>\n<TOPICS>{marked}</TOPICS>\n<PLACES><D>usa</D></PLACES>\n"
        f"<UNKNOWN> \n&#5;&#5;&#5;X\n</UNKNOWN>\n{text}\n</REUTERS>\n"
    )


FIRST = HEAD + story(1, ("grain", "wheat")) + story(2, ("cocoa",)) + story(3, ("earn",), split="TRAIN")
SECOND = HEAD + story(4, ("acq", "jobs")) + story(5, ("earn",), yes="BYPASS") + story(6) + story(7, split="NOT-USED")


@pytest.mark.parametrize("ending", ["", ".xz", ".gz"])
def test_modapte_splits_are_read_and_what_is_left_out_is_counted(put, tmp_path, ending):
    put("reuters/reut2-001.sgm", SECOND, ending)
    put("reuters/reut2-000.sgm", FIRST, ending)
    test = load_dataset("reuters", "test", tmp_path)
    assert test.ids == ("1", "4")
    assert test.texts == ("TITLE 1\n\nBody 1.", "TITLE 4\n\nBody 4.")
    assert [[test.labels.names[i] for i in row.nonzero()[0]] for row in test.gold] == [["grain", "wheat"], ["acq"]]
    assert test.notes == (
        "2 of 4 stories have none of the 20 topics; left out.",
        "1 other topic of the kept stories was left out.",
        "Only 2 of the 22 files of the distribution are there.",
    )
    assert load_dataset("reuters", "train", tmp_path).ids == ("3",)


def test_topics_are_in_the_order_of_their_frequency(put, tmp_path):
    put("reuters/reut2-000.sgm", FIRST)
    names = load_dataset("reuters", "test", tmp_path).labels.names
    assert (names[:3], names[-1], len(names)) == (("earn", "acq", "money-fx"), "livestock", 20)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<TEXT><TITLE>A &amp; B &lt;AB></TITLE><BODY>up 1&#127; pct</BODY></TEXT>", "A & B <AB>\n\nup 1 pct"),
        ("<TEXT><TITLE>M\xfcnchen</TITLE><BODY>a\x1f\x85b</BODY></TEXT>", "M\xfcnchen\n\nab"),
        ('<TEXT TYPE="BRIEF"><TITLE>******ONLY A TITLE</TITLE>\n</TEXT>', "******ONLY A TITLE"),
        ('<TEXT TYPE="UNPROC">&#2;\n<DATELINE>X</DATELINE>Raw &lt;text>\n&#3;</TEXT>', "X Raw <text>"),
    ],
)
def test_latin_1_entities_and_control_characters_are_decoded(put, tmp_path, text, expected):
    put("reuters/reut2-017.sgm", story(1, ("earn",), text=text).encode("latin-1"))
    assert load_dataset("reuters", "test", tmp_path).texts == (expected,)


def test_stories_without_text_are_counted(put, tmp_path):
    put("reuters/reut2-000.sgm", story(1, ("earn",)) + story(2, ("acq",), text="<TEXT>&#3;</TEXT>"))
    dataset = load_dataset("reuters", "test", tmp_path)
    assert dataset.ids == ("1",)
    assert dataset.notes[-1] == "1 of 2 documents has no usable text and was left out: 2."


def archive(path, files):
    with tarfile.open(path, "w:gz") as file:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            file.addfile(info, io.BytesIO(content))


def test_the_archive_of_the_distribution_is_read_as_it_is(tmp_path):
    (tmp_path / "reuters").mkdir()
    files = {"README.txt": b"no story", "./reut2-001.sgm": SECOND.encode(), "./reut2-000.sgm": FIRST.encode()}
    archive(tmp_path / "reuters" / "reuters21578.tar.gz", files)
    assert load_dataset("reuters", "test", tmp_path).ids == ("1", "4")


def test_a_truncated_archive_says_so(tmp_path):
    (tmp_path / "reuters").mkdir()
    path = tmp_path / "reuters" / "reuters21578.tar.gz"
    archive(path, {"reut2-000.sgm": FIRST.encode()})
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DataFileError, match=r"reuters21578.tar.gz is truncated or damaged"):
        load_dataset("reuters", "test", tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (FIRST[:-20], "the story that begins at line 26 of .*reut2-000.sgm has no </REUTERS>; the file is cut off"),
        (FIRST.replace("</REUTERS>", "", 1), "the story that begins at line 2 of .* has no </REUTERS>"),
        (FIRST.replace(' NEWID="1"', ""), "the story that begins at line 2 of .* has no NEWID, LEWISSPLIT or TOPICS"),
        ("", "reut2-000.sgm holds no story"),
        (story(1, split="TRAIN"), 'none of the 1 stories in .* has LEWISSPLIT="TEST" and TOPICS="YES".*22 files, .* 1'),
    ],
)
def test_broken_files_say_where(put, tmp_path, content, message):
    put("reuters/reut2-000.sgm", content)
    with pytest.raises(DataFileError, match=message):
        load_dataset("reuters", "test", tmp_path)


HOSTILE = {
    "stories": ("<REUTERS " * 200_000, "reut2-000.sgm holds no story. It is empty or broken; fetch it again."),
    "attributes": (f"<REUTERS {'a' * 200_000} {'b=' * 200_000}></REUTERS>", "has no NEWID, LEWISSPLIT or TOPICS."),
    "topics": (
        story(1).replace("<TOPICS>", "<TOPICS>" + "<D>" * 200_000),
        "reuters holds no documents. It is empty or broken; fetch it again.",
    ),
    "titles": (story(1, ("earn",), text="<TEXT>" + "<TITLE>" * 200_000 + "</TEXT>"), ()),
    "unclosed": (story(1, ("earn",), text="<TEXT>" + "<" * 400_000 + "</TEXT>"), ("<" * 400_000,)),
    "digits": (story(1, ("earn",), text=f"<TEXT><TITLE>&#{'9' * 5_000};</TITLE></TEXT>"), ("\ufffd",)),
}


@pytest.mark.parametrize(("content", "outcome"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_file_costs_no_more_than_its_length(put, tmp_path, content, outcome):
    # Each of these took a pattern of the form <D>(.*?)</D> minutes to hours, or was a number of 5,000 digits.
    put("reuters/reut2-000.sgm", content)
    if isinstance(outcome, tuple):
        assert load_dataset("reuters", "test", tmp_path).texts == outcome
        return
    with pytest.raises(DataFileError) as error:
        load_dataset("reuters", "test", tmp_path)
    assert str(error.value).endswith(outcome)


def test_elements_end_where_they_did_with_patterns():
    parts = ["<D>", "</D>", "<DX>", "<D a='1'>", "<D", ">", "x", "<", "</", "D>"]
    for pieces in itertools.product(parts, repeat=4):
        content = "".join(pieces)
        expected = re.findall(r"<D\b[^>]*>(.*?)</D>", content, re.DOTALL)
        assert list(reuters._elements(content, "D")) == expected
        assert reuters._untagged(content) == re.sub(r"<[^>]*>", " ", content)


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    (tmp_path / "reuters").mkdir()
    path = tmp_path / "reuters" / "reuters21578.tar.gz"
    archive(path, {"reut2-000.sgm": FIRST.encode() + bytes(3 * 2**20)})
    monkeypatch.setattr(reuters, "UNPACKED", 2 * 2**20)
    with pytest.raises(DataFileError) as error:
        load_dataset("reuters", "test", tmp_path)
    assert str(error.value) == f"{path} is larger than 2 MiB unpacked, the limit."


def test_missing_files_are_named(tmp_path):
    (tmp_path / "reuters").mkdir()
    with pytest.raises(DataFileError, match=r"reut2-000.sgm to reut2-021.sgm or reuters21578.tar.gz .* looked for in"):
        load_dataset("reuters", "test", tmp_path)


def test_there_is_no_validation_split(tmp_path):
    with pytest.raises(
        DataFileError, match=r"has no validation split, only train, test. Validation documents are drawn from train."
    ):
        load_dataset("reuters", "validation", tmp_path)
