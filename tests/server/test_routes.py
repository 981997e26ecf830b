"""What the server answers, what it refuses, and what it keeps to itself."""

import logging

import pytest
from fakes import FakeBackbone
from servers import KEY, LABELS

from setscore import LabelSet, SetScoreClassifier
from setscore.server import Limits

TEXTS = ["crude oil fell", "rain all week", "a wrong charge for oil"]


def test_classify_answers_what_the_classifier_answers(start):
    client = start()
    found = client.post("/classify", json={"documents": TEXTS, "labels": LABELS}).json()["predictions"]
    assert found == SetScoreClassifier(LABELS, backbone=FakeBackbone()).classify(TEXTS).to_dict()


def test_classify_with_everything(start):
    asked = {
        "documents": [{"text": TEXTS[0], "id": "first", "candidates": ["oil", "weather"]}, " ", TEXTS[1]],
        "labels": LABELS,
        "threshold": 0.0,
        "top_k": 1,
        "competition": 0,
    }
    first, blank, last = start().post("/classify", json=asked).json()["predictions"]
    assert (first["id"], first["labels"], set(first["probabilities"])) == ("first", ["oil"], {"oil"})
    assert blank == {"id": "1", "error": "is empty or blank", "regime": "zero-shot"}
    assert len(last["labels"]) == 1


@pytest.mark.parametrize("label_text", ["both", "description", "name"])
def test_labels_are_asked_by_what_the_request_says(start, label_text):
    labels = {"oil": "the price of crude", "weather": "rain or sunshine"}
    asked = {"documents": TEXTS, "labels": labels, "label_text": label_text}
    found = start().post("/classify", json=asked).json()["predictions"]
    wanted = LabelSet.of(labels).asked_by(label_text)
    assert found == SetScoreClassifier(wanted, backbone=FakeBackbone()).classify(TEXTS).to_dict()


def test_a_classifier_by_name_and_the_default(start):
    client = start()
    named = client.post("/classify", json={"documents": TEXTS, "classifier": "news"}).json()
    assert client.post("/classify", json={"documents": TEXTS}).json() == named
    assert named["predictions"][0]["labels"] == ["oil"]
    bare = start(served={})
    refused = bare.post("/classify", json={"documents": TEXTS})
    assert (refused.status_code, refused.json()["error"].split(".")[0]) == (
        422, "this server was started without labels of its own")  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "status", "told"),
    [
        ({"documents": ["a"] * 4, "labels": LABELS}, 413, "4 documents were sent, 3 may be in one request."),
        ({"documents": ["a"], "labels": {str(n): None for n in range(6)}}, 413, "6 labels were sent, 5 may be."),
        ({"documents": ["a" * 500], "labels": LABELS}, 413, "characters were sent, 400 may be in one request."),
        ({"documents": [], "labels": LABELS}, 422, "documents must hold at least 1 entry."),
        ({"documents": ["a"], "labels": {}}, 422, "labels must hold at least 1 entry."),
        ({"documents": ["a"], "labels": LABELS, "label_text": "code"}, 422, "label_text"),
        ({"documents": ["a"], "path": "/etc/passwd"}, 422, "the request has an unknown field 'path'."),
        ({"documents": ["a"], "backbone": "hf:x"}, 422, "the request has an unknown field 'backbone'."),
        ({"documents": ["a"], "classifier": "../etc/passwd"}, 404, "unknown classifier '../etc/passwd'"),
        ({"documents": ["a"], "classifier": "newz"}, 404, "Did you mean 'news'?"),
    ],
)
def test_what_is_refused(start, asked, status, told):
    answer = start(limits=Limits(documents=3, labels=5, characters=400)).post("/classify", json=asked)
    assert answer.status_code == status
    assert told in answer.json()["error"]


def test_half_a_character_is_an_error_in_its_place(start):
    body = '{"documents": ["\\ud800"], "labels": {"oil": null}}'
    answer = start().post("/classify", content=body, headers={"content-type": "application/json"})
    assert "lone surrogate (U+D800)" in answer.json()["predictions"][0]["error"]


def test_bodies_have_a_limit_even_if_they_do_not_say_so(start):
    client = start(limits=Limits(body=1000))
    assert client.post("/classify", content=b"x" * 1001).status_code == 413
    answer = client.post("/classify", content=(b"x" * 100 for _ in range(20)))
    assert (answer.status_code, answer.json()["error"]) == (413, "the request is larger than 1,000 bytes, the limit.")


def test_a_form_of_another_page_is_not_read_as_json(start):
    body = '{"documents": ["a"], "labels": {"oil": null}}'
    assert start().post("/classify", content=body, headers={"content-type": "text/plain"}).status_code == 422


def test_a_key_is_asked_for_and_the_page_and_health_are_open(start):
    client = start(key=KEY)
    for path in ("/health", "/ready", "/", "/page/main.js"):
        assert client.get(path).status_code in (200, 503), path
    for shown in ({}, {"authorization": "Bearer wrong"}, {"authorization": f"Bearer {KEY}x"}):
        refused = client.get("/info", headers=shown)
        assert (refused.status_code, refused.json()["error_type"]) == (401, "unauthorized")
    assert client.post("/", json={}).status_code == 401
    assert client.get("/metrics", headers={"authorization": f"Bearer {KEY}"}).status_code == 200


def test_other_hosts_and_other_pages(start):
    client = start(origins=("https://example.org",), hosts=("labels.example.org",))
    assert client.get("/health", headers={"host": "evil.example"}).status_code == 400
    assert client.get("/health", headers={"host": "labels.example.org"}).status_code == 200
    asked = {"origin": "https://example.org", "access-control-request-method": "POST"}
    assert client.options("/classify", headers=asked).headers["access-control-allow-origin"] == "https://example.org"
    other = client.options("/classify", headers=asked | {"origin": "https://evil.example"})
    assert "access-control-allow-origin" not in other.headers


def test_every_answer_has_a_strict_policy(start):
    client = start()
    for path in ("/", "/health", "/nowhere", "/page/style.css"):
        policy = client.get(path).headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy


@pytest.mark.parametrize("path", ["/page/../app.py", "/page/%2e%2e%2fapp.py", "/page/app.py", "/page/"])
def test_the_page_has_its_own_files_alone(start, path):
    answer = start().get(path)
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize("asked", [False, True])
def test_documents_are_logged_only_when_asked(start, caplog, capfd, asked):
    caplog.set_level(logging.DEBUG)
    client = start(log_documents=asked)
    client.post("/classify", json={"documents": ["a secret about oil"], "labels": LABELS})
    client.post("/classify", json={"documents": ["a secret"], "labels": {"secret ": None}})
    client.post("/rerank", json={"query": "secret", "texts": []})
    out, err = capfd.readouterr()
    ours = [record.getMessage() for record in caplog.records if record.name.startswith(("setscore", "uvicorn"))]
    assert ("secret" in " ".join([*ours, out, err])) == asked
    assert any("POST /classify 200" in line for line in ours)


def test_metrics_count(start):
    client = start()
    client.post("/classify", json={"documents": TEXTS, "labels": LABELS})
    told = client.get("/metrics").text
    assert 'setscore_requests_total{route="/classify",status="200"} 1.0' in told
    assert "setscore_waiting_documents 0.0" in told


def test_info_says_what_is_served(start):
    told = start(limits=Limits(documents=7)).get("/info").json()
    thresholds = dict.fromkeys(LABELS, 0.5)
    assert told["classifiers"] == {"news": {"labels": list(LABELS), "regime": "zero-shot", "thresholds": thresholds,
                                             "long_documents": "auto"}}  # fmt: skip
    assert (told["model_id"], told["max_client_batch_size"], told["page"]) == ("fake", 7, True)


def test_without_a_page_there_are_neither_page_nor_projects(start):
    client = start(projects=None)
    assert client.get("/").status_code == 405
    assert client.get("/projects").status_code == 404


def test_sentences_are_weighed_with_and_without(start):
    text = "Crude oil fell. It was quiet otherwise.\nRain all week!"
    found = start().post("/explain", json={"text": text, "labels": {"oil": None, "rain": None}}).json()
    sentences = found["sentences"]
    assert "".join(text[one["start"] : one["end"]] for one in sentences) == text
    assert sentences[0]["weights"]["oil"] > 2 > sentences[1]["weights"]["oil"]
    assert sentences[2]["weights"]["rain"] > 2 > sentences[0]["weights"]["rain"]
    alone = start().post("/explain", json={"text": "Oil.", "labels": {"oil": None}}).json()
    assert alone["sentences"] == []


def test_rerank_in_the_shape_of_text_embeddings_inference(start):
    asked = {"query": "oil", "texts": ["rain", "crude oil", "snow"], "return_text": True}
    found = start().post("/rerank", json=asked).json()
    assert (found[0]["index"], found[0]["text"]) == (1, "crude oil")
    assert sorted(one["index"] for one in found) == [0, 1, 2]
    assert [one["score"] for one in found] == sorted((one["score"] for one in found), reverse=True)
    raw = start().post("/rerank", json=asked | {"raw_scores": True, "return_text": False}).json()
    assert raw[0]["score"] > 1
    assert set(raw[0]) == {"index", "score"}


def test_predict_in_the_shape_of_text_embeddings_inference(start):
    client = start()
    one = client.post("/predict", json={"inputs": "crude oil"}).json()
    assert [set(entry) for entry in one] == [{"label", "score"}] * 3
    assert one[0]["label"] == "oil"
    many = client.post("/predict", json={"inputs": [["crude oil"], ["rain", "rain"]]}).json()
    assert many[0] == one
    assert [entry["label"] for entry in many[1]] == ["rain"]
    pair = client.post("/predict", json={"inputs": ["rain", "rain"]}).json()
    assert pair == many[1]


def test_a_request_that_takes_too_long_is_told_so(start):
    class Sleepy(FakeBackbone):
        def log_odds(self, queries):
            import time

            time.sleep(0.5)
            return super().log_odds(queries)

    client = start(described=SetScoreClassifier(backbone=Sleepy()), served={}, limits=Limits(timeout=0.2))
    answer = client.post("/classify", json={"documents": ["a"], "labels": {"oil": None}})
    assert (answer.status_code, answer.json()["error_type"]) == (504, "timeout")
