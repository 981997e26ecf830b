"""What a server is told when it starts: what it serves, to whom, and how much of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from setscore.classifier import SetScoreClassifier
from setscore.errors import SetScoreError

LOOPBACK = ("127.0.0.1", "localhost", "::1", "[::1]")


@dataclass(frozen=True)
class Limits:
    """How much one request may ask, and how much may wait.

    documents   in one request
    labels      in one request
    characters  of the documents and labels of one request together
    body        bytes of a request
    upload      bytes of a file of documents for a project
    waiting     documents of all requests that wait; what comes then is told to come again (429)
    tokens      after which a batch is full, about
    patience    seconds that the first request of a batch waits for others while the model is idle
    timeout     seconds from a request to its answer
    """

    documents: int = 256
    labels: int = 512
    characters: int = 4_000_000
    body: int = 16 * 2**20
    upload: int = 64 * 2**20
    waiting: int = 2048
    tokens: int = 16_384
    patience: float = 0.005
    timeout: float = 60.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not value > 0 and name != "patience":
                raise SetScoreError(f"the limit {name} must be more than 0, got {value}.")


@dataclass(frozen=True)
class Settings:
    """Everything a server is told.

    described      how labels of a request are asked: a classifier without labels
    served         classifiers by name; the first is asked when a request names neither labels nor a classifier
    projects       the file of projects, or None for a server without a page
    key            what clients must show, or None
    origins        pages of other hosts that may call, as in https://example.org
    hosts          names by which the server may be called besides those of this machine
    log_documents  whether documents and their labels are logged
    """

    described: SetScoreClassifier
    served: Mapping[str, SetScoreClassifier] = field(default_factory=dict)
    projects: Path | None = None
    key: str | None = field(default=None, repr=False)
    origins: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    log_documents: bool = False
    limits: Limits = Limits()
