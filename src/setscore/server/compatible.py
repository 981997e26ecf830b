"""Routes in the shapes of others: the zero-shot route of Hugging Face, /rerank and /predict of TEI.

TEI is text-embeddings-inference. There a pair is a text and a second text; here the second one is a label.
"""

from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from scipy.special import expit
from starlette.responses import Response

from setscore.pipelines import ranked
from setscore.predictions import Prediction
from setscore.records import Document
from setscore.server import schemas
from setscore.server.errors import invalid
from setscore.server.service import Service


def add(app: FastAPI, service: Service) -> None:
    """All of them."""

    @app.post("/", responses={200: {"model": list[schemas.Scored]}}, response_model=None)
    async def zero_shot(request: Request, asked: schemas.ZeroShot) -> Response:
        """Zero-shot classification as `huggingface_hub.InferenceClient` asks for it; the best label first."""
        parameters = asked.parameters
        classifier = service.catalogue.zero_shot(parameters.candidate_labels, parameters.hypothesis_template)
        (found,) = _sound(await service.classify(request, classifier, [Document(asked.inputs)]))
        best = ranked(found, multi_label=bool(parameters.multi_label))
        pairs = zip(best["labels"], best["scores"], strict=True)
        return JSONResponse([{"label": label, "score": score} for label, score in pairs])

    @app.post("/rerank", responses={200: {"model": list[schemas.Ranked]}}, response_model=None)
    async def rerank(request: Request, asked: schemas.Rerank) -> Response:
        """Texts in order of how likely each is about the query; a text that is blank is an error."""
        classifier = service.catalogue.described({asked.query: None}, competition=0.0)
        found = _sound(await service.classify(request, classifier, [Document(text) for text in asked.texts]))
        scores = [_score(one, asked.query, raw=asked.raw_scores) for one in found]
        order = sorted(range(len(scores)), key=lambda place: -scores[place])
        texts = asked.texts if asked.return_text else [None] * len(scores)
        return JSONResponse(
            [
                {"index": place, "score": scores[place]} | ({"text": texts[place]} if asked.return_text else {})
                for place in order
            ]
        )

    @app.post(
        "/predict", responses={200: {"model": list[schemas.Scored] | list[list[schemas.Scored]]}}, response_model=None
    )
    async def predict(request: Request, asked: schemas.Predict) -> Response:
        """The labels of the server for each text, the best first; of a pair, its own label alone."""
        pairs = _pairs(asked.inputs)
        found: list[list[dict[str, Any]]] = [[] for _ in pairs]
        default = [place for place, (_, label) in enumerate(pairs) if label is None]
        if default:
            classifier = service.catalogue.default()
            answers = _sound(await service.classify(request, classifier, [Document(pairs[i][0]) for i in default]))
            for place, one in zip(default, answers, strict=True):
                found[place] = [
                    {"label": name, "score": _score(one, name, raw=asked.raw_scores)}
                    for name in sorted(one.probabilities, key=lambda name: -one.probabilities[name])
                ]
        for place, (text, label) in enumerate(pairs):
            if label is not None:
                classifier = service.catalogue.described({label: None}, competition=0.0)
                (one,) = _sound(await service.classify(request, classifier, [Document(text)]))
                found[place] = [{"label": label, "score": _score(one, label, raw=asked.raw_scores)}]
        nested = isinstance(asked.inputs, list) and isinstance(asked.inputs[0], list)
        return JSONResponse(found if nested else found[0])


def _pairs(inputs: str | list[str] | list[list[str]]) -> list[tuple[str, str | None]]:
    """Each text with its label, or with None for the server's."""
    if isinstance(inputs, str):
        return [(inputs, None)]
    lists = [inputs] if isinstance(inputs[0], str) else inputs
    return [(one[0], one[1] if len(one) > 1 else None) for one in lists]


def _sound(found: list[Prediction]) -> list[Prediction]:
    """Predictions of documents that could all be read: these shapes have no place for an error."""
    for place, one in enumerate(found):
        if one.error is not None:
            raise invalid(f"text {place} {one.error}.")
    return found


def _score(found: Prediction, name: str, *, raw: bool) -> float:
    """The probability, or the log-odds that `raw_scores` asks for."""
    return found.log_odds[name] if raw else found.probabilities.get(name, float(expit(found.log_odds[name])))
