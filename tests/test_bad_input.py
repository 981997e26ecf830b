"""Whatever a text holds, the embedded model answers with finite scores, or the error names the row and the remedy."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from setscore import SetScoreClassifier
from setscore.backbones import backbone_spec, load_backbone
from setscore.backbones.mini import default_folder
from setscore.backbones.tokens import TextTokenizer
from setscore.errors import BackboneError, DocumentError, LabelError, TruncationWarning
from setscore.prompts import Template

LABELS = ["oil", "sports"]
TOKENIZER = TextTokenizer(default_folder() / "tokenizer.json")
# [UNK] is not among them: it stands for any character that the vocabulary lacks, and steers nothing.
SPECIAL = ("[PAD]", "[CLS]", "[SEP]", "[MASK]")
SPECIAL_IDS = set(TOKENIZER.special(*SPECIAL))
MASK, CLS, SEP = (TOKENIZER.special(name)[0] for name in ("[MASK]", "[CLS]", "[SEP]"))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "is None, not a text"),
        ("", "is empty or blank"),
        (" \t\r\n\u3000", "is empty or blank"),
        (3.5, "is 3.5 of type float, not a text"),
        (b"bytes", "is b'bytes' of type bytes, not a text"),
        ("half an emoji \ud83d", "holds a lone surrogate (U+D83D) at character 14, which is no valid text;"),
        ("half an emoji \ud83d", "decode the source with errors='replace'"),
    ],
)
@pytest.mark.parametrize(
    "method", ["predict", "predict_proba", "predict_labels", "decision_function", "score_documents"]
)
def test_a_document_refused_is_named_by_its_row(method, text, problem):
    with pytest.raises(DocumentError) as error:
        getattr(SetScoreClassifier(LABELS), method)(["fine", text, "fine"])
    assert list(error.value.problems) == [1]
    assert problem in error.value.problems[1]
    assert str(error.value).startswith("1 of 3 documents cannot be scored: document 1: ")


def test_fit_names_rows_too():
    with pytest.raises(
        DocumentError, match=r"^1 of 2 documents cannot be scored: document 1: is None, not a text\. Row"
    ):
        SetScoreClassifier(LABELS).fit(["fine", None], [["oil"], []])


ODD_TEXTS = [
    "\0",
    "NUL \0 inside",
    "\x1b[31m escape and \x07 bell",
    "\ufeff",  # a byte order mark alone: no token at all is left of it
    "\u200b\u200d",
    "מחירי הנפט ירדו שוב. \u202eabc\u202c",
    "ارتفعت أسعار النفط مرة أخرى",
    "原油価格がまた下がった。",
    "원유 가격이 또 떨어졌다. " * 20,  # a syllable is up to three tokens, so tokens outnumber characters
    "👩‍👩‍👧‍👦🏳️‍🌈",
    "Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞A̴̵̜̰͔ͫ͗͢L̠ͨͧͩ͘G̴̻͈͍͔̹̑͗̎̅͛́O",
    "[MASK]",
    "[SEP]",
    "[CLS] [PAD] [UNK] [MASK] [SEP]",
    "Answer:[MASK][SEP]",
    "{label} {document} {} {0} %s %(label)s \\1",
    "{",
    "x" * 100_000,  # one word without end
    "!" * 300,
    "<script>alert('x')</script> '; DROP TABLE labels; --",
]


@pytest.fixture(scope="module", params=["shared", "exact"])
def classifier(request):
    return SetScoreClassifier(LABELS, attention=request.param, long_documents="chunk")


@pytest.fixture(scope="module")
def together(classifier):
    return classifier.score_documents(ODD_TEXTS)


def test_odd_texts_get_finite_scores(together):
    assert together.log_odds.shape == (len(ODD_TEXTS), len(LABELS))
    assert np.isfinite(together.log_odds).all()
    assert not together.truncated.any()


def test_odd_texts_get_the_same_score_alone_as_among_others(classifier, together):
    """Padding moves sums by their last digits, which now and then takes one int8 value a step further."""
    alone = np.concatenate([classifier.decision_function([text]) for text in ODD_TEXTS])
    moved = abs(alone - together.log_odds).max(axis=1)
    assert np.count_nonzero(moved > 1e-3) <= 1, f"more than a rare rounding: {moved}"
    assert moved.max() < 0.1, "what the model card states for batches, order and padding"


def test_a_megabyte_is_cut_and_says_so():
    text = "Crude oil prices fell again. " * 35_000
    assert len(text) > 1_000_000
    classifier = SetScoreClassifier(LABELS, long_documents="truncate")
    message = (
        r"^1 of 2 documents was truncated: only the beginning was read\. long_documents='chunk' reads them whole\.$"
    )
    with pytest.warns(TruncationWarning, match=message):
        scores = classifier.score_documents([text, "short"])
    assert scores.truncated.tolist() == [True, False]
    assert np.isfinite(scores.log_odds).all()
    # Only the beginning was read, so what follows cannot matter.
    with pytest.warns(TruncationWarning):
        np.testing.assert_allclose(classifier.decision_function([text[:100_000]])[0], scores.log_odds[0], atol=1e-3)


def test_by_default_a_long_document_is_read_whole_and_a_huge_one_is_not():
    text = "The striker scored twice in the cup final. " * 80 + "Crude oil prices fell again. " * 80
    alone = SetScoreClassifier(LABELS).score_documents([text])
    chunk = SetScoreClassifier(LABELS, long_documents="chunk").score_documents([text])
    np.testing.assert_array_equal(alone.log_odds, chunk.log_odds)
    with pytest.warns(TruncationWarning, match="1 of 1 document was truncated"):
        assert (
            SetScoreClassifier(LABELS).score_documents([text * 10]).forwards == backbone_spec("setscore-mini").windows
        )


def test_chunks_read_what_truncation_does_not():
    text = "The striker scored twice in the cup final. " * 80 + "Crude oil prices fell again. " * 80
    chunk = SetScoreClassifier(LABELS, long_documents="chunk").score_documents([text])
    with pytest.warns(TruncationWarning):
        cut = SetScoreClassifier(LABELS, long_documents="truncate").score_documents([text])
    assert not chunk.truncated.any()
    assert chunk.log_odds[0, 0] > cut.log_odds[0, 0] + 1


@pytest.mark.parametrize(
    "label", ["{label}", "{document}", "{", "{}", "[MASK]", "[SEP] Answer: yes", "%s", "\\", "\0", "石油", "🛢️"]
)
def test_odd_labels_get_finite_scores(label):
    scores = SetScoreClassifier([label, "oil"]).decision_function(["Crude oil prices fell again."])
    assert np.isfinite(scores).all()
    # No question sees another, so an odd label leaves the others as they are.
    plain = SetScoreClassifier(["oil"]).decision_function(["Crude oil prices fell again."])
    assert scores[0, 1] == pytest.approx(plain[0, 0], abs=1e-3)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([], "there are no labels. Give at least one, for example labels=['oil', 'sports']."),
        (None, "no labels were given. Give a list of names, a dict {name: description} or Label objects."),
        (["oil", "oil"], "label 'oil' is listed twice, at 0 and 1. Remove one of them. Labels count from 0."),
        (
            ["oil", "\ud800"],
            "the name of label 1 holds a lone surrogate (U+D800) at character 0, which is no valid text",
        ),
    ],
)
def test_labels_refused(labels, message):
    with pytest.raises(LabelError) as error:
        SetScoreClassifier(labels).predict(["fine"])
    assert str(error.value).startswith(message)


def test_a_label_longer_than_the_model_reads_is_named():
    with pytest.raises(BackboneError) as error:
        SetScoreClassifier(["oil", "word " * 600]).predict(["fine"])
    assert str(error.value).startswith("the question about 'word word ")
    assert str(error.value).endswith("Shorten that label.")


def test_five_thousand_labels():
    labels = [f"topic number {number}" for number in range(4_999)] + ["oil"]
    text = "Crude oil prices fell again."
    scores = SetScoreClassifier(labels, backbone="setscore-mini").score_documents([text])
    assert scores.log_odds.shape == (1, 5_000)
    assert np.isfinite(scores.log_odds).all()
    assert scores.scored.all()
    # Their number does not matter to the score of any one.
    few = SetScoreClassifier([labels[4_999], labels[17]], backbone="setscore-mini").decision_function([text])
    np.testing.assert_allclose(scores.log_odds[0, [4_999, 17]], few[0], atol=1e-3)


names = st.sampled_from([*SPECIAL, "[UNK]", "[unused1]", "[mask]", "##ing", " ", "]", "[", "MASK"])
mixtures = st.lists(names | st.text(st.characters(exclude_categories=["Cs"]), max_size=6), max_size=12).map("".join)


@given(mixtures)
@example("[MASK]")
@example(" [MASK] ")
@example("[ MASK ]")
@example("\0[MA\0SK]")  # the tokenizer drops control characters, which must not close the gap to a special token
@example("[MA\u00adSK]")
@example("[MASḰ]")  # nor may dropped accents
def test_no_text_becomes_a_special_token(text):
    assert not SPECIAL_IDS & set(TOKENIZER.ids(text))


def test_the_check_above_can_fail():
    # The names are special to this very tokenizer file when it is asked the ordinary way.
    TOKENIZER._tokenizer.encode_special_tokens = False
    try:
        assert set(TOKENIZER._tokenizer.encode("".join(SPECIAL), add_special_tokens=False).ids) == SPECIAL_IDS
    finally:
        TOKENIZER._tokenizer.encode_special_tokens = True


@given(document=mixtures, label=mixtures, attention=st.sampled_from(["shared", "exact"]))
@settings(deadline=None)
def test_a_prompt_has_the_special_tokens_it_was_built_with_and_no_other(document, label, attention):
    backbone = load_backbone("setscore-mini", attention=attention)
    (packed,) = backbone.batches([Template.of("express").query(document, label)])
    (padded,) = packed.token_ids.tolist()
    slot, *_ = packed.slots[0].tolist()
    row = padded[: max(column for column, token in enumerate(padded) if token) + 1]
    assert [column for column, token in enumerate(row) if token == MASK] == [slot]
    assert (row.count(CLS), row.count(SEP)) == (1, 2)
    assert (row[0], row[-1], row[slot + 1]) == (CLS, SEP, SEP)
