"""What a batch will take, before it begins: all rows are counted, a few are scored, and the rest is arithmetic."""

import copy
import math
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from setscore import scorers
from setscore.backbones import Backbone, backbone_spec, check_backbone, load_backbone, split_name
from setscore.backbones.host import cores, peak_memory
from setscore.backbones.specs import DEFAULT_MODEL
from setscore.batch.identity import labels_of
from setscore.batch.inputs import Input
from setscore.batch.plan import TOLD
from setscore.classifier import SetScoreClassifier
from setscore.errors import SetScoreError, unknown_name
from setscore.prompts import Template
from setscore.records import Progress
from setscore.scorers import Reading
from setscore.scorers.passages import in_doubt, passages
from setscore.shortlist import Shortlist, shortlist_of

DRAWN = 1024  # documents that are kept of all rows, by chance
GROUP = 64  # documents that are timed together
WARM = 8  # documents before anything is timed: the first ones pay for what is loaded
SECONDS = 10.0  # of measuring
LOOKED = 32  # texts that are read as a whole, to see about how many labels their passages would be asked
IN_DOUBT = 0.1  # of the labels, where the model is not here to be asked: as in recipes/LOG.md

# Tokens a second on one GPU in bf16: for each shape the least of docs/results/gpu.md, by benchmarks/speed/gpu.py.
GPUS: dict[str, dict[str, dict[str, float]]] = {
    "h200": {
        "LLaDA-8B": {"exact": 43_338, "shared": 40_049},
        "Dream-7B": {"exact": 46_818, "shared": 43_735},
        "LLaDA2-mini": {"exact": 220_488, "shared": 210_490},
    }
}
GPU_MEMORY = {"LLaDA-8B": 18.4, "Dream-7B": 17.8, "LLaDA2-mini": 34.9}  # GB, the most of the same page
SHAPES = {
    **dict.fromkeys(("llada-8b-base", "llada-8b-instruct", "llada-1.5"), "LLaDA-8B"),
    **dict.fromkeys(("dream-7b-base", "dream-7b-instruct"), "Dream-7B"),
    **dict.fromkeys(("llada2-mini", "llada2.1-mini"), "LLaDA2-mini"),
}


@dataclass(frozen=True)
class Work:
    """What is to be done: rows, of them those that cannot be used, and tokens.

    document_tokens  a document has on average, as far as the model reads
    question_tokens  all questions about one document have
    tokens           that the model computes for all rows
    """

    rows: int
    failed: int
    characters: int
    labels: int
    document_tokens: float
    question_tokens: int
    forwards: int
    tokens: int
    attention: str


@dataclass(frozen=True)
class Machine:
    """What one machine takes for all of it: seconds, with the ends of a 95% interval, and bytes of memory."""

    name: str
    seconds: float
    low: float
    high: float
    memory: float
    measured: int


@dataclass(frozen=True)
class Drawn:
    """A look at all rows: how many there are, and some texts of them, drawn by chance."""

    rows: int
    failed: int
    characters: int
    texts: tuple[str, ...]


def draw(source: Input, progress: Progress | None = None) -> Drawn:
    """Reads all rows once; each has the same chance to be among the texts that are kept."""
    chance = random.Random(source.seed)
    texts: list[str] = []
    rows = failed = characters = 0
    for place, _, row in source.rows():
        if progress is not None and place % TOLD == 0:
            progress("reading", place, 0)
        if not source.takes(place):
            continue
        rows += 1
        if row.document is None:
            failed += 1
        else:
            characters += len(row.document.text)
            if len(texts) < DRAWN:
                texts.append(row.document.text)
            elif (number := chance.randrange(rows - failed)) < DRAWN:
                texts[number] = row.document.text
        if rows == source.limit:
            break
    if not texts:
        raise SetScoreError(f"there is nothing to score among {rows} rows.")
    chance.shuffle(texts)
    return Drawn(rows, failed, characters, tuple(texts))


def work(classifier: SetScoreClassifier, drawn: Drawn) -> Work:
    """Tokens and forwards, from the texts that were drawn. A model of SHAPES is not loaded: it is counted with the
    embedded one's tokens, which are words and parts of words as well."""
    name, labels = classifier.backbone, labels_of(classifier)
    spec = backbone_spec(name) if isinstance(name, str) else name.spec
    attention = _attention(classifier)
    template, counting = Template.of(classifier.template), _counting(classifier)
    asked = [len(counting.spans(_words(template, text))) + 1 for text in labels.texts]
    room = spec.context - spec.special_tokens - max(asked)
    reading = Reading(classifier.long_documents, classifier.pool, classifier.overlap)
    most = 1 if classifier.long_documents == "truncate" else spec.windows
    lengths = [min(len(counting.spans(text)), room * most) for text in drawn.texts]
    passes = float(np.mean([max(1, math.ceil(length / room)) for length in lengths]))
    mean = float(np.mean(lengths))
    shortlist = None if classifier.shortlist is None else shortlist_of(classifier.shortlist)
    count = min(len(labels), shortlist.k) if isinstance(shortlist, Shortlist) else len(labels)
    forwards = scorers.make(classifier.scorer, template, reading).cost(count, shared=attention == "shared")
    questions = round(sum(asked) * count / len(labels))  # about one document
    written = questions if classifier.scorer == "per_label" else questions * forwards  # others ask all at once
    each = Reread() if classifier.long_documents != "passages" else reread(classifier, drawn.texts, lengths, count)
    usable = drawn.rows - drawn.failed
    return Work(
        rows=drawn.rows,
        failed=drawn.failed,
        characters=drawn.characters,
        labels=len(labels),
        document_tokens=mean,
        question_tokens=questions,
        forwards=round(usable * forwards * (passes + each.passes)),
        tokens=round(usable * (forwards * (mean + each.tokens) + written * (passes + each.questions))),
        attention=attention,
    )


@dataclass(frozen=True)
class Reread:
    """What passages add to a document, on average: each is one more pass, together they are the document once more.

    passes     for each forward that the whole takes
    tokens     of passages that are read, for each such forward
    questions  how many times as many as about the whole
    """

    passes: float = 0.0
    tokens: float = 0.0
    questions: float = 0.0


def reread(classifier: SetScoreClassifier, texts: Sequence[str], lengths: Sequence[int], labels: int) -> Reread:
    """Only labels in doubt are asked about passages: how many, a few texts say that are read as a whole.

    Where a document is read once for all labels, so are its passages, unless none is in doubt.
    """
    counts = np.array([len(passages(text)) for text in texts])
    chosen = np.flatnonzero(counts)[:LOOKED]
    if not chosen.size:
        return Reread()
    if _is_far(classifier):
        doubtful, some = IN_DOUBT, 1 - (1 - IN_DOUBT) ** labels
    else:
        scores = _model_alone(classifier).classify([texts[place] for place in chosen]).scores
        found = in_doubt(scores.log_odds)
        shares = found.sum(axis=1) / np.maximum(1, scores.scored.sum(axis=1))
        doubtful = float(np.average(shares, weights=counts[chosen]))
        some = float(np.average(found.any(axis=1), weights=counts[chosen]))
    share = some if _attention(classifier) == "shared" else doubtful
    mean = float(np.mean(counts))
    return Reread(mean * share, float(np.mean(np.where(counts > 0, lengths, 0))) * share, mean * doubtful)


def _model_alone(classifier: SetScoreClassifier) -> SetScoreClassifier:
    """A copy that asks about whole texts, without a cosine in its scores; it stores nothing, as all is timed later."""
    plain = copy.copy(classifier)
    plain.long_documents, plain.blend, plain.store = "auto", None, None
    if hasattr(plain, "fitted_"):
        plain.fitted_ = replace(plain.fitted_, blend=None)
    return plain


def _attention(classifier: SetScoreClassifier) -> str:
    name = classifier.backbone
    if not isinstance(name, str):
        return name.attention
    return backbone_spec(name).attention[0] if classifier.attention == "auto" else classifier.attention


def _counting(classifier: SetScoreClassifier) -> Backbone:
    return load_backbone(DEFAULT_MODEL if _is_far(classifier) else classifier.backbone)


def _is_far(classifier: SetScoreClassifier) -> bool:
    """Whether the model is one that is estimated without being loaded."""
    name = classifier.backbone
    return isinstance(name, str) and split_name(name)[0] in SHAPES


def _words(template: Template, label: str) -> str:
    query = template.query("", label)
    return query.prefix + "".join(piece for piece in query.question if isinstance(piece, str))


def measure(
    classifier: SetScoreClassifier, drawn: Drawn, seconds: float = SECONDS, progress: Progress | None = None
) -> Machine:
    """The time of all rows here, from groups of the drawn texts that are scored for some seconds."""
    texts = drawn.texts
    classifier.classify(texts[:WARM])
    taken: list[float] = []
    begun, start = time.perf_counter(), 0
    while len(taken) < 2 or (time.perf_counter() - begun < seconds and start < len(texts)):
        group = [texts[place % len(texts)] for place in range(start, start + GROUP)]
        before = time.perf_counter()
        classifier.classify(group)
        taken.append((time.perf_counter() - before) / len(group))
        start += GROUP
        if progress is not None:
            progress("measuring", min(start, len(texts)), len(texts))
    mean = float(np.mean(taken))
    error = 1.96 * float(np.std(taken, ddof=1)) / math.sqrt(len(taken))
    usable = drawn.rows - drawn.failed
    low, high = max(0.0, mean - error), mean + error
    name = f"this machine, {cores()} cores"
    return Machine(name, mean * usable, low * usable, high * usable, peak_memory(), min(start, len(texts)))


def on_gpu(classifier: SetScoreClassifier, found: Work, gpu: str) -> Machine:
    """The time of all rows on one GPU of the measured table; nothing is run."""
    if gpu not in GPUS:
        raise SetScoreError(unknown_name("GPU", gpu, GPUS))
    name = classifier.backbone
    base = split_name(name)[0] if isinstance(name, str) else name.spec.name
    if isinstance(name, str):
        check_backbone(base)
    if base not in SHAPES:
        raise SetScoreError(
            f"{base} was not measured on a GPU; the table has {', '.join(SHAPES)}. Without --gpu it is measured here."
        )
    shape = SHAPES[base]
    seconds = found.tokens / GPUS[gpu][shape][found.attention]
    return Machine(f"one {gpu.upper()}", seconds, seconds, seconds, GPU_MEMORY[shape] * 1e9, 0)


def costs(machine: Machine, machines: Sequence[int], price: float | None) -> list[tuple[int, float, float | None]]:
    """For each number of machines: seconds, and what they cost at a price an hour, which is the same for any number."""
    hours = machine.seconds / 3600
    return [(count, machine.seconds / count, None if price is None else hours * price) for count in machines]
