"""The routes of SetScore itself: documents and labels in, predictions out; and how the server is doing."""

from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from starlette.responses import Response

from setscore import __version__
from setscore.classifier import SetScoreClassifier
from setscore.records import Document
from setscore.server import schemas, sentences
from setscore.server.catalogue import check_size
from setscore.server.errors import Refused
from setscore.server.service import Service


def add(app: FastAPI, service: Service) -> None:
    """All of them."""

    @app.post("/classify", responses={200: {"model": schemas.Answer}}, response_model=None)
    async def classify(request: Request, asked: schemas.AnyAsked) -> Response:
        """Which labels apply to each document, in the order of the documents."""
        documents = [_document(one) for one in asked.documents]
        labels = asked.labels if isinstance(asked, schemas.AskedLabels) else {}
        check_size(documents, [*labels, *labels.values()], service.limits)
        if isinstance(asked, schemas.AskedLabels):
            given = {"threshold": asked.threshold, "competition": asked.competition}
            classifier = service.catalogue.described(labels, label_text=asked.label_text, **given)
        else:
            name = asked.classifier if isinstance(asked, schemas.AskedClassifier) else None
            classifier = service.catalogue.named(name, asked.threshold)
        found = await service.classify(request, classifier, documents)
        return JSONResponse({"predictions": [one.top(asked.top_k).to_dict() for one in found]})

    @app.post("/explain", responses={200: {"model": schemas.Explanation}}, response_model=None)
    async def explain(request: Request, asked: schemas.Explained) -> Response:
        """What each sentence of a text does to each label: the text with it, and without it."""
        if asked.labels is not None:
            classifier = service.catalogue.described(asked.labels)
        else:
            classifier = service.catalogue.named(asked.classifier)
        check_size([Document(asked.text)], asked.labels or (), service.limits)
        cut, documents = sentences.variants(asked.text)
        found = await service.classify(request, classifier, documents)
        return JSONResponse({"prediction": found[0].to_dict(), "sentences": sentences.weigh(cut, found)})

    @app.get("/health")
    async def health() -> dict[str, str]:
        """Whether the server answers at all."""
        return {"status": "ok"}

    @app.get("/ready", responses={503: {"model": schemas.Refusal, "description": "The model is being loaded."}})
    async def ready() -> dict[str, str]:
        """Whether the model is loaded."""
        if not service.ready:
            raise Refused(503, "loading", "the model is being loaded.", retry_after=1)
        return {"status": "ready"}

    @app.get("/info")
    async def info() -> dict[str, Any]:
        """What is served, and what a request may ask."""
        served = service.settings.served
        described = service.settings.described
        return {
            "model_id": described.backbone if isinstance(described.backbone, str) else described.backbone.spec.name,
            "version": __version__,
            "classifiers": {name: about(one) for name, one in served.items()},
            "max_client_batch_size": service.limits.documents,
            "max_batch_tokens": service.limits.tokens,
            "max_labels": service.limits.labels,
            "max_characters": service.limits.characters,
            "max_waiting_documents": service.limits.waiting,
            "page": service.settings.projects is not None,
        }

    @app.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
    async def metrics() -> Response:
        """Counters for Prometheus."""
        found = service.batcher.metrics
        return Response(found.text(), media_type=found.content_type)


def _document(given: str | schemas.DocumentIn) -> Document:
    if isinstance(given, str):
        return Document(given)
    return Document(given.text, given.id or "", None if given.candidates is None else tuple(given.candidates))


def about(model: SetScoreClassifier) -> dict[str, Any]:
    """Of a classifier: labels, regime, from which probability on each label applies, and how it reads."""
    thresholds = model.current_calibration().thresholds_.tolist()
    return {
        "labels": model.classes_.tolist(),
        "regime": model.regime,
        "thresholds": dict(zip(map(str, model.classes_), thresholds, strict=True)),
        "long_documents": model.long_documents,
    }
