"""Reuters-21578, the ModApte split, restricted to its 20 most frequent topics."""

import html
import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from setscore.datasets.dataset import Dataset, Entry, assemble
from setscore.datasets.files import DAMAGE, UNPACKED, field, find, missing, parquet_rows, read_bytes, shards
from setscore.datasets.source import HUB_UNCHECKED, Home, Source, described
from setscore.errors import DataFileError, counted, plural
from setscore.storage import megabytes

FILES = tuple(f"reut2-{number:03}.sgm" for number in range(22))
ARCHIVE = "reuters21578.tar.gz"
LEWIS = {"train": "TRAIN", "test": "TEST"}
SIZES = {"train": 9603, "test": 3299}  # stories of ModApte

_ATTRIBUTE = re.compile(r'\b(\w++)="([^"]*+)"')
_DIGITS = re.compile(r"&#[0-9]{8,}")  # more than a character can have; html would read the number, however long
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


@dataclass(frozen=True)
class Story:
    """An article as it stands in the SGML. Entities become characters, control characters go."""

    attributes: dict[str, str]
    content: str

    @cached_property
    def topics(self) -> tuple[str, ...]:
        return tuple(_clean(topic) for topic in _elements(_element(self.content, "TOPICS"), "D"))

    @cached_property
    def text(self) -> str:
        """Title and body; where neither is marked (TYPE="UNPROC"), all of the text."""
        parts = [_element(self.content, "TITLE"), _element(self.content, "BODY")]
        if not any(parts):
            parts = [_untagged(_element(self.content, "TEXT"))]
        return "\n\n".join(cleaned for part in parts if (cleaned := _clean(part)))


def read(folder: Path, split: str) -> Dataset:
    """From the official SGML files, the archive that holds them, or Parquet files with their titles, bodies and topics.

    Stories without one of the topics are left out.
    """
    labels = described("reuters")
    parts = shards(folder, split)
    chosen, more = (_mirrored(parts, split), []) if parts else _official(folder, split)
    kept = [story for story in chosen if set(story.labels) & set(labels.names)]
    others = sum(topic not in labels.names for story in kept for topic in story.labels)
    notes = [f"{len(chosen) - len(kept)} of {len(chosen)} stories have none of the {len(labels)} topics; left out."]
    if others:
        notes.append(f"{counted(others, 'other topic')} of the kept stories {plural(others, 'was', 'were')} left out.")
    entries = [replace(story, labels=tuple(t for t in story.labels if t in labels.names)) for story in kept]
    return assemble("reuters", split, entries, labels, origin=folder, notes=[*notes, *more])


def _official(folder: Path, split: str) -> tuple[list[Entry], list[str]]:
    """The stories of a split with all of their topics, and notes."""
    files = list(_files(folder))
    stories = [story for name, content in files for story in parse(content, name)]
    chosen = [s for s in stories if s.attributes["LEWISSPLIT"] == LEWIS[split] and s.attributes["TOPICS"] == "YES"]
    if not chosen:
        raise DataFileError(
            f'none of the {len(stories)} stories in {folder} has LEWISSPLIT="{LEWIS[split]}" and TOPICS="YES".'
            f" The full distribution has {len(FILES)} files, this folder {len(files)}."
        )
    notes = [f"Only {len(files)} of the {len(FILES)} files of the distribution are there."]
    entries = [Entry(story.attributes["NEWID"], story.text, story.topics) for story in chosen]
    return entries, notes if len(files) < len(FILES) else []


def _mirrored(parts: list[Path], split: str) -> list[Entry]:
    """The same from Parquet files; they are those of ModApte only if they have as many stories."""
    entries = []
    for number, where, row in parquet_rows(parts, ("title", "body", "topics")):
        topics = tuple(_clean(str(topic)) for topic in field(row, "topics", list, where))
        pieces = (_clean(field(row, column, (str, type(None)), where) or "") for column in ("title", "body"))
        entries.append(Entry(f"{split}-{number}", "\n\n".join(piece for piece in pieces if piece), topics))
    if len(entries) != SIZES[split]:
        raise DataFileError(
            f"{parts[0].parent} holds {len(entries)} stories; the {split} split of ModApte has {SIZES[split]}."
        )
    return entries


def parse(content: str, name: str) -> Iterator[Story]:
    """The stories of one SGML file."""
    starts = list(_opened(content, "REUTERS"))
    if not starts:
        raise DataFileError(f"{name} holds no story. It is empty or broken; fetch it again.")
    for (begin, after), (following, _) in zip(starts, [*starts[1:], (len(content), 0)], strict=True):
        end = content.find("</REUTERS>", after, following)
        attributes = dict(_ATTRIBUTE.findall(content[begin:after]))
        if end < 0 or not {"NEWID", "LEWISSPLIT", "TOPICS"} <= set(attributes):
            line = content.count("\n", 0, begin) + 1
            problem = "no </REUTERS>; the file is cut off" if end < 0 else "no NEWID, LEWISSPLIT or TOPICS"
            raise DataFileError(f"the story that begins at line {line} of {name} has {problem}.")
        yield Story(attributes, content[after:end])


# The SGML is taken apart with `find`, each time from where the last one ended. A pattern such as <D>(.*?)</D> looks for
# an end that is not there from each beginning anew, which takes hours in a file of a few megabytes.


def _opened(content: str, tag: str) -> Iterator[tuple[int, int]]:
    """Where each opening tag begins, and where what follows it does."""
    place = content.find(f"<{tag}")
    while place >= 0:
        after = place + len(tag) + 1
        if not (content[after : after + 1].isalnum() or content[after : after + 1] == "_"):  # a longer name
            after = content.find(">", after) + 1
            if after == 0:
                return
            yield place, after
        place = content.find(f"<{tag}", after)


def _elements(content: str, tag: str) -> Iterator[str]:
    """What is in each element of this name."""
    over = 0
    for begin, after in _opened(content, tag):
        if begin < over:
            continue  # it is inside of the last one
        end = content.find(f"</{tag}>", after)
        if end < 0:
            return
        over = end + len(tag) + 3
        yield content[after:end]


def _element(content: str, tag: str) -> str:
    """What is in the first element of this name."""
    return next(_elements(content, tag), "")


def _untagged(content: str) -> str:
    """The text with a blank in place of each tag."""
    pieces, place = [], 0
    while (begin := content.find("<", place)) >= 0 and (end := content.find(">", begin)) >= 0:
        pieces += [content[place:begin], " "]
        place = end + 1
    return "".join([*pieces, content[place:]])


def _clean(text: str) -> str:
    return _CONTROL.sub("", html.unescape(_DIGITS.sub("&#1114112", text))).strip()


def _files(folder: Path) -> Iterator[tuple[str, str]]:
    """Names and contents. The files are Latin-1: one of them holds bytes that are no UTF-8."""
    present = [path for name in FILES if (path := find(folder, name))]
    archive = folder / ARCHIVE
    if not present and not archive.is_file():
        raise missing(folder, "reut2-000.sgm to reut2-021.sgm", ARCHIVE)
    for path in present:
        yield str(path), read_bytes(path).decode("latin-1")
    if not present:
        yield from _archived(archive)


def _archived(path: Path) -> Iterator[tuple[str, str]]:
    try:
        with tarfile.open(path, "r:gz") as archive:
            members: dict[str, tarfile.TarInfo] = {}
            for member in archive:
                if archive.offset > UNPACKED:  # beyond this member
                    raise DataFileError(f"{path} is larger than {megabytes(UNPACKED)} unpacked, the limit.")
                if member.isfile():
                    members[Path(member.name).name] = member
            for name in (name for name in FILES if name in members):
                file = archive.extractfile(members[name])
                yield f"{path}: {name}", file.read().decode("latin-1") if file else ""
    except (tarfile.TarError, *DAMAGE) as error:
        raise DataFileError(f"{path} is truncated or damaged ({error}). Fetch it again.") from error


SOURCE = Source(
    name="reuters",
    title="Reuters-21578",
    folder="reuters",
    origin="Reuters Ltd. and Carnegie Group 1987, Distribution 1.0 by David D. Lewis",
    licence="free for research; the copyright is with Reuters Ltd. (the UCI page says CC BY 4.0)",
    labels=20,
    cardinality="1.20 (first 1,000 test documents)",
    sizes=SIZES,
    test_size=1000,
    read=read,
    homes=(
        Home.converted("Tellurio/reuters-21578", "default/{split}/*.parquet"),
        Home("ucirvine/reuters21578", "data/reuters21578.tar.gz"),
    ),
    validation="train",
    obtain="reuters21578.tar.gz from archive.ics.uci.edu/dataset/137, as it is or unpacked",
    differs=(
        "The paper lists topics alphabetically from acq to housing; its results use the 20 most frequent topics of the"
        " training split, which these are, in order of frequency.",
        "The paper reads a Parquet mirror. Here it is taken if it has title, body and topics of as many stories as the"
        " split has; else the original SGML is, and a note says so.",
        "There is no validation split; validation documents are drawn from the training split.",
        "Sizes count all stories with TOPICS=YES; those without one of the 20 topics are left out, and noted.",
    ),
    unchecked=(
        HUB_UNCHECKED,
        "The columns of the mirror: title, body and topics are what the paper's code reads.",
    ),
)
