"""Clients that others wrote: the one of Hugging Face, and a tester that reads the OpenAPI document."""

from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from servers import LABELS

from setscore import SetScoreClassifier, pipeline

TEXT = "I was charged twice for the same order."
NAMES = ["billing problem", "weather", "sports"]


@pytest.mark.parametrize("multi_label", [False, True])
@pytest.mark.parametrize("hypothesis", [None, "This text is about {}."])
def test_the_client_of_hugging_face_gets_what_the_pipeline_gives(address, multi_label, hypothesis):
    hub = pytest.importorskip("huggingface_hub")
    client = hub.InferenceClient(model=address)
    found = client.zero_shot_classification(TEXT, NAMES, multi_label=multi_label, hypothesis_template=hypothesis)
    wanted = pipeline()(TEXT, NAMES, multi_label=multi_label, hypothesis_template=hypothesis)
    assert [(one.label, one.score) for one in found] == list(zip(wanted["labels"], wanted["scores"], strict=True))


def test_its_errors_say_what_is_wrong(address):
    hub = pytest.importorskip("huggingface_hub")
    with pytest.raises(Exception, match="hypothesis_template"):
        hub.InferenceClient(model=address).zero_shot_classification(TEXT, NAMES, hypothesis_template="no place")


@pytest.mark.parametrize("mode", ["positive", "negative"])
def test_the_openapi_document_is_kept(plain, mode):
    """Every route, with data that its schema allows, and with data that it does not."""
    schemathesis = pytest.importorskip("schemathesis")
    project = httpx2.post(f"{plain}/projects", json={"name": "p", "labels": LABELS}).json()["id"]
    text = {"content-type": "text/plain"}
    httpx2.post(f"{plain}/projects/{project}/documents", content="crude oil\nrain\n", headers=text)
    schema = schemathesis.openapi.from_url(f"{plain}/openapi.json")
    tested = [result.ok() for result in schema.get_all_operations()]
    assert len(tested) > 15
    for operation in tested:
        if mode == "negative" and not (operation.body or operation.path_parameters or operation.query):
            continue  # nothing can be sent to it that its schema forbids
        if operation.method == "delete":
            continue  # of the project that the others are about
        exercise(operation.as_strategy(generation_mode=schemathesis.GenerationMode(mode)), project, mode)


def exercise(strategy, project, mode):
    from schemathesis.specs.openapi.checks import positive_data_acceptance

    @settings(
        max_examples=10, deadline=None, database=None, derandomize=True, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(case=strategy)
    def run(case):
        if mode == "positive" and "identifier" in (case.path_parameters or {}):
            case.path_parameters["identifier"] = project
        # What a schema cannot say: that a text is CSV, as the file of documents must be.
        accepts_all = case.operation.path.endswith("/documents") and case.method == "POST"
        case.call_and_validate(excluded_checks=[positive_data_acceptance] if accepts_all else [])

    run()


def test_answers_are_those_of_python_while_others_ask(address):
    """Twelve threads with two label sets, all at once, beside each other's documents."""
    sets = [LABELS, {"sports": None, "travel": "a journey"}]
    texts = [f"{'Crude oil fell. ' * (n % 5)}It rained on day {n}." for n in range(24)]

    def ask(number):
        asked = {"documents": [texts[number]], "labels": sets[number % 2]}
        return httpx2.post(f"{address}/classify", json=asked, timeout=60).json()["predictions"][0]

    with ThreadPoolExecutor(12) as pool:
        found = list(pool.map(ask, range(24)))
    models = [SetScoreClassifier(labels) for labels in sets]
    for number, one in enumerate(found):
        assert one == models[number % 2].classify([texts[number]])[0].to_dict()
