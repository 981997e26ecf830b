"""Super-NaturalInstructions, closed tasks: each output of a task becomes a label with several wordings.

What an output means stands in the task's definition, so a person (or a careful reader) writes it down once per task,
in `tasks/*.yaml`:

    task1592_yahoo_answers_topics_classfication:   # a label task
      family: topic
      pattern: "Question title: (?P<document>.*)"  # optional regular expression; else the whole input is the document
      labels:                                      # output -> wordings: a short name, paraphrases, a description
        "2": [health, health and medicine, illness and medical care]
        "9": []                                    # none of the task's labels applies
      questions: ["Is this question about {label}?"]   # optional, beside the family's own wordings

    task1385_anli_r1_entailment:                   # a yes/no task: the question uses other groups of the pattern
      pattern: "Premise: (?P<document>.*) <sep> Hypothesis: (?P<hypothesis>.*)"
      questions: ["Does the text imply that {hypothesis}?"]
      "yes": [entailment]                          # quoted: a bare yes is a boolean in YAML
      "no": [neutral, contradiction]

    task685_mmmlu_answer_generation_clinical_knowledge:
      options: true                                # "(A)... (B)..." in the input; the output is a letter

    task276_enhanced_wsc_classification:
      skip: the two sentences must be compared letter by letter
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from recipes.sources.rows import FAMILIES, Label, Row

FIELDS = {"family", "pattern", "labels", "questions", "yes", "no", "split", "options", "skip"}
_OPTION = re.compile(r"\(\s*([A-Ha-h1-8])\s*\)\s*(.*?)\s*(?=\(\s*[A-Ha-h1-8]\s*\)|$)", re.DOTALL)


@dataclass(frozen=True)
class Task:
    """How one task is read. `labels` and (`yes`, `no`) exclude each other; both empty: options."""

    name: str
    family: str
    pattern: re.Pattern[str] | None
    labels: Mapping[str, Label]
    questions: tuple[str, ...]
    yes: frozenset[str]
    no: frozenset[str]
    split: str | None
    options: bool


def _key(output: str) -> str:
    return output.strip().rstrip(".").strip().casefold()


def parse_task(name: str, entry: Mapping[str, Any]) -> Task | None:
    """The task, or None when its entry says to skip it; a mistake in the entry is an error that names the task."""
    if surplus := set(entry) - FIELDS:
        raise ValueError(f"{name}: unknown field {sorted(surplus)}; allowed are {sorted(FIELDS)}.")
    if "skip" in entry:
        return None
    kinds = [k for k in ("labels", "yes", "options") if entry.get(k)]
    if len(kinds) != 1:
        raise ValueError(f"{name}: exactly one of labels, yes (with no) and options is needed; got {kinds}.")
    family = entry.get("family", "other")
    if family not in FAMILIES:
        raise ValueError(f"{name}: family {family!r} is not one of {FAMILIES}.")
    pattern = re.compile(entry["pattern"], re.DOTALL) if "pattern" in entry else None
    if pattern is not None and "document" not in pattern.groupindex:
        raise ValueError(f"{name}: the pattern has no group named document.")
    questions = tuple(entry.get("questions", ()))
    labels = {_key(str(k)): tuple(v or ()) for k, v in (entry.get("labels") or {}).items()}
    if labels and any("{label}" not in q for q in questions):
        raise ValueError(f"{name}: a question of a label task holds {{label}}.")
    if kinds == ["yes"] and not questions:
        raise ValueError(f"{name}: a yes/no task needs at least one question.")
    return Task(
        name,
        family,
        pattern,
        labels,
        questions,
        frozenset(_key(str(x)) for x in entry.get("yes", ())),
        frozenset(_key(str(x)) for x in entry.get("no", ())),
        entry.get("split"),
        bool(entry.get("options")),
    )


def load_tasks(folder: Path) -> dict[str, Task]:
    """Every task of the YAML files of a folder; a task named twice is an error."""
    tasks: dict[str, Task] = {}
    for path in sorted(folder.glob("*.yaml")):
        for name, entry in (yaml.safe_load(path.read_text()) or {}).items():
            if name in tasks:
                raise ValueError(f"{path.name}: {name} is described twice.")
            if (task := parse_task(name, entry)) is not None:
                tasks[name] = task
    return tasks


def convert(record: Mapping[str, Any], task: Task) -> Row | None:
    """One instance as a row, or None when the pattern or the output does not fit (the caller counts them)."""
    match = task.pattern.search(record["input"]) if task.pattern else None
    if task.pattern and match is None:
        return None
    groups = {k: (v or "").strip() for k, v in match.groupdict().items()} if match else {"document": record["input"]}
    document, output = groups["document"].strip(), str(record["output"][0])
    if task.options:
        return _with_options(task, document, output)
    if task.labels:
        outputs = [_key(o) for o in (output.split(task.split) if task.split else [output])]
        if any(o not in task.labels for o in outputs):
            return None
        yes = tuple(task.labels[o] for o in outputs if task.labels[o])
        others = dict.fromkeys(label for o, label in task.labels.items() if label and o not in outputs)
        no = tuple(label for label in others if label not in yes)
        return Row(task.name, document, task.family, yes, no, questions=task.questions)
    answer = _key(output)
    if answer not in task.yes | task.no:
        return None
    asks = tuple((_fill(question, groups), answer in task.yes) for question in task.questions)
    return Row(task.name, document, task.family, asks=asks)


def _fill(question: str, groups: Mapping[str, str]) -> str:
    for name, text in groups.items():
        question = question.replace("{" + name + "}", text.rstrip(" .?"))
    return question


def _with_options(task: Task, text: str, output: str) -> Row | None:
    """A question with lettered options: the right one is the label that applies, the others are those that do not."""
    found = [(letter.casefold(), option) for letter, option in _OPTION.findall(text) if option]
    right = [(option,) for letter, option in found if letter == _key(output)]
    if len(found) < 2 or len(right) != 1:
        return None
    stem = text[: _OPTION.search(text).start()].strip()  # type: ignore[union-attr]
    wrong = tuple((option,) for letter, option in found if letter != _key(output))
    return Row(task.name, stem, task.family, tuple(right), wrong, questions=("Is the answer {label}?",))
