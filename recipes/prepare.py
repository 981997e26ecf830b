"""General data to training rows: converters, the overlap check, tokens.

    python -m recipes.prepare --data DATA --evaluation EVAL --tokenizer tokenizer.json --out prepared.npz

DATA holds the files that docs/reference/models.md lists. EVAL is a folder of evaluation datasets; every training row
whose document, question or answer shares two 8-grams with one of them, or with a document of tests/data, is removed,
and the summary says how many. Without it only the latter and the labels' wordings are checked, and the summary says
so. `--every 500` reads every 500th row of each file but the written ones, for a try.
"""

import argparse
import json
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from tokenizers import Tokenizer

from recipes import HERE, ROOT
from recipes.files import json_lines, text_lines
from recipes.overlap import N, copies, evaluation_ngrams, forbidden_wordings, normal
from recipes.sources import answers, inference, judged, labelled, natural, packages, running, titles, written
from recipes.sources.phrases import common_phrases, count_phrases
from recipes.sources.rows import FAMILIES, Label, Row
from recipes.sources.topics import load_topics, with_pairs
from recipes.store import Ragged, Store, Texts, tokenize
from recipes.tutor import pool

EVERYDAY = ROOT / "tests" / "data"
Read = Callable[[Path, Mapping[str, Any], int], Iterator[Row | None]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the files that docs/reference/models.md lists")
    parser.add_argument("--evaluation", type=Path, help="what must not be trained on; without it nothing is checked")
    parser.add_argument("--tokenizer", type=Path, required=True, help="tokenizer.json")
    parser.add_argument("--config", type=Path, default=HERE / "config.yaml", help="default: config.yaml of the recipe")
    parser.add_argument("--out", type=Path, required=True, help="the .npz file to write")
    parser.add_argument("--summary", type=Path, help="what was read, kept and removed, as JSON")
    parser.add_argument("--topics", type=Path, help="more phrases that could be labels, by area, such as topics.yaml")
    parser.add_argument("--written", type=Path, default=HERE / "written", help="default: recipes/written")
    parser.add_argument("--judged", type=Path, default=HERE / "judged", help="default: recipes/judged")
    parser.add_argument("--apart", type=Path, help="where the judged texts that are kept apart go, as JSON")
    parser.add_argument("--tutor", type=Path, help="the folder for what a tutor learns and is asked")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="read every N-th row of each file")
    arguments = parser.parse_args()
    for path in (arguments.tokenizer, arguments.config, *filter(None, [arguments.topics])):
        if not path.is_file():
            parser.error(f"{path} is not there.")
    config, tokenizer = yaml.safe_load(arguments.config.read_text()), Tokenizer.from_file(str(arguments.tokenizer))
    areas, unwanted = load_topics(arguments.topics, forbidden_wordings()) if arguments.topics else ([], [])
    evaluation = evaluation_texts(arguments.evaluation)
    evaluation |= everyday_texts(EVERYDAY)
    general = list(read_all(arguments.data, config["prepare"], arguments.every))
    known, absent = judged.records(arguments.judged, (row.document for _, row in general if row is not None))
    rows = chain(
        general,
        (("written", row) for row in written.for_training(arguments.written)),
        (("judged", row) for row in judged.for_training(known)),
    )
    kept, counts = select(rows, config["prepare"])
    if arguments.apart:
        arguments.apart.write_text(json.dumps(judged.for_validation(known)) + "\n")
    clean, removed = without_evaluation(kept, chain.from_iterable(evaluation.values()))
    store, labels = assemble(clean, areas, tokenizer, config)
    store.save(arguments.out)
    if arguments.tutor:
        apart = {record["text"] for record in judged.for_validation(known)}
        pool.write(clean, labels, apart, arguments.tutor, config["tutored"])
    summary = {
        **counts,
        "judged_texts_absent": absent,
        "evaluation_documents_checked": list(evaluation),
        "removed": removed | {"topics": unwanted},
        "rows": len(store.row_document),
        "documents": len(store.documents),
        "document_tokens": len(store.documents.values),
        "labels": len(store.labels),
        "phrases": len(store.pool),
        "topics": int(store.topics),
    }
    print(json.dumps({name: value for name, value in summary.items() if name != "by_source"}, indent=2))
    if arguments.summary:
        arguments.summary.write_text(json.dumps(summary, indent=2) + "\n")


def read_natural(data: Path, config: Mapping[str, Any], every: int) -> Iterator[Row | None]:
    """Closed tasks as described in tasks/, titles as labels, open tasks as answers."""
    tasks = natural.load_tasks(HERE / "tasks")
    listed = json_lines(data / "natural_instructions_tasks.jsonl.xz", ("task", "kind"))
    kinds = {task["task"]: task["kind"] for task in listed}
    for record in json_lines(data / "natural_instructions.jsonl.xz", ("task", "input", "output"), every):
        if (kind := kinds.get(record["task"])) is None:
            raise SystemExit(f"natural_instructions_tasks.jsonl.xz has no line for {record['task']}.")
        if kind == "title":
            yield titles.convert(record)
        elif kind == "open":
            yield answers.convert_open(record)
        elif record["task"] in tasks:
            yield natural.convert(record, tasks[record["task"]])


def read_t0(data: Path, config: Mapping[str, Any], every: int) -> Iterator[Row | None]:
    return map(answers.convert_t0, json_lines(data / "t0_sample.jsonl.xz", ("template", "prompt", "completion"), every))


def read_labelled(data: Path, config: Mapping[str, Any], every: int) -> Iterator[Row | None]:
    labels = labelled.load_labels(HERE / "labelled.yaml")
    for record in json_lines(data / "newsgroups20.jsonl.xz", ("group", "text"), every):
        yield labelled.convert_newsgroup(record, labels["newsgroups"])
    for record in json_lines(data / "emotion.jsonl.xz", ("emotion", "text"), every):
        yield labelled.convert_emotion(record, labels["emotion"])
    for record in json_lines(data / "imdb_sample.jsonl.xz", ("label", "text"), every):
        yield labelled.convert_review(record, labels["reviews"])


def read_running(data: Path, config: Mapping[str, Any], every: int) -> Iterator[Row | None]:
    yield from islice(titles.headings(text_lines(data / "wikitext2_train.txt.xz"), source="wikitext"), 0, None, every)
    for_training, _ = books(data)
    yield from for_training[: config["books_passages"] : every]


def read_packages(data: Path, config: Mapping[str, Any], every: int) -> Iterator[Row | None]:
    if not (path := data / "Translation-en.xz").exists():
        print(f"{path} is not there: no descriptions of packages.")
        return
    found = list(packages.descriptions(text_lines(path), source="packages"))
    if not found:
        raise SystemExit(f"{path} holds no description (Description-en) of {packages.LEAST} words or more.")
    yield from found[::every]


def read_inference(data: Path, config: Mapping[str, Any], every: int) -> Iterator[Row | None]:
    pairs = json_lines(data / "snli_subset.jsonl.xz", ("premise", "hypothesis", "label"), every)
    yield from inference.captions(pairs)
    asked = json_lines(data / "boolq.jsonl.xz", ("question", "passage", "answer"), every)
    yield from map(inference.convert_question, asked)


def books(data: Path) -> tuple[list[Row], list[Row]]:
    return running.held_out(list(running.passages(text_lines(data / "books.txt.xz"), source="books")))


SOURCES: Mapping[str, Read] = {
    "natural_instructions": read_natural,
    "t0": read_t0,
    "labelled": read_labelled,
    "running": read_running,
    "packages": read_packages,
    "inference": read_inference,
}


def read_all(data: Path, config: Mapping[str, Any], every: int = 1) -> Iterator[tuple[str, Row | None]]:
    """Rows with the name of who read them; None is a record without a meaning for training."""
    for name, read in SOURCES.items():
        yield from ((name, row) for row in read(data, config, every))


def select(rows: Iterable[tuple[str, Row | None]], config: Mapping[str, Any]) -> tuple[list[Row], dict[str, Any]]:
    """Each (source, document) once, and of every source at most as many rows as its family allows, drawn with the seed.

    Sources without labels (running text, answers) and the plain labelled sets are taken whole.
    """
    by_source: dict[str, list[Row]] = defaultdict(list)
    unread, seen = Counter[str](), set()
    for name, row in rows:
        if row is None:
            unread[name] += 1
        elif row.document and (key := hash((row.source, row.document, row.asks))) not in seen:
            seen.add(key)
            by_source[row.source].append(row)
    generator, kept = random.Random(config["seed"]), []
    for source in sorted(by_source):
        found = by_source[source]
        whole = not (found[0].no or found[0].asks) or not source.startswith("task")
        limit = len(found) if whole else config["rows_per_source"][found[0].family]
        kept += generator.sample(found, min(limit, len(found)))
    counts = {"unread": dict(unread), "by_source": {source: len(found) for source, found in sorted(by_source.items())}}
    return kept, counts


def evaluation_texts(folder: Path | None) -> dict[str, Sequence[str]]:
    """The documents of every dataset that lies in the folder, by dataset and split; what is not there is told."""
    from setscore.datasets import DATASETS, load_dataset
    from setscore.errors import DataFileError

    found, absent = dict[str, Sequence[str]](), list[str]()
    for name, source in DATASETS.items() if folder is not None else ():
        for split in source.sizes:
            try:
                found[f"{name} {split}"] = load_dataset(name, split, folder).texts
            except DataFileError:
                absent.append(f"{name} {split}")
    if folder is not None and not found:
        raise SystemExit(
            f"overlap check: {folder} holds none of {', '.join(DATASETS)} as `setscore evaluate` reads them."
        )
    if absent:
        print(f"overlap check: {folder} has no {', '.join(absent)}.")
    return found


def everyday_texts(folder: Path) -> dict[str, Sequence[str]]:
    """What stands in the everyday tests, by file: every string of a record that is longer than a label."""

    def strings(value: Any) -> Iterator[str]:
        if isinstance(value, str):
            yield value
        elif isinstance(value, list | dict):
            for part in value.values() if isinstance(value, dict) else value:
                yield from strings(part)

    return {
        path.name: [
            text
            for line in path.read_text(encoding="utf-8").splitlines()
            for text in strings(json.loads(line))
            if len(text.split()) > N
        ]
        for path in sorted(folder.glob("everyday*.jsonl"))
    }


def without_evaluation(rows: list[Row], evaluation: Iterable[str]) -> tuple[list[Row], dict[str, Any]]:
    """Rows without a copied text, and without a label worded as one of the evaluation sets."""
    ngrams, forbidden = evaluation_ngrams(evaluation), forbidden_wordings()
    copied: Counter[str] = Counter()
    worded: Counter[str] = Counter()

    def unwanted(wording: str) -> bool:
        """Whether it is a label of an evaluation set, or a name with a description of which one is."""
        return any(normal(part) in forbidden for part in (wording, *wording.removesuffix(")").split(" (", 1)))

    def allowed(labels: tuple[Label, ...]) -> tuple[Label, ...]:
        for word in (word for label in labels for word in label if unwanted(word)):
            worded[normal(word)] += 1
        return tuple(left for label in labels if (left := tuple(word for word in label if not unwanted(word))))

    clean = []
    for row, is_copy in zip(rows, copies((tuple(row_texts(row)) for row in rows), ngrams), strict=True):
        if is_copy:
            copied[row.source] += 1
            continue
        clean.append(replace(row, yes=allowed(row.yes), no=allowed(row.no)))
    return clean, {"documents": dict(copied), "wordings": dict(worded.most_common())}


def row_texts(row: Row) -> Iterator[str]:
    """The document of a row, and its questions and its answer where they are long enough to be copied text."""
    yield row.document
    others = [question for question, _ in row.asks] + ([] if row.answer is None else [row.answer])
    yield from (text for text in others if len(text.split()) > N)


def assemble(
    rows: list[Row], areas: Sequence[Sequence[str]], tokenizer: Tokenizer, config: Mapping[str, Any]
) -> tuple[Store, dict[Label, int]]:
    """The arrays of the rows, their labels and the phrase pool, topics of the areas last; and the labels' numbers."""
    settings = config["prepare"]
    texts, labels = Texts(), dict[Label, int]()
    documents = {document: n for n, document in enumerate(dict.fromkeys(row.document for row in rows))}
    sources = {source: n for n, source in enumerate(dict.fromkeys(row.source for row in rows))}

    def ask(question: str) -> int:
        return texts.number(f"Question: {question} Answer:")

    def label_numbers(found: tuple[Label, ...]) -> list[int]:
        return [labels.setdefault(label, len(labels)) for label in found]

    lists = {
        "row_yes": [label_numbers(row.yes) for row in rows],
        "row_no": [label_numbers(row.no) for row in rows],
        "row_asks": [[n for question, answer in row.asks for n in (ask(question), int(answer))] for row in rows],
        "row_questions": [[ask(question) for question in row.questions] for row in rows],
        "family_questions": [
            [ask(question) for question in config["questions"]["any"] + config["questions"][family]]
            for family in FAMILIES
        ],
        "labels": [[texts.number(word) for word in label] for label in labels],
    }
    names = {row.name: n for n, row in enumerate(rows) if row.name}
    answer = [-1 if row.answer is None else texts.number(row.answer) for row in rows]
    forbidden = forbidden_wordings()
    # written labels and statements would be half of the pool, and the cosine is no judge of them
    named_by = [row for row in rows if row.family not in ("written", "statement")]
    general = common_phrases(count_phrases(dict.fromkeys(row.document for row in named_by)), **settings["phrases"])
    of_rows = {label for row in named_by for label in (*row.yes, *row.no)}
    named = {word for label in of_rows for word in label if len(word.split()) <= 14}
    topics = [topic for topic in with_pairs(areas, **settings["topics"]) if normal(topic) not in forbidden]
    others = {phrase for phrase in (*general, *named) if normal(phrase) not in forbidden} - set(topics)
    pool = [texts.number(phrase) for phrase in (*sorted(others), *topics)]
    store = Store(
        documents=cut(tokenize(tokenizer, list(documents)), settings),
        texts=texts.tokens(tokenizer, settings["text_tokens"]),
        row_document=np.array([documents[row.document] for row in rows], dtype=np.int32),
        row_source=np.array([sources[row.source] for row in rows], dtype=np.int32),
        row_family=np.array([FAMILIES.index(row.family) for row in rows], dtype=np.int8),
        row_answer=np.array(answer, dtype=np.int32),
        row_twin=np.array([names.get(row.twin, -1) for row in rows], dtype=np.int32),
        pool=np.array(pool, dtype=np.int32),
        topics=np.array(len(topics)),
        sources=tuple(sources),
        **{name: Ragged.of(values) for name, values in lists.items()},
    )
    return store, labels


def cut(documents: list[list[int]], settings: Mapping[str, Any]) -> Ragged:
    """Documents to `document_tokens`, every seventh to `long_tokens`."""
    short, long = settings["document_tokens"], settings["long_tokens"]
    return Ragged.of([tokens[: long if n % 7 == 0 else short] for n, tokens in enumerate(documents)], np.uint16)


if __name__ == "__main__":
    main()
