"""Which classifier a request means. Names are looked up, never opened: nothing in a request is a path."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping

from setscore.classifier import SetScoreClassifier
from setscore.errors import LabelError, counted, unknown_name
from setscore.pipelines import ZeroShotPipeline
from setscore.records import LABEL_TEXTS, Document, Label, LabelSet
from setscore.server.errors import invalid, too_large, unknown
from setscore.server.settings import Limits, Settings

REMEMBERED = 256  # classifiers of late requests: equal ones are asked together


class Catalogue:
    """The classifiers that were given to the server, and those that requests describe."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._recent: OrderedDict[Hashable, SetScoreClassifier] = OrderedDict()

    @property
    def names(self) -> list[str]:
        return list(self._settings.served)

    def default(self) -> SetScoreClassifier:
        if not self._settings.served:
            raise invalid("this server was started without labels of its own. Send labels with the documents.")
        return next(iter(self._settings.served.values()))

    def named(self, name: str | None, threshold: float | None = None) -> SetScoreClassifier:
        """A classifier by its name, or the default; with another threshold, a copy."""
        if name is None:
            found = self.default()
        elif name in self._settings.served:
            found = self._settings.served[name]
        else:
            raise unknown(unknown_name("classifier", name, self._settings.served))
        if threshold is None:
            return found
        return self._kept((name, threshold), lambda: found.with_threshold(threshold))

    def described(
        self,
        labels: Mapping[str, str | None],
        *,
        threshold: float | None = None,
        competition: float | None = None,
        label_text: str = LABEL_TEXTS[0],
    ) -> SetScoreClassifier:
        """A classifier for the labels of a request."""
        self._check_labels(labels)
        changed = {"threshold": threshold, "competition": competition}
        given = {key: value for key, value in changed.items() if value is not None}

        def make() -> SetScoreClassifier:
            params = self._settings.described.get_params(deep=False)
            inventory = LabelSet(tuple(Label(name, text) for name, text in labels.items()), label_text)
            return SetScoreClassifier(**{**params, "labels": inventory, **given})

        return self._kept((tuple(labels.items()), label_text, *given.items()), make)

    def zero_shot(self, labels: list[str], hypothesis: str | None) -> SetScoreClassifier:
        """The classifier behind `setscore.pipeline`."""
        self._check_labels(labels)
        base = self._settings.described
        asker = ZeroShotPipeline(base.backbone, base.attention, base.competition)
        return self._kept((tuple(labels), hypothesis), lambda: asker.classifier(labels, hypothesis))

    def _check_labels(self, labels: Mapping[str, str | None] | list[str]) -> None:
        most = self._settings.limits.labels
        if len(labels) > most:
            raise too_large(f"{counted(len(labels), 'label')} were sent, {most} may be.")

    def _kept(self, key: Hashable, make: Callable[[], SetScoreClassifier]) -> SetScoreClassifier:
        if key not in self._recent:
            try:
                self._recent[key] = make()
            except LabelError as error:
                raise invalid(str(error)) from error
            while len(self._recent) > REMEMBERED:
                self._recent.popitem(last=False)
        self._recent.move_to_end(key)
        return self._recent[key]


def check_size(documents: Iterable[Document], labels: Iterable[str | None], limits: Limits) -> None:
    """413 for more than a request may ask."""
    texts = [document.text for document in documents]
    if len(texts) > limits.documents:
        raise too_large(f"{counted(len(texts), 'document')} were sent, {limits.documents} may be in one request.")
    characters = sum(map(len, texts)) + sum(len(label or "") for label in labels)
    if characters > limits.characters:
        raise too_large(f"{characters:,} characters were sent, {limits.characters:,} may be in one request.")
