"""What a refused request is told: the field as the client wrote it, and what is allowed, without names of classes."""

import re

import pytest
from servers import LABELS

NAMED = "must be neither blank nor with blanks around it, and on one line."
CASES = [
    ("/classify", {}, "documents is missing."),
    ("/classify", [], "the request must be an object in JSON, sent as application/json."),
    ("/classify", {"documents": []}, "documents must hold at least 1 entry."),
    ("/classify", {"documents": "a"}, "documents must be a list."),
    ("/classify", {"documents": [5]}, "documents[0] must be a text or an object."),
    ("/classify", {"documents": ["a", {"id": "b"}]}, "documents[1].text is missing."),
    (
        "/classify",
        {"documents": [{"txt": "a"}]},
        "documents[0] has an unknown field 'txt'. Did you mean 'text'? Known: candidates, id, text.",
    ),
    ("/classify", {"documents": [{"text": 1}, "b"]}, "documents[0].text must be a text."),
    ("/classify", {"documents": ["a"], "labels": {" oil": None}}, f"labels[' oil'] {NAMED}"),
    ("/classify", {"documents": ["a"], "labels": {"oil": ""}}, f"labels.oil {NAMED}"),
    ("/classify", {"documents": ["a"], "labels": {"oil": 3}}, "labels.oil must be a text."),
    (
        "/classify",
        {"documents": ["a"], "labels": ["oil"]},
        'labels must be an object, as in {"oil": null, "sports": "games and players"}.',
    ),
    ("/classify", {"documents": ["a"], "threshold": 1.5}, "threshold must be at most 1."),
    ("/classify", {"documents": ["a"], "threshold": "high"}, "threshold must be a number."),
    ("/classify", {"documents": ["a"], "top_k": 1.5}, "top_k must be a whole number."),
    ("/classify", {"documents": ["a"], "top_k": 0}, "top_k must be at least 1."),
    ("/classify", {"documents": [], "top_k": 0}, "documents must hold at least 1 entry. top_k must be at least 1."),
    (
        "/classify",
        {"documents": ["a"], "labels": LABELS, "classifier": "news"},
        "the request must name labels or a classifier, not both.",
    ),
    (
        "/classify",
        {"documents": ["a"], "competition": 0.5},
        "the request has an unknown field 'competition'. Known: classifier, documents, labels, threshold, top_k.",
    ),
    ("/explain", {"text": "  "}, "text must not be blank."),
    (
        "/",
        {"inputs": "a", "parameters": {"candidate_labels": ["b"], "hypothesis_template": "none"}},
        "parameters.hypothesis_template must hold {} once, where the label goes, and no other brace.",
    ),
    ("/predict", {"inputs": 5}, "inputs must be a text or a list."),
    ("/predict", {"inputs": [["a", "b", "c"]]}, "inputs[0] must hold at most 2 entries."),
    (
        "/rerank",
        {"query": "a", "texts": ["b"], "truncation_direction": "up"},
        "truncation_direction must be one of 'left', 'right', 'Left', 'Right'.",
    ),
    ("/projects", {"name": "x" * 201, "labels": LABELS}, "name must have at most 200 characters."),
]


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    from fakes import FakeBackbone
    from starlette.testclient import TestClient

    from setscore import SetScoreClassifier
    from setscore.server import Settings, create_app

    described = SetScoreClassifier(backbone=FakeBackbone())
    projects = tmp_path_factory.mktemp("mistakes") / "projects.sqlite"
    with TestClient(create_app(Settings(described, {}, projects)), base_url="http://localhost") as made:
        yield made


@pytest.mark.parametrize(("path", "asked", "told"), CASES)
def test_mistakes_name_the_field_and_what_is_allowed(client, path, asked, told):
    answer = client.post(path, json=asked)
    assert (answer.status_code, answer.json()) == (422, {"error": told, "error_type": "validation"})


def test_mistakes_of_paths_and_queries(client):
    assert client.get("/projects/none").json()["error"] == (
        "identifier must be twelve of the signs 0-9 and a-f, as /projects lists them."
    )
    assert client.get(f"/projects/{'0' * 12}/documents?start=x").json()["error"] == "start must be a whole number."
    told = client.get(f"/projects/{'0' * 12}/export?format=xml").json()["error"]
    assert told == "format must be one of 'csv', 'jsonl'."


def test_what_is_no_json_is_told_with_its_place(client):
    told = client.post("/classify", content="{", headers={"content-type": "application/json"}).json()["error"]
    assert told.startswith("the request is not JSON: ")
    assert told.endswith("at character 1.")


def test_no_message_names_a_class(client):
    """Every route that takes a body, with values that fit no field of any."""
    classes = re.compile(
        r"\b(Asked\w*|DocumentIn|Strict\w*|ZeroShot\w*|Explained|Said|New\w+|body|str|dict|Solid|Pair)\b"
    )
    document = client.get("/openapi.json").json()
    routes = [
        (method, path.replace("{identifier}", "0" * 12).replace("{place}", "0"))
        for path, methods in document["paths"].items()
        for method in methods
        if "requestBody" in methods[method] and not path.endswith("/documents")
    ]
    assert len(routes) > 6
    for method, path in routes:
        for body in ({}, [], 5, {"labels": 5}, {"documents": {"a": 1}}, {"status": 1, "inputs": {}, "texts": [1]}):
            answer = client.request(method, path, json=body)
            if answer.status_code == 422:
                assert not classes.search(answer.json()["error"]), answer.json()["error"]
