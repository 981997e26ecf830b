"""What the routes share: the classifiers, and the line before the model."""

import logging
from collections.abc import Callable, Sequence

from starlette.requests import Request

from setscore.classifier import SetScoreClassifier
from setscore.predictions import Prediction
from setscore.records import Document
from setscore.server.batching import Batcher
from setscore.server.catalogue import Catalogue, check_size
from setscore.server.settings import Settings
from setscore.server.waiting import awaited

log = logging.getLogger("setscore.server")


class Service:
    """What the routes share: the classifiers, and the line before the model."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.limits = settings, settings.limits
        self.catalogue = Catalogue(settings)
        self.batcher = Batcher(settings.limits)
        self.ready = False
        self.closing: list[Callable[[], None]] = []  # what ends with the server

    async def classify(
        self, request: Request, classifier: SetScoreClassifier, documents: Sequence[Document]
    ) -> list[Prediction]:
        """Predictions, unless the request is too large, its client leaves or time is up."""
        check_size(documents, [], self.limits)
        found = await awaited(request, self.batcher.classify(classifier, documents), self.limits.timeout)
        if self.settings.log_documents:
            for document, prediction in zip(documents, found, strict=True):
                log.info("document %r: %s", document.text, ", ".join(prediction.labels) or "no label")
        return found

    async def warm(self) -> None:
        """Asks once, so that weights are loaded before the first request."""
        described = self.settings.described.get_params(deep=False) | {"labels": ["warm"]}
        first = next(iter(self.settings.served.values()), SetScoreClassifier(**described))
        await self.batcher.classify(first, [Document("A document.")])
        self.ready = True
