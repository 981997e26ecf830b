"""Three plain labelled sets: newsgroup posts, short texts with an emotion, film reviews. What a label means: YAML."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from recipes.sources.rows import Label, Row

_QUOTED = re.compile(r"^\s*(?:[>|:#].*|.*\bwrites:\s*|In article .*)$", re.MULTILINE)
_SUBJECT = re.compile(r"^Subject:\s*(.*)$", re.MULTILINE)


def load_labels(path: Path) -> dict[str, dict[str, Label]]:
    """`set: {label: [wordings]}`."""
    return {
        name: {str(label): tuple(words) for label, words in labels.items()}
        for name, labels in yaml.safe_load(path.read_text()).items()
    }


def _row(source: str, family: str, text: str, yes: tuple[Label, ...], labels: Mapping[str, Label]) -> Row:
    return Row(source, text, family, yes, tuple(words for words in labels.values() if words not in yes))


def convert_newsgroup(record: Mapping[str, Any], labels: Mapping[str, Label]) -> Row | None:
    """The post without header and quoted lines; its subject is a second label."""
    header, _, body = record["text"].partition("\n\n")
    text = " ".join(_QUOTED.sub(" ", body).split())
    if len(text.split()) < 8 or record["group"] not in labels:
        return None
    found = _SUBJECT.search(header)
    subject = re.sub(r"^(?:re:\s*)+", "", found.group(1), flags=re.IGNORECASE).strip(" ?!.") if found else ""
    extra = ((subject,),) if 2 <= len(subject.split()) <= 8 else ()
    return _row("newsgroups20", "topic", text, (labels[record["group"]], *extra), labels)


def convert_emotion(record: Mapping[str, Any], labels: Mapping[str, Label]) -> Row | None:
    if record["emotion"] not in labels:
        return None
    return _row("emotion", "emotion", record["text"], (labels[record["emotion"]],), labels)


def convert_review(record: Mapping[str, Any], labels: Mapping[str, Label]) -> Row | None:
    if record["label"] not in labels:
        return None
    return _row("imdb", "sentiment", record["text"].replace("<br />", " "), (labels[record["label"]],), labels)
