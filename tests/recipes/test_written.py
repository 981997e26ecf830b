"""Rows written by hand: reading them, keeping some apart, asking about them, and measuring weights on them."""

import json

import numpy as np
import pytest
import yaml
from tokenizers import Tokenizer

from recipes import HERE
from recipes.batches import pack
from recipes.kinds import Examples
from recipes.overlap import evaluation_ngrams, overlaps
from recipes.prepare import EVERYDAY, assemble, everyday_texts, without_evaluation
from recipes.questions import Cosines
from recipes.sources import inference, judged, written
from recipes.sources.rows import Row
from recipes.store import tokenize
from recipes.validate import measure_written, some
from recipes.vocabulary import Vocabulary
from setscore.backbones.mini import default_folder

CONFIG = yaml.safe_load((HERE / "config.yaml").read_text())
CONFIG["prepare"]["phrases"] = {"least": 1, "most": 99, "keep": 200}
FOLDER = HERE / "written"
REFUND = ["refund", "a request to get money back"]
THANKS = ["thanks", "the writer says thank you"]


def record(name, text="I want my money back", yes=(REFUND,), no=(THANKS,), **others):
    return {"id": name, "kind": "e-mail", "text": text, "yes": list(yes), "no": list(no), **others}


def write(folder, **files):
    for name, rows in files.items():
        lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n")


MISTAKES = {
    "no rows": ({}, "holds no written rows"),
    "no JSON": ({"a": ["{"]}, r"a\.jsonl, line 1: Expecting"),
    "no labels": ({"a": [record("a-1"), {"id": "a-2", "text": "x"}]}, r"a\.jsonl, line 2: yes and no missing"),
    "a bare label": ({"a": [record("a-1", yes=["refund"])]}, r"a\.jsonl, line 1: a label is a list of wordings"),
    "the same id": ({"a": [record("a-1")], "b": [record("a-1")]}, r"b\.jsonl, line 1: the id a-1 stands in .*a\."),
    "no twin": ({"a": [record("a-1", twin="a-9")]}, r"a\.jsonl, line 1: there is no row a-9 to be its twin"),
}


class TestReading:
    def test_a_row_has_its_writer_its_labels_and_its_twin(self):
        row = written.convert(record("old-shop-007", twin="old-shop-008"))
        assert row == Row(
            "written-old-shop",
            "I want my money back",
            "written",
            ((*REFUND, "refund (a request to get money back)"),),
            ((*THANKS, f"{THANKS[0]} ({THANKS[1]})"),),
            name="old-shop-007",
            twin="old-shop-008",
        )

    @pytest.mark.parametrize(("files", "message"), MISTAKES.values(), ids=MISTAKES)
    def test_what_is_wrong_is_said_with_its_place(self, tmp_path, files, message):
        write(tmp_path, **files)
        with pytest.raises(SystemExit, match=message):
            written.read(tmp_path)

    def test_about_a_tenth_is_kept_apart_and_twins_stay_together(self):
        rows = written.read(FOLDER)
        apart, by_name = [row for row in rows if written.kept_apart(row)], {row["id"]: row for row in rows}
        assert 0.08 < len(apart) / len(rows) < 0.12
        assert all(written.kept_apart(by_name[row["twin"]]) for row in apart if "twin" in row)
        trained = [row.name for row in written.for_training(FOLDER)]
        assert sorted([*trained, *(row["id"] for row in written.for_validation(FOLDER))]) == sorted(by_name)


class TestTheCorpus:
    def test_twins_point_at_each_other_and_some_label_moves(self):
        by_name = {row["id"]: row for row in written.read(FOLDER)}
        pairs = [(row, by_name[row["twin"]]) for row in by_name.values() if "twin" in row]
        assert all(other["twin"] == row["id"] for row, other in pairs)
        moved = [any(label in other["no"] for label in row["yes"]) for row, other in pairs]
        back = [any(label in row["no"] for label in other["yes"]) for row, other in pairs]
        assert all(one or other for one, other in zip(moved, back, strict=True))

    def test_no_label_both_applies_and_does_not(self):
        for row in written.read(FOLDER):
            assert not {tuple(label) for label in row["yes"]} & {tuple(label) for label in row["no"]}, row["id"]

    def test_no_row_is_an_everyday_test(self):
        texts = [text for found in everyday_texts(EVERYDAY).values() for text in found]
        assert len(texts) >= 30
        ngrams = evaluation_ngrams(texts)
        assert [row["id"] for row in written.read(FOLDER) if overlaps(row["text"], ngrams)] == []


def test_everyday_texts_are_found_wherever_they_stand(tmp_path):
    long = "nine words are one more than a label has"
    (tmp_path / "everyday_pairs.jsonl").write_text(json.dumps({"pair": [{"text": long}, {"text": "short"}]}) + "\n")
    (tmp_path / "other.jsonl").write_text("{}\n")
    assert everyday_texts(tmp_path) == {"everyday_pairs.jsonl": [long]}


def test_a_written_row_that_copies_a_test_is_left_out_and_its_twin_has_none(tokenizer):
    copied = "please send the money for the broken lamp back to my account by friday"
    rows = [
        written.convert(record("a-1", copied, twin="a-2")),
        written.convert(record("a-2", "keep the money", twin="a-1")),
    ]
    clean, removed = without_evaluation(rows, [copied])
    assert removed["documents"] == {"written-a": 1}
    store, _ = assemble(clean, (), tokenizer, CONFIG)
    assert store.row_twin.tolist() == [-1]


class TestInference:
    def test_the_sentences_of_a_caption_are_its_labels(self):
        pairs = [("A man sleeps.", "entailment"), ("He runs", "contradiction"), ("He dreams", "neutral"), ("?", "-")]
        records = [{"premise": "A man naps. ", "hypothesis": text, "label": label} for text, label in pairs]
        assert list(inference.captions(records)) == [
            None,
            Row("snli", "A man naps.", "statement", (("A man sleeps",),), (("He runs",), ("He dreams",))),
        ]

    def test_a_question_keeps_its_answer(self):
        row = inference.convert_question({"question": "is it wet", "passage": "Rain -- It is wet.", "answer": True})
        assert (row.source, row.document) == ("boolq", "Rain. It is wet.")
        assert row.asks == (("is it wet?", True), ("According to the text, is it wet?", True))
        assert inference.convert_question({"question": "is it wet", "passage": "Rain", "answer": "yes"}) is None


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.from_file(str(default_folder() / "tokenizer.json"))


def label(name):
    return (name, f"the long wording of {name}", f"the writer talks about {name}")


def made_rows():
    """Two twins between which "apples" moves, a row of its own, and one row of every other kind."""
    found = [
        Row("written-a", "we sell apples here", "written", (label("apples"),), (label("pears"),), name="1", twin="2"),
        Row("written-a", "we sell no apples", "written", (label("pears"),), (label("apples"),), name="2", twin="1"),
        Row("written-a", "hello there", "written", (), tuple(label(f"item{n}") for n in range(12)), name="3"),
        Row("snli", "A man sleeps", "statement", (("a man rests",),), (("a man runs",), ("it rains",))),
        Row("boolq", "Rain is wet", asks=(("is it wet?", True),)),
    ]
    text = "a long text about the weather of the north that a cosine may judge, number"
    return found + [Row("rude", f"{text} {n}", "toxicity", (("a rude remark",),), (("praise",),)) for n in range(5)]


@pytest.fixture(scope="module")
def store(tokenizer):
    return assemble(made_rows(), (), tokenizer, CONFIG)[0]


def make(store, tokenizer, seed=(0,), **settings):
    shape = (len(store.documents), 4)
    cosines = Cosines(np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.float16))
    written_settings = CONFIG["train"]["written"] | settings.pop("written", {})
    quiet = {"exact": 0.0, "noise": 0.0, "written": written_settings} | settings
    return Examples(store, cosines, Vocabulary.of(tokenizer), CONFIG["train"] | quiet, seed)


def asked(example, tokenizer):
    """The questions of an example as text, with their answers."""
    segments = sorted(set(example.segments) - {1})
    texts = [
        tokenizer.decode([t for t, s in zip(example.tokens, example.segments, strict=True) if s == segment])
        for segment in segments
    ]
    return list(zip(texts, [answer for _, answer in example.slots], strict=True))


class TestWrittenExamples:
    def test_twins_come_together_and_what_moves_is_asked_in_the_same_words(self, store, tokenizer):
        for seed in range(20):
            examples = make(store, tokenizer, (seed,), written={"others": 0, "both": 0.0})
            first, (second,) = examples.written(0), examples.waiting
            ours, theirs = dict(asked(first, tokenizer)), dict(asked(second, tokenizer))
            assert ours.keys() == theirs.keys()
            assert len(ours) == 2
            assert all({ours[question], theirs[question]} == {0.0, 1.0} for question in ours)

    def test_a_batch_knows_which_slots_put_one_question_to_both_twins(self, store, tokenizer):
        examples = make(store, tokenizer, kinds={"written": 1.0}, written={"both": 0.0})
        batch = next(pack(iter(examples), 8, 256))

        def question(slot):
            row, column = batch.slots[slot]
            of_it = [part[row] == part[row, column] for part in (batch.parts, batch.segments)]
            return tokenizer.decode(batch.tokens[row][of_it[0] & of_it[1]].tolist(), skip_special_tokens=False)

        assert len(batch.twins) > 5
        assert (batch.yes[batch.twins] == [1.0, 0.0]).all()
        for one, other in batch.twins:
            assert question(one) == question(other)
            assert tuple(batch.slots[one]) != tuple(batch.slots[other])

    def test_a_twin_is_yielded_next(self, store, tokenizer):
        examples = make(store, tokenizer, kinds={"written": 1.0})
        stream = (example for example in examples if example.slots)
        documents = [example.embedding for example, _ in zip(stream, range(300), strict=False)]
        pairs = [(0, 1), (1, 0)]
        for n, document in enumerate(documents[:-1]):
            if document in (0, 1) and (n == 0 or documents[n - 1] not in (0, 1)):
                assert (document, documents[n + 1]) in pairs
        counts = np.bincount(documents, minlength=3)
        assert counts[0] == pytest.approx(100, abs=35)  # of 300, each of three rows as often: twins are no more
        assert counts[2] == pytest.approx(100, abs=35)

    def test_at_most_so_many_labels_and_some_of_others(self, store, tokenizer):
        examples = make(store, tokenizer, written={"labels": 7, "others": 2, "chance": 0.04})
        for _ in range(20):
            answers = [answer for _, answer in examples.written(2).slots]
            assert answers.count(0.0) == 7
            assert set(answers[7:]) <= {0.04}
            assert len(answers) <= 9

    @pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
    def test_names_are_asked_in_a_share_of_the_draws(self, store, tokenizer, share):
        examples = make(store, tokenizer, written={"short": share, "both": 0.0, "others": 0})
        questions = [text for _ in range(40) for text, _ in asked(examples.written(2), tokenizer)]
        long = np.mean(["wording of" in text or "the writer talks" in text for text in questions])
        assert long == pytest.approx(1 - share, abs=0.1)

    def test_two_wordings_of_a_label_are_known_to_mean_the_same(self, store, tokenizer):
        examples = make(store, tokenizer, written={"both": 1.0, "others": 0})
        example = examples.written(2)
        questions = asked(example, tokenizer)
        assert example.same
        for one, other in example.same:
            named = [next(f"item{n}" for n in range(11, -1, -1) if f"item{n}" in questions[k][0]) for k in (one, other)]
            assert named[0] == named[1]
            assert questions[one][0] != questions[other][0]

    @pytest.mark.parametrize(("kind", "rows"), [("written", [0, 1, 2]), ("snli", [3]), ("boolq", [4])])
    def test_their_rows_are_of_no_other_kind(self, store, tokenizer, kind, rows):
        found = make(store, tokenizer).rows
        assert found[kind][0].tolist() == rows
        others = [other for other in found if other not in ("written", "snli", "boolq")]
        assert not any(set(rows) & set(found[other][0].tolist()) for other in others)

    def test_told_examples_ask_for_written_labels_in_two_wordings(self, store, tokenizer):
        example = make(store, tokenizer, wordings=1.0).told(5)
        assert len(example.slots) == 6
        assert example.same == [(0, 1), (2, 3), (4, 5)]
        assert all(np.isnan(answer) for _, answer in example.slots)
        assert make(store, tokenizer, wordings=0.0).told(5).same == []

    def test_neither_written_labels_nor_statements_are_phrases(self, store, tokenizer):
        pool = [store.texts[int(text)].tolist() for text in store.pool]
        apples, resting, praise = tokenize(tokenizer, ["apples", "a man rests", "praise"])
        assert apples not in pool
        assert resting not in pool
        assert praise in pool


def test_measure_written():
    rows = [
        record("a-1", yes=[["x", "y"]], no=[["z"]], twin="a-2"),
        record("a-2", yes=[["z"]], no=[["x", "y"]], twin="a-1"),
    ]
    odds = [{"x": 2.0, "y": 1.0, "z": 0.5, "x (y)": 1.0}, {"x": 1.0, "y": -1.0, "z": 3.0, "x (y)": -1.0}]
    found = measure_written(odds, rows)
    assert found["accuracy"] == pytest.approx(100 * 4 / 6)  # z of the first and x of the second are wrong
    assert found["micro_f1"] == pytest.approx(200 * 3 / (5 + 3))  # said of five wordings, true of three
    assert found["wordings_alike"] == pytest.approx(75)
    assert found["twins_ranked"] == pytest.approx(100)
    assert found["twins_decided"] == pytest.approx(100 / 3)  # y alone
    assert found["together_f1"] == pytest.approx(200 * 2 / (3 + 2))  # x (y) is right on both sides, z on one
    assert set(measure_written(odds[:1], rows[:1])) == {"accuracy", "wordings_alike", "micro_f1", "together_f1"}


JUDGED = (
    '{"labels": {"a": ["rain", "wet weather"], "b": ["sport", "a match"], "c": ["anger", "an angry writer"]}}',
    '{"text": "DIGEST", "yes": ["a"], "unsure": ["c"]}',
    '{"text": "0000000000000000", "yes": [], "unsure": []}',
)


class TestJudged:
    def read(self, folder, lines, texts=("It rains.",)):
        written_lines = [line.replace("DIGEST", judged.digest("It rains.")) for line in lines]
        (folder / "town.jsonl").write_text("\n".join(written_lines) + "\n")
        return judged.records(folder, texts)

    def test_labels_of_the_set_apply_or_do_not_unless_readers_may_disagree(self, tmp_path):
        (record,), absent = self.read(tmp_path, JUDGED)
        assert absent == 1
        assert (record["text"], record["yes"], record["no"]) == (
            "It rains.", [["rain", "wet weather"]], [["sport", "a match"]])  # fmt: skip

    def test_texts_of_one_set_are_kept_apart_together(self, tmp_path):
        lines = [line for n in range(60) for line in (JUDGED[0], JUDGED[1], JUDGED[1])]
        found, _ = self.read(tmp_path, lines)
        apart = [record["id"] for record in judged.for_validation(found)]
        assert 0 < len(apart) < 30
        assert all(apart.count(name) == 2 for name in apart)
        assert len(list(judged.for_training(found))) == 120 - len(apart)

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ("{", "line 2"),
            ('{"text": "x", "yes": ["z"], "unsure": []}', "line 2: z is not in the label set before it: a, b, c"),
            ('{"text": "x", "yes": []}', "neither a label set nor a judged text"),
        ],
    )
    def test_what_is_wrong_is_said(self, tmp_path, line, message):
        with pytest.raises(SystemExit, match=message):
            self.read(tmp_path, [JUDGED[0], line])

    def test_the_judged_files_are_sound(self):
        for path in sorted((HERE / "judged").glob("*.jsonl")):
            entries = [json.loads(line) for line in path.read_text().splitlines()]
            digests = [entry["text"] for entry in entries if "text" in entry]
            assert len(digests) == len(set(digests)) > 100
            wordings = [
                w for entry in entries if "labels" in entry for label in entry["labels"].values() for w in label
            ]
            assert all(2 <= len(wording) <= 140 for wording in wordings)
        assert judged.records(HERE / "judged", [])[0] == []


def test_the_card_counts_what_is_there():
    """recipes/written/README.md, of both corpora."""
    card = (FOLDER / "README.md").read_text(encoding="utf-8")
    rows = written.read(FOLDER)
    asked, apply = sum(len(row["yes"]) + len(row["no"]) for row in rows), sum(len(row["yes"]) for row in rows)
    files = len(list(FOLDER.glob("*.jsonl")))
    assert f"| {files} | {len(rows):,} | {asked:,} | {apply:,} |" in card
    assert f"for {sum('twin' in row for row in rows):,} rows `twin`" in card
    assert f"{sum(not row['yes'] for row in rows):,} texts have\nno label that applies" in card
    paths, texts, asked, apply = sorted((HERE / "judged").glob("*.jsonl")), 0, 0, 0
    for path in paths:
        labels = 0
        for entry in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            labels = len(entry["labels"]) if "labels" in entry else labels
            if "text" in entry:
                texts, apply = texts + 1, apply + len(entry["yes"])
                asked += labels - len(entry["unsure"])
    assert f"| {len(paths)} | {texts:,} | {asked:,} | {apply:,} |" in card


def test_some_rows_are_of_all_writers_and_twins_stay_together():
    rows = [record(f"{name}-{n:03}", twin=f"{name}-{n ^ 1:03}") for name in "abcd" for n in range(100)]
    drawn = [row["id"] for row in some(rows, 80)]
    assert len(drawn) == 80
    assert {name[0] for name in drawn} == set("abcd")
    assert all(f"{name[:2]}{int(name[2:]) ^ 1:03}" in drawn for name in drawn)
    assert len(some(rows, None)) == 400
