"""What the server counts, for Prometheus."""

from collections.abc import Callable
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """Counters of one server; nothing of a document is in them."""

    content_type = "text/plain; version=0.0.4; charset=utf-8"

    def __init__(self, waiting: Callable[[], float]) -> None:
        self._registry = CollectorRegistry()
        made: dict[str, Any] = {"registry": self._registry, "namespace": "setscore"}
        self.requests = Counter("requests", "Requests by route and status.", ["route", "status"], **made)
        self.seconds = Histogram("request_seconds", "From a request to its answer.", ["route"], buckets=SECONDS, **made)
        self.documents = Counter("documents", "Documents that were classified.", **made)
        self.abandoned = Counter("abandoned", "Documents whose client left before they were classified.", **made)
        self.batches = Histogram("batch_documents", "Documents in a batch.", buckets=SIZES, **made)
        self.sharing = Histogram("batch_requests", "Requests in a batch.", buckets=SIZES, **made)
        self.model_seconds = Counter("model_seconds", "Seconds in which the model was asked.", **made)
        Gauge("waiting_documents", "Documents that wait for the model.", **made).set_function(waiting)

    def text(self) -> bytes:
        return generate_latest(self._registry)
