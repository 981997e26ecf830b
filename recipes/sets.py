"""Label sets that were judged whole, and where a text would meet them again.

A judged label set suits the other texts of the sources that its own texts come from: nobody has judged these, but a
teacher can say which labels apply. It knows the labels, and so a run sees them for more texts than were judged.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from recipes.sources import judged
from recipes.sources.rows import Label, Row
from recipes.sources.written import SOURCE

JUDGED = f"{SOURCE}{judged.NAME}-"


def judged_sets(rows: Sequence[Row], sources: Mapping[str, int]) -> tuple[list[list[Label]], list[list[int]]]:
    """The labels of each judged set, and by source the numbers of the sets that were judged for texts of it."""
    homes = defaultdict[str, set[str]](set)
    for row in rows:
        if not row.source.startswith(JUDGED):
            homes[row.document].add(row.source)
    numbers, labels = dict[str, int](), list[dict[Label, None]]()
    near = defaultdict[str, dict[int, None]](dict)
    for row in rows:
        if row.source.startswith(JUDGED):
            number = numbers.setdefault(row.name, len(numbers))
            if number == len(labels):
                labels.append({})
            labels[number] |= dict.fromkeys((*row.yes, *row.no))
            for source in homes[row.document]:
                near[source][number] = None
    return [list(each) for each in labels], [list(near[source]) for source in sources]
