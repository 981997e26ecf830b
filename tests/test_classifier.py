"""The classifier as scikit-learn sees it: fit, predict, clone, search, and what it refuses.

`test_classifier_scores.py` has the scores themselves, `test_classifier_save.py` saving and loading.
"""

import pickle

import numpy as np
import pandas as pd
import pytest
from fakes import FakeBackbone
from scipy.sparse import csr_matrix
from scipy.special import expit
from sklearn.base import clone, is_classifier
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from setscore import (
    Document,
    LabelSet,
    SetScoreClassifier,
    Template,
    Verbalizer,
    load_backbone,
)
from setscore.calibration import PaperCalibration, PlattCalibration
from setscore.errors import BackboneError, DocumentError, LabelError, SetScoreError, TemplateError

LABELS = ["oil", "sports", "music", "crude oil prices"]
DOCUMENTS = [
    "Crude oil prices fell again on Monday.",
    "The match ended in a draw, and sports fans went home.",
    "New music from an old band.",
    "Music at sports events pays well, unlike oil.",
    "Nothing of interest happened here today.",
    "Oil oil oil.",
]
GOLD = [{"oil", "crude oil prices"}, {"sports"}, {"music"}, {"music", "sports"}, set(), {"oil"}]
INDICATOR = np.array([[name in names for name in LABELS] for names in GOLD]).astype(int)


def classifier(labels=LABELS, **options):
    return SetScoreClassifier(labels, **{"backbone": FakeBackbone(), **options})


def test_works_before_fit_with_threshold_one_half():
    model = SetScoreClassifier(["oil", "sports"])
    documents = ["The price of crude oil fell again.", "The team won the football match."]
    assert model.predict_labels(documents) == [{"oil"}, {"sports"}]
    np.testing.assert_array_equal(model.predict(DOCUMENTS), model.predict_proba(DOCUMENTS) >= 0.5)


def test_before_fit_a_backbone_without_numbers_of_its_own_is_taken_at_its_word():
    model = classifier()
    np.testing.assert_array_equal(model.predict_proba(DOCUMENTS), expit(model.decision_function(DOCUMENTS)))


@pytest.mark.parametrize("fitted", [False, True])
def test_the_answers_agree_with_each_other(fitted):
    model = classifier(threshold=0.3, head="none")
    if fitted:
        model.fit(DOCUMENTS, GOLD)
    calibration = model.current_calibration()
    assert calibration is model.calibration_ if fitted else calibration.thresholds_.tolist() == [0.3] * 4
    log_odds, probabilities = model.decision_function(DOCUMENTS), model.predict_proba(DOCUMENTS)
    decisions = model.predict(DOCUMENTS)
    assert log_odds.shape == probabilities.shape == decisions.shape == (6, 4)
    assert decisions.dtype == np.int64
    np.testing.assert_array_equal(probabilities, calibration.transform(log_odds))
    np.testing.assert_array_equal(decisions, probabilities >= calibration.thresholds_)
    expected = [{LABELS[i] for i in range(4) if row[i]} for row in decisions]
    assert model.predict_labels(DOCUMENTS) == expected
    np.testing.assert_array_equal(model.score_documents(DOCUMENTS).log_odds, log_odds)
    assert model.classes_.tolist() == LABELS


def test_fit_does_not_lower_the_micro_f1_of_what_it_was_fitted_on():
    before, after = classifier(threshold=0.99), classifier(threshold=0.99).fit(DOCUMENTS, GOLD)
    reached = [f1_score(INDICATOR, model.predict(DOCUMENTS), average="micro") for model in (before, after)]
    assert reached[0] < reached[1]


def test_the_calibration_is_chosen_by_name_or_given_as_an_object():
    by_name = classifier(calibration="paper").fit(DOCUMENTS, GOLD)
    assert isinstance(by_name.calibration_, PaperCalibration)
    given = PlattCalibration(objective="cost", cost=(1.0, 3.0), most=1)
    model = classifier(calibration=given).fit(DOCUMENTS, GOLD)
    assert model.calibration_.get_params() == given.get_params()
    assert not hasattr(given, "thresholds_")  # the object given stays as it was
    assert (model.predict(DOCUMENTS).sum(axis=1) <= 1).all()
    assert model.calibration_.fitted_on(model.decision_function(DOCUMENTS), INDICATOR)
    with pytest.raises(SetScoreError, match=r"unknown calibration 'papr'\. Did you mean 'paper'"):
        classifier(calibration="papr").fit(DOCUMENTS, GOLD)


@pytest.mark.parametrize(
    "gold",
    [
        INDICATOR,
        INDICATOR.tolist(),
        INDICATOR.astype(bool),
        csr_matrix(INDICATOR),
        pd.DataFrame(INDICATOR, columns=LABELS),
        [sorted(names) for names in GOLD],
        [tuple(names) for names in GOLD],
        pd.Series([list(names) for names in GOLD]),
    ],
    ids=["array", "lists", "bool", "sparse", "frame", "names", "tuples", "series"],
)
def test_every_form_of_gold_fits_the_same(gold):
    assert (
        classifier().fit(DOCUMENTS, gold).calibration_.state() == classifier().fit(DOCUMENTS, GOLD).calibration_.state()
    )


def test_without_labels_the_names_come_from_fit():
    model = classifier(None).fit(DOCUMENTS, GOLD)
    assert model.classes_.tolist() == sorted(LABELS)
    given_names = classifier(sorted(LABELS)).fit(DOCUMENTS, GOLD)
    np.testing.assert_array_equal(model.predict_proba(DOCUMENTS), given_names.predict_proba(DOCUMENTS))


def test_without_labels_and_fit_every_method_says_so_and_the_attribute_is_absent():
    model = SetScoreClassifier()
    for method in (model.predict, model.predict_proba, model.decision_function, model.predict_labels):
        with pytest.raises(LabelError, match=r"no labels were given\. Give a list of names"):
            method(DOCUMENTS)
    assert not hasattr(model, "classes_")
    assert repr(model) == "SetScoreClassifier()"


def test_labels_of_every_form_score_the_same():
    scores = classifier(LABELS).decision_function(DOCUMENTS)
    for labels in (tuple(LABELS), dict.fromkeys(LABELS), LabelSet.of(LABELS), np.array(LABELS, dtype=object)):
        np.testing.assert_array_equal(classifier(labels).decision_function(DOCUMENTS), scores)


def test_documents_of_every_form_score_the_same():
    scores = classifier().decision_function(DOCUMENTS)
    series, array = pd.Series(DOCUMENTS, index=range(10, 16)), np.array(DOCUMENTS)
    records = [Document(text, id=str(i)) for i, text in enumerate(DOCUMENTS)]
    for documents in (tuple(DOCUMENTS), series, array, array.astype(object), iter(DOCUMENTS), records):
        np.testing.assert_array_equal(classifier().decision_function(documents), scores)


def test_clone_params_and_repr():
    options = {"template": Template.of("case-about"), "verbalizer": Verbalizer("yes", "no"), "threshold": 0.25}
    model = classifier(LABELS, **options).fit(DOCUMENTS, GOLD)
    copy = clone(model)
    assert not hasattr(copy, "calibration_")
    assert {name: copy.get_params()[name] for name in options} == options
    assert copy.set_params(threshold=0.75, pool="mean").get_params()["threshold"] == 0.75
    assert model.threshold == 0.25
    with pytest.raises(ValueError, match=r"unknown option of SetScoreClassifier 'temperature'\. Did you mean"):
        model.set_params(temperature=2)
    assert repr(SetScoreClassifier(["oil"], threshold=0.4)) == "SetScoreClassifier(labels=['oil'], threshold=0.4)"


def test_a_loaded_backbone_can_be_shared_and_cloned():
    backbone = load_backbone("setscore-mini")
    model = clone(SetScoreClassifier(["oil", "sports"], backbone=backbone))
    assert model.backbone is backbone
    by_name = SetScoreClassifier(["oil", "sports"], backbone="setscore-mini").decision_function(DOCUMENTS)
    np.testing.assert_array_equal(model.decision_function(DOCUMENTS), by_name)


@pytest.mark.parametrize("options", [{"attention": "exact"}, {"verbalizer": "true/false"}])
def test_an_object_has_its_own_attention_and_verbalizer(options):
    model = SetScoreClassifier(["oil"], backbone=load_backbone("setscore-mini"), **options)
    with pytest.raises(BackboneError, match="its own attention and verbalizer; set them there"):
        model.predict(DOCUMENTS)


def test_the_verbalizer_decides_which_answers_are_compared():
    scores = [
        SetScoreClassifier(["oil"], verbalizer=pair).decision_function(DOCUMENTS) for pair in ("yes/no", "true/false")
    ]
    assert (scores[0] != scores[1]).all()
    swapped = SetScoreClassifier(["oil"], verbalizer=Verbalizer("no", "yes")).decision_function(DOCUMENTS)
    np.testing.assert_allclose(swapped, -scores[0], atol=1e-4)


def test_tags_tell_scikit_learn_what_it_is():
    tags = get_tags(SetScoreClassifier(LABELS))
    assert is_classifier(SetScoreClassifier())
    assert (tags.classifier_tags.multi_label, tags.classifier_tags.multi_class) == (True, False)
    assert (tags.target_tags.multi_output, tags.target_tags.single_output) == (True, False)
    assert (tags.input_tags.string, tags.input_tags.two_d_array) == (True, False)
    assert not tags.requires_fit
    check_is_fitted(SetScoreClassifier(LABELS))


def test_cross_validation_and_search():
    scores = cross_val_score(classifier(), DOCUMENTS * 2, np.vstack([INDICATOR] * 2), cv=3, scoring="f1_micro")
    assert len(scores) == 3
    assert (scores > 0.5).all()
    held_out = cross_val_predict(classifier(), DOCUMENTS, INDICATOR, cv=2, method="predict_proba")
    assert held_out.shape == INDICATOR.shape
    search = GridSearchCV(classifier(), {"template": ["express", "case-about"]}, cv=2, scoring="f1_micro")
    search.fit(DOCUMENTS, INDICATOR)
    assert search.best_params_["template"] in ("express", "case-about")
    assert search.predict(DOCUMENTS).shape == INDICATOR.shape
    objectives = {"calibration__objective": ["micro_f1", "sample_f1"]}
    search = GridSearchCV(classifier(calibration=PlattCalibration()), objectives, cv=2, scoring="f1_micro")
    assert search.fit(DOCUMENTS, INDICATOR).best_estimator_.calibration_.objective in ("micro_f1", "sample_f1")


def test_inside_a_pipeline():
    lower = FunctionTransformer(lambda texts: [text.lower() for text in texts])
    pipeline = make_pipeline(lower, classifier())
    expected = classifier().predict_proba([text.lower() for text in DOCUMENTS])
    np.testing.assert_array_equal(pipeline.predict_proba(DOCUMENTS), expected)
    pipeline.fit(DOCUMENTS, INDICATOR)
    assert pipeline.score(DOCUMENTS, INDICATOR) == (pipeline.predict(DOCUMENTS) == INDICATOR).all(axis=1).mean()


def test_pickling_works_though_nothing_needs_it():
    model = SetScoreClassifier(["oil", "sports"], threshold=0.2).fit(DOCUMENTS, INDICATOR[:, :2])
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict_proba(DOCUMENTS), model.predict_proba(DOCUMENTS))


@pytest.mark.parametrize(
    ("documents", "gold", "message"),
    [
        (DOCUMENTS[:5], INDICATOR, r"gold labels have the shape \(6, 4\),.* there are 5 documents and 4 labels"),
        (DOCUMENTS, GOLD[:5], r"gold labels have the shape \(5, 4\),.* there are 6 documents and 4 labels"),
        (DOCUMENTS, INDICATOR[:, :3], r"gold labels have the shape \(6, 3\),.* there are 6 documents and 4 labels"),
        (DOCUMENTS, INDICATOR * 2, "an indicator matrix of gold labels holds only 0 and 1"),
        (DOCUMENTS, ["oil"] * 6, "gold labels of document 0 must be a list of names, got the string 'oil'"),
        (DOCUMENTS, [["gas"]] * 6, r"6 gold labels are not in the inventory: 'gas' \(6 times\)"),
    ],
)
def test_gold_that_does_not_fit_the_documents(documents, gold, message):
    with pytest.raises(LabelError, match=message):
        classifier().fit(documents, gold)


@pytest.mark.parametrize(
    ("gold", "message"),
    [
        (INDICATOR, "an indicator matrix names no labels"),
        (["crude oil"] * 6, "gold labels of document 0 must be a list of names, got the string 'crude oil'"),
    ],
)
def test_gold_that_names_no_labels(gold, message):
    with pytest.raises(LabelError, match=message):
        classifier(None).fit(DOCUMENTS, gold)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"threshold": 1.5}, SetScoreError, "a threshold lies between 0 and 1, got 1.5"),
        ({"backbone": "setscore-mimi"}, BackboneError, "Did you mean 'setscore-mini'"),
        ({"backbone": "setscore-mini", "attention": "exakt"}, BackboneError, "Did you mean 'exact'"),
        ({"template": "expres"}, TemplateError, "Did you mean 'express'"),
        ({"long_documents": "chunks"}, SetScoreError, "Did you mean 'chunk'"),
        ({"pool": "meen"}, SetScoreError, "Did you mean 'mean'"),
        ({"overlap": -1}, SetScoreError, "0 or more, got -1"),
    ],
)
def test_options_are_checked_when_used_not_in_init(options, error, message):
    model = classifier(**options)
    with pytest.raises(error, match=message):
        model.predict(DOCUMENTS)


def test_documents_that_cannot_be_scored_are_all_named():
    with pytest.raises(DocumentError, match=r"2 of 3 documents cannot be scored: document 0: .*; document 2: .*None"):
        classifier().predict(["  ", "fine", None])
