"""Labels given beside a saved classifier, which has its own: they must be the same ones."""

from collections.abc import Sequence

from setscore.errors import SetScoreError
from setscore.records import LabelSet

SHOWN = 5


def agreement(saved: LabelSet, given: LabelSet, whose: str) -> str | None:
    """What to remark of descriptions, which stay those of the saved classifier; other names are an error.

    The order does not count: what was learned belongs to names, not to places. `whose` says where labels are given.
    """
    ours, theirs = set(saved.names), set(given.names)
    if ours != theirs:
        only = [
            f"only {who} has {_some(sorted(names))}"
            for who, names in (("the classifier", ours - theirs), (whose, theirs - ours))
            if names
        ]
        raise SetScoreError(
            f"the saved classifier was made for other labels than these: {'; '.join(only)}. Use it with its"
            " own labels, fit another with `setscore calibrate`, or give it more labels in Python with `with_labels`."
        )
    described = {label.name: label.description for label in given.labels}
    other = [label.name for label in saved.labels if described[label.name] not in (None, label.description)]
    if not other:
        return None
    return f"descriptions are those of the saved classifier; given were others, of {_some(other)}."


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{', '.join(names[:SHOWN])}{more}"
