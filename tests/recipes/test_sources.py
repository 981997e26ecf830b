"""Each converter on a small sample written here."""

import pytest

from recipes import HERE
from recipes.overlap import forbidden_wordings, normal
from recipes.sources import answers, labelled, natural, packages, running, titles
from recipes.sources.phrases import common_phrases, count_phrases
from recipes.sources.rows import Row
from recipes.sources.topics import load_topics, with_pairs

TOPICS = natural.parse_task(
    "task1",
    {
        "family": "topic",
        "pattern": "Question title: (?P<document>.*)",
        "labels": {"2": ["health", "illness and medicine"], "5": ["sport"], "9": None},
        "questions": ["Is this question about {label}?"],
    },
)
ENTAILMENT = natural.parse_task(
    "task2",
    {
        "pattern": "Premise: (?P<document>.*) <sep> Hypothesis: (?P<hypothesis>.*)",
        "questions": ["Does the text imply that {hypothesis}?"],
        "yes": ["entailment"],
        "no": ["neutral", "contradiction"],
    },
)


def record(text, *outputs):
    return {"task": "t", "input": text, "output": list(outputs)}


class TestNaturalInstructions:
    def test_a_number_becomes_its_meaning_and_the_other_labels_do_not_apply(self):
        row = natural.convert(record("Question title: Is running good for me?", "2"), TOPICS)
        assert row == Row(
            "task1",
            "Is running good for me?",
            "topic",
            yes=(("health", "illness and medicine"),),
            no=(("sport",),),
            questions=("Is this question about {label}?",),
        )

    def test_an_output_without_meaning_makes_every_label_a_no(self):
        row = natural.convert(record("Question title: Hm?", "9."), TOPICS)
        assert row.yes == ()
        assert row.no == (("health", "illness and medicine"), ("sport",))

    @pytest.mark.parametrize(
        ("output", "answer"), [("Entailment", True), ("neutral", False), ("CONTRADICTION.", False)]
    )
    def test_entailment_is_a_yes_no_question(self, output, answer):
        row = natural.convert(record("Premise: It rains. <sep> Hypothesis: The street is wet.", output), ENTAILMENT)
        assert (row.document, row.asks) == (
            "It rains.",
            (("Does the text imply that The street is wet?", answer),),
        )

    @pytest.mark.parametrize("bad", [record("no title here", "2"), record("Question title: x", "17")])
    def test_what_cannot_be_read_is_none(self, bad):
        assert natural.convert(bad, TOPICS) is None

    def test_options(self):
        task = natural.parse_task("task3", {"options": True})
        row = natural.convert(record("Which is a planet?\n(A)Mars (B)Moon (C) Sun", "A"), task)
        assert row.document == "Which is a planet?"
        assert (row.yes, row.no) == ((("Mars",),), (("Moon",), ("Sun",)))
        assert natural.convert(record("Which is a planet?\n(A)Mars (B)Moon", "E"), task) is None

    def test_several_outputs_in_one(self):
        task = natural.parse_task("task4", {"labels": {"a": ["first"], "b": ["second"], "c": ["third"]}, "split": ","})
        row = natural.convert(record("text", "a, c"), task)
        assert (row.yes, row.no) == ((("first",), ("third",)), (("second",),))

    @pytest.mark.parametrize(
        ("entry", "message"),
        [
            ({"label": {}}, "unknown field"),
            ({"family": "topic"}, "exactly one of"),
            ({"labels": {"a": ["x"]}, "family": "topics"}, "is not one of"),
            ({"labels": {"a": ["x"]}, "pattern": "x"}, "no group named document"),
            ({"labels": {"a": ["x"]}, "questions": ["Is it?"]}, "holds {label}"),
            ({"yes": ["a"], "no": ["b"]}, "needs at least one question"),
        ],
    )
    def test_a_mistake_in_a_description_names_the_task(self, entry, message):
        with pytest.raises(ValueError, match=f"task9: .*{message}"):
            natural.parse_task("task9", entry)

    def test_the_descriptions_of_the_recipe_can_all_be_read(self):
        tasks = natural.load_tasks(HERE / "tasks")
        assert len(tasks) > 300
        wordings = [word for task in tasks.values() for label in task.labels.values() for word in label]
        assert all(isinstance(word, str) and word.strip() for word in wordings)

    def test_a_task_described_twice_is_an_error(self, tmp_path):
        for name in ("a", "b"):
            (tmp_path / f"{name}.yaml").write_text("task1: {labels: {x: [y]}}\n")
        with pytest.raises(ValueError, match=r"b\.yaml: task1 is described twice"):
            natural.load_tasks(tmp_path)


def test_titles():
    row = titles.convert(record("Abstract: Rest helps.", "Rest-and-recovery.", "a " * 20))
    assert (row.document, row.yes) == ("Rest helps.", (("Rest and recovery",),))
    assert titles.convert(record("text", "")) is None


def test_headings_of_an_encyclopedia_are_labels():
    words = "w " * 30
    lines = [" = York City = \n", "short\n", " = = Early history = = \n", words, " = = Kit = = \n", words]
    rows = list(titles.headings(lines, source="wiki"))
    assert [row.yes for row in rows] == [(("York City",), ("Early history",)), (("York City",),)]


def test_wikitext_spacing_is_undone():
    assert titles.plain("17th @-@ place with 1 @,@ 000 and 2 @.@ 5") == "17th-place with 1,000 and 2.5"


@pytest.mark.parametrize(("answer", "labels"), [("a spoon", 1), ("Yes", 0), ("B", 0), ("a " * 9, 0)])
def test_answers(answer, labels):
    row = answers.convert_t0({"template": "x", "prompt": "What?", "completion": f"{answer}<|endoftext|>"})
    assert (row.source, row.answer, len(row.yes)) == ("t0_x", answer.strip(), labels)


def test_an_empty_answer_is_none():
    assert answers.convert_open(record("What?", " ")) is None
    assert answers.convert_open(record("What?", "Rain")).yes == (("Rain",),)


GROUPS = {"rec.autos": ("cars",), "sci.med": ("medicine",)}


class TestLabelled:
    def test_a_post_loses_header_and_quotes_and_keeps_its_subject_as_a_label(self):
        text = "From: a@b\nSubject: Re: RE: buying a used car?\n\nA. writes:\n> quoted\nThe brakes of mine are old and"
        row = labelled.convert_newsgroup({"group": "rec.autos", "text": text + " loud, so I sold it"}, GROUPS)
        assert row.document == "The brakes of mine are old and loud, so I sold it"
        assert row.yes == (("cars",), ("buying a used car",))
        assert row.no == (("medicine",),)

    def test_a_post_without_text_is_none(self):
        assert labelled.convert_newsgroup({"group": "rec.autos", "text": "From: x\n\n> quoted"}, GROUPS) is None

    def test_emotion_and_review(self):
        labels = {"fear": ("feeling afraid",), "pos": ("praise",)}
        assert labelled.convert_emotion({"text": "text", "emotion": "label_name"}, labels) is None
        assert labelled.convert_emotion({"text": "I shook", "emotion": "fear"}, labels).no == (("praise",),)
        assert labelled.convert_review({"text": "a<br />b", "label": "pos"}, labels).document == "a b"


def test_passages_end_at_headings():
    lines = ["# Title", "one two three", "# Next", "four five", "six seven eight", "nine"]
    rows = list(running.passages(lines, source="books", words=5))
    assert [row.document for row in rows] == ["four five six seven eight"]


def test_phrases_are_runs_between_stop_words():
    counts = count_phrases(["The central bank raised interest rates.", "A central bank, quickly formed"])
    assert counts["central bank"] == 2
    assert "bank raised interest rates" not in counts  # four words
    assert common_phrases(counts, least=2, most=9, keep=10) == ["bank", "central", "central bank"]
    assert "quickly" not in common_phrases(counts, least=1, most=9, keep=100)


def test_a_package_is_what_its_project_says_with_its_line_as_title():
    text = " A free ray tracer that draws pictures of scenes with light,\n shadow and glass. It is quick.\n"
    told = {
        "ray - tracer of light and shadow (tools)": f"{text} .\n This package has the tools.\n",
        "ray - development files": f"{text} .\n This package has the headers.\n",
        "every ray": " This metapackage depends on ray, and on nothing else at all, really.\n",
        "drawing": " Twelve words are the least that a text may have here.\n",
        "paint": " Twelve words are the least that a text may have here, friend.\n",
    }
    stanzas = [f"Package: x\nDescription-md5: 1\nDescription-en: {title}\n{lines}\n" for title, lines in told.items()]
    lines = "".join(stanzas).splitlines(keepends=True)
    assert list(packages.descriptions(lines, source="packages")) == [
        Row(
            "packages",
            "A free ray tracer that draws pictures of scenes with light, shadow and glass. It is quick.",
            "topic",
            (("tracer of light and shadow",),),
        ),
        Row("packages", "Twelve words are the least that a text may have here, friend.", "topic"),
    ]


class TestTopics:
    def test_words_of_a_forbidden_label_are_left_out(self, tmp_path):
        (tmp_path / "t.yaml").write_text("law: [Tax law, courts, law]\nmoney: [tax, taxis]\n")
        areas, out = load_topics(tmp_path / "t.yaml", {"tax law and customs", "fees"})
        assert (areas, out) == ([["courts"], ["taxis"]], ["Tax law", "law", "tax"])

    def test_pairs_stay_in_their_area_and_never_grow(self):
        found = with_pairs([["a", "b", "c and d"], ["e"]], pairs=2, seed=3)
        assert found == ["a", "a and b", "b", "b and a", "c and d", "e"]
        assert with_pairs([["a", "b"]], pairs=0, seed=3) == ["a", "b"]

    def test_no_topic_of_the_recipe_is_worded_like_an_evaluation_label(self):
        areas, out = load_topics(HERE / "topics.yaml", forbidden_wordings())
        topics = [normal(topic) for area in areas for topic in area]
        assert len(topics) == len(set(topics)) > 1000
        assert not set(topics) & forbidden_wordings()
        assert "education" in out
