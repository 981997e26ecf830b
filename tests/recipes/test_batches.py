"""Relations that every training example and batch must keep."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import yaml
from tokenizers import Tokenizer

from recipes import HERE
from recipes.batches import pack
from recipes.kinds import Examples
from recipes.prepare import assemble
from recipes.questions import Cosines
from recipes.sources.rows import FAMILIES, Row
from recipes.store import Store, tokenize
from recipes.vocabulary import LIST, Vocabulary
from setscore.backbones.mini import default_folder
from setscore.prompts import SET_LAYOUTS

CONFIG = yaml.safe_load((HERE / "config.yaml").read_text())
CONFIG["prepare"]["phrases"] = {"least": 1, "most": 99, "keep": 200}
LABELS = (("sunshine", "a clear sky"), ("rainfall",), ("a storm",), ("frost",), ("fog",))
AREAS = (("weather", "seasons of the year"), ("travel",))
LONG = "The long report of the weather office says that tomorrow will be wet in the north and dry in the south"


def rows():
    made = []
    for n in range(40):
        label, text = LABELS[n % 5], f"{LONG}, station {n}"
        others = tuple(other for other in LABELS if other != label)
        made.append(Row("weather", text, "topic", (label,), others, questions=("Is it {label} today?",)))
        made.append(Row("books", f"{text}, and the story of number {n} goes on for a while"))
        made.append(Row("t0_x", f"What is {n}?", yes=((f"number {n}",),), answer=f"It is number {n} of all"))
        made.append(Row("task7", text + " here", asks=((f"Is {n} even?", n % 2 == 0),)))
        made.append(Row("wikitext", text + " there", "topic", ((f"station {n}",),)))
        made.append(Row("task8", f"You are number {n}", "toxicity", (("a rude remark",),) if n % 2 else (), ()))
    return made


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.from_file(str(default_folder() / "tokenizer.json"))


@pytest.fixture(scope="module")
def store(tokenizer):
    return assemble(rows(), AREAS, tokenizer, CONFIG)[0]


@pytest.fixture(scope="module")
def examples(store, tokenizer):
    return make(store, tokenizer, seed=(1, 2))


def make(store, tokenizer, seed=(0,), **settings):
    random = np.random.default_rng(0)
    shape = (len(store.documents), 8)
    cosines = Cosines(random.integers(len(store.pool), size=shape), random.uniform(0, 0.6, shape).astype(np.float16))
    return Examples(store, cosines, Vocabulary.of(tokenizer), CONFIG["train"] | settings, seed)


def drawn(examples, kind, count=60):
    rows, _ = examples.rows[kind]
    return [x for x in (examples.kinds[kind](int(rows[n % len(rows)])) for n in range(count)) if x is not None]


def test_topics_end_the_pool(store, tokenizer):
    topics = [tokenizer.decode(store.texts[int(text)].tolist()) for text in store.pool[-int(store.topics) :]]
    pairs = ["seasons of the year", "seasons of the year and weather", "travel", "weather"]
    assert topics == [*pairs, "weather and seasons of the year"]


def test_the_store_survives_a_file(store, tmp_path):
    store.save(tmp_path / "s.npz")
    loaded = Store.load(tmp_path / "s.npz")
    assert loaded.sources == store.sources
    assert np.array_equal(loaded.row_asks.values, store.row_asks.values)
    assert loaded.topics == store.topics
    assert [x.tolist() for x in (loaded.documents[3], loaded.texts[5])] == [
        x.tolist() for x in (store.documents[3], store.texts[5])
    ]


@pytest.mark.parametrize("kind", ["labels", "asks", "titles", "phrases", "lists"])
def test_every_slot_is_a_mask_with_an_answer_between_no_and_yes(examples, kind):
    for example in drawn(examples, kind):
        assert example.slots
        for offset, answer in example.slots:
            assert example.tokens[offset] == examples.words.mask
            assert 0 <= answer <= 1


def test_a_question_goes_on_after_the_document_and_sees_only_its_segment(examples):
    for example in drawn(examples, "labels"):
        document = example.segments.count(1)
        for segment in set(example.segments) - {1}:
            positions = [p for p, s in zip(example.positions, example.segments, strict=True) if s == segment]
            assert positions == list(range(document, document + len(positions)))


def test_exact_examples_have_one_question_and_one_segment(store, tokenizer):
    for example in drawn(make(store, tokenizer, exact=1.0), "labels"):
        assert set(example.segments) == {1}
        assert len(example.slots) == 1
        assert example.embedding == -1  # its document has seen the question


def test_the_first_slot_of_a_group_is_its_only_yes(store, tokenizer):
    found = [x for x in drawn(make(store, tokenizer, exact=0.0, joined=0.0), "labels") if x.group]
    assert found
    for example in found:
        assert [example.slots[number][1] for number in example.group] == [1.0, 0.0, 0.0, 0.0, 0.0]


def test_this_or_that_names_a_label_that_changes_no_answer(store, tokenizer):
    """Each question holds one of "or"'s sides beside the label itself, and exactly the true label's is answered yes."""
    names = tokenize(tokenizer, [word for label in LABELS for word in label])
    for example in drawn(make(store, tokenizer, exact=0.0, joined=0.0, either=1.0, noise=0.0), "labels"):
        for (offset, answer), segment in zip(example.slots, sorted(set(example.segments) - {1}), strict=True):
            asked = [t for t, s in zip(example.tokens, example.segments, strict=True) if s == segment]
            if example.slots.index((offset, answer)) < 5:  # phrases of the pool follow the labels
                assert asked.count(tokenize(tokenizer, ["or"])[0][0]) == 1
                assert sum(holds(asked, name) for name in names) >= 1
        assert sum(answer == 1 for _, answer in example.slots[:5]) == 1


def holds(tokens, part):
    return any(tokens[n : n + len(part)] == part for n in range(len(tokens)))


def test_a_joined_document_has_the_labels_of_both(store, tokenizer):
    several = [sum(a == 1 for _, a in x.slots) for x in drawn(make(store, tokenizer, exact=0.0, joined=1.0), "labels")]
    assert max(several) == 2


@pytest.mark.parametrize("kind", ["running", "answers"])
def test_masked_tokens_are_remembered(examples, kind, tokenizer):
    words = examples.words
    for example in drawn(examples, kind):
        restored = list(example.tokens)
        for offset, token, weight in example.masked:
            assert restored[offset] == words.mask
            assert weight >= 1
            restored[offset] = token
        assert "[MASK]" not in tokenizer.decode(restored, skip_special_tokens=False) or kind == "answers"


def test_answers_leave_the_prompt_alone(store, tokenizer):
    for example in drawn(make(store, tokenizer, noise=0.0), "answers"):
        prompt = len(example.tokens) - example.length
        assert all(offset >= prompt for offset, _, _ in example.masked)


def test_the_mask_ratio_is_uniform(store, tokenizer):
    """The mean of 1 / weight is t's mean given that something was masked: about 1/2. Error rate of the test: 1e-6."""
    examples = make(store, tokenizer)
    ratios = [1 / example.masked[0][2] for example in drawn(examples, "running", 3000) if example.masked]
    assert abs(np.mean(ratios) - 0.5) < 0.03  # ten standard errors are 0.053; short texts lose a few small t
    assert abs(np.mean(np.array(ratios) < 0.25) - 0.25) < 0.05


def test_the_list_layout_is_the_papers(store, tokenizer):
    examples = make(store, tokenizer, inline=0.0)
    for example in drawn(examples, "lists", 10):
        text = tokenizer.decode(example.tokens, skip_special_tokens=False)
        assert text.startswith("[CLS] " + LIST.lower().replace(" :", ":").split(" document")[0])
        assert "labels : -" in text.replace(": -", ": -")
        answers = text.split("answers :")[1].replace("[SEP]", "").split(";")
        assert len(answers) == 5
        assert {answer.strip() for answer in answers} <= {"[MASK]", "yes", "no"}


def test_an_inline_answer_follows_its_label(store, tokenizer):
    for example in drawn(make(store, tokenizer, inline=1.0), "lists", 10):
        text = tokenizer.decode(example.tokens, skip_special_tokens=False)
        assert text.startswith("[CLS] decide whether each candidate label applies. document")
        items = text.split("labels :")[1].replace("[SEP]", "").split(" - ")[1:]
        assert len(items) == 5
        assert {item.rpartition(":")[2].strip() for item in items} <= {"[MASK]", "yes", "no"}


def test_inline_lists_are_written_as_the_package_asks_them(tokenizer):
    words, query = Vocabulary.of(tokenizer), SET_LAYOUTS["inline"].query("", ["sunshine", "rain"], [None, True])
    sunshine, rain = tokenize(tokenizer, ["sunshine", "rain"])
    first, _, second, _ = query.question
    assert tokenize(tokenizer, [query.prefix]) == [words.inline_prefix]
    assert tokenize(tokenizer, [first, second]) == [
        [*words.labels, *words.dash, *sunshine, *words.colon],
        [*words.dash, *rain, *words.colon],
    ]


def test_only_topics_are_left_to_the_cosine(examples, store, tokenizer):
    pool = [store.texts[int(text)].tolist() for text in store.pool]
    rude, sunny = tokenize(tokenizer, ["a rude remark", "sunshine"])
    assert not examples.questions.topical[pool.index(rude)]
    assert examples.questions.topical[pool.index(sunny)]


def test_insults_are_unlikely_in_an_encyclopedia(store, tokenizer):
    examples = make(store, tokenizer, exact=0.0, unlikely={"toxicity": [1.0, 0.02]})
    calm = [row for row in range(len(store.row_source)) if store.sources[store.row_source[row]] == "wikitext"]
    assert all(0.02 in [answer for _, answer in examples.titles(row).slots] for row in calm)
    angry = [row for row in range(len(store.row_source)) if store.sources[store.row_source[row]] == "weather"]
    assert examples.questions.unlikely(angry[0]) == []


def test_what_only_a_teacher_knows_is_left_open(store, tokenizer):
    rows, _ = make(store, tokenizer).rows["phrases"]
    for share, several in ((0.0, 0), (1.0, 2)):
        examples = make(store, tokenizer, exact=0.0, unknown=share)
        for row in rows[:20]:
            example = examples.phrases(int(row))
            opened = [offset for offset, answer in example.slots if np.isnan(answer)]
            assert len(opened) == several
            asked = [tokenizer.decode(example.tokens[offset - 12 : offset]) for offset in opened]
            assert all("a rude remark" in text or "number" in text for text in asked), "labels that name no topic"


def test_told_examples_ask_what_names_no_topic_and_more_of_the_familys_own(store, tokenizer):
    """Two families have labels that name no topic: rude remarks, and numbers."""
    examples = make(store, tokenizer, exact=0.0, noise=0.0)
    rows, _ = examples.rows["told"]
    rude, asked = Counter(), Counter()
    for row in rows:
        assert len(store.row_yes[int(row)]) + len(store.row_no[int(row)]) > 0
        example = examples.told(int(row))
        assert len(example.slots) == 6
        assert all(np.isnan(answer) for _, answer in example.slots)
        questions = tokenizer.decode([t for t, s in zip(example.tokens, example.segments, strict=True) if s > 1])
        assert not any(name in questions for name in ("sunshine", "rainfall", "frost", "station"))
        family = FAMILIES[int(store.row_family[row])]
        rude[family] += questions.count("a rude remark")
        asked[family] += 6
    share = {family: rude[family] / asked[family] for family in asked}
    assert 0.4 < share["topic"] < 0.6  # a half
    assert 0.65 < share["toxicity"] < 0.85  # three quarters
    assert 0.15 < share["other"] < 0.35  # a quarter


@pytest.fixture(scope="module")
def batch(store, tokenizer):
    return next(pack(iter(make(store, tokenizer)), 8, 256))


class TestPacking:
    def test_little_is_padding(self, batch):
        assert (batch.parts > 0).mean() > 0.9

    def test_parts_of_a_row_do_not_touch(self, batch):
        for row in batch.parts:
            changes = row[np.flatnonzero(np.diff(row)) + 1]
            assert len(set(changes.tolist())) == len(changes)  # no part comes back after another

    def test_what_is_learned_stands_where_it_is_said(self, batch, tokenizer):
        mask = tokenizer.token_to_id("[MASK]")
        assert (batch.tokens[batch.slots[:, 0], batch.slots[:, 1]] == mask).all()
        assert (batch.tokens[batch.masked[:, 0], batch.masked[:, 1]] == mask).all()
        assert len(batch.slots) == len(batch.yes)
        assert batch.groups.max(initial=-1) < len(batch.slots)
        for row, part, _ in batch.embeddings:
            assert ((batch.parts[row] == part) & (batch.segments[row] == 1)).any()

    def test_the_same_seed_gives_the_same_batch(self, store, tokenizer, batch):
        again = next(pack(iter(make(store, tokenizer)), 8, 256))
        assert np.array_equal(again.tokens, batch.tokens)
        other = next(pack(iter(make(store, tokenizer, seed=(5,))), 8, 256))
        assert not np.array_equal(other.tokens, batch.tokens)

    def test_nothing_is_lost_between_batches(self, store, tokenizer):
        """What did not fit into one batch is in the next one."""
        stream = iter(make(store, tokenizer))
        seen = []

        def watched():
            for number, example in enumerate(stream):
                seen.append(replace(example, embedding=number))
                yield seen[-1]

        batches = pack(watched(), 4, 256)
        placed = [int(n) for _ in range(6) for n in next(batches).embeddings[:, 2]]
        assert len(set(placed)) == len(placed)
        assert set(range(min(len(seen), 20))) <= set(placed)
