"""`setscore serve`: the server and its page."""

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from setscore.classifier import SetScoreClassifier
from setscore.cli import options
from setscore.cli.classify import Labels
from setscore.cli.console import remark
from setscore.errors import DataFileError, FewDocumentsWarning, LabelWarning, SetScoreError, TruncationWarning
from setscore.server import Limits, Settings, serve
from setscore.server.settings import LOOPBACK
from setscore.storage import Limits as FileLimits
from setscore.storage import decoded, one_line, read_limited

KEY = "SETSCORE_API_KEY"
SIZES = "How much is served"
PROJECTS = Path("~/.local/share/setscore/projects.sqlite")
USUAL = Limits()
KEY_LIMITS = FileLimits(size=4096)


@dataclass(frozen=True)
class Sizes:
    """How much one request may ask, and how much may wait."""

    max_documents: Annotated[int, typer.Option(min=1, help="In one request.", rich_help_panel=SIZES)] = USUAL.documents
    max_labels: Annotated[int, typer.Option(min=1, help="In one request.", rich_help_panel=SIZES)] = USUAL.labels
    max_characters: Annotated[int, typer.Option(min=1, help="In one request, together.", rich_help_panel=SIZES)] = (
        USUAL.characters
    )
    max_waiting: Annotated[
        int, typer.Option(min=1, help="Documents that may wait; then clients are told 429.", rich_help_panel=SIZES)
    ] = USUAL.waiting
    batch_tokens: Annotated[
        int, typer.Option(min=1, help="About how many tokens make a full batch.", rich_help_panel=SIZES)
    ] = USUAL.tokens
    patience: Annotated[
        float, typer.Option(min=0, help="Seconds that a request waits for others to batch with.", rich_help_panel=SIZES)
    ] = USUAL.patience
    timeout: Annotated[
        float, typer.Option(min=0.1, help="Seconds within which a request is answered.", rich_help_panel=SIZES)
    ] = USUAL.timeout

    def limits(self) -> Limits:
        return Limits(
            documents=self.max_documents,
            labels=self.max_labels,
            characters=self.max_characters,
            waiting=self.max_waiting,
            tokens=self.batch_tokens,
            patience=self.patience,
            timeout=self.timeout,
        )


@options.grouped
def serve_command(
    *,
    labels: Labels = None,
    classifier: Annotated[
        list[Path] | None,
        typer.Option(help="A saved classifier, asked by the name of its file. May be repeated.", show_default=False),
    ] = None,
    label_text: options.LabelText = None,
    allow: options.Allow = None,
    host: Annotated[str, typer.Option(help="The address to listen on; 0.0.0.0 for all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8080,
    projects: Annotated[Path, typer.Option(help="The file that keeps the projects of the page.")] = PROJECTS,
    page: Annotated[bool, typer.Option(help="Whether there are a page and projects.")] = True,
    api_key_file: Annotated[
        Path | None,
        typer.Option(help=f"A file with the key that clients must send; or set {KEY}.", show_default=False),
    ] = None,
    without_key: Annotated[
        bool, typer.Option("--without-key", help="Let everyone who reaches this address ask without a key.")
    ] = False,
    cors: Annotated[
        list[str] | None,
        typer.Option(help="A site that may call, as https://example.org. May be repeated.", show_default=False),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="A name by which clients call this server. May be repeated.", show_default=False),
    ] = None,
    log_requests: Annotated[bool, typer.Option("--log-requests", help="A line for each request; no content.")] = False,
    log_documents: Annotated[
        bool, typer.Option("--log-documents", help="Documents and their labels too. They may be private.")
    ] = False,
    asked: options.Model,
    sizes: Sizes,
) -> None:
    """Serve predictions to programs, and a page to try labels, label documents and watch it learn.

    Open the address that is printed. Programs send documents to /classify, or to routes they may know: the zero-shot
    one of Hugging Face, /rerank and /predict of text-embeddings-inference. SIGTERM ends it after the last answer.

    Examples:

        setscore serve

        setscore serve --labels labels.yaml --port 9000

        setscore serve --classifier tickets.json --classifier mails.zip --no-page --log-requests

        setscore serve --host 0.0.0.0 --api-key-file key.txt --allow-host labels.example.org
    """
    if not classifier:
        options.refuse_allow(allow)
    if label_text is not None and labels is None:
        raise SetScoreError("--label-text says how the labels of --labels are asked; a request has its own label_text.")
    key = _key(api_key_file)
    if host not in LOOPBACK and key is None and not without_key:
        raise SetScoreError(
            f"{host} can be reached by others: give a key (--api-key-file FILE, or {KEY}), or say --without-key."
        )
    settings = Settings(
        described=asked.classifier(),
        served=_served(labels, label_text, classifier or (), asked, allow or ()),
        projects=projects.expanduser() if page else None,
        key=key,
        origins=tuple(cors or ()),
        hosts=(*(allow_host or ()), *(() if host in ("0.0.0.0", "::") else (host,))),
        log_documents=log_documents,
        limits=sizes.limits(),
    )
    for kind in (FewDocumentsWarning, LabelWarning, TruncationWarning):  # of requests: the log is no place for them
        warnings.simplefilter("ignore", kind)

    def started(address: str) -> None:
        remark(
            f"serving at {address}" + (f" with projects in {settings.projects}" if page else "") + " (Ctrl-C ends it)"
        )

    serve(settings, host=host, port=port, log_requests=log_requests, started=started)


def _served(
    labels: str | None, label_text: str | None, files: Sequence[Path], asked: options.Model, allow: Sequence[str]
) -> dict[str, SetScoreClassifier]:
    """What is asked when a request brings no labels, and classifiers by name."""
    served = {} if labels is None else {"labels": asked.classifier(labels, label_text=label_text)}
    for path in files:
        if path.stem in served:
            raise SetScoreError(f"two classifiers would be called {path.stem!r}. Rename one of the files.")
        served[path.stem] = SetScoreClassifier.load(path, allow=allow).check()
    return served


def _key(path: Path | None) -> str | None:
    """The key of a file or of the environment; never of the command line, which others can read."""
    key = os.environ.get(KEY, "") if path is None else _text(path).strip()
    if path is not None and not key:
        raise SetScoreError(f"{path} holds no key.")
    if key and (not key.isascii() or any(map(str.isspace, key))):
        raise SetScoreError("a key is ASCII without blanks.")
    return key or None


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return decoded(read_limited(file, KEY_LIMITS))
    except OSError as error:
        raise DataFileError(f"the key file {path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise DataFileError(f"the key file {path} cannot be read: {one_line(error)}.") from error
