"""Names that are written as identifiers, in the words that people would say."""

import re
from collections.abc import Sequence

_HUMP = re.compile("(?<=[a-z0-9])(?=[A-Z][a-z])|(?<=[a-z])(?=[A-Z]{2,}$)|(?<=[A-Z])(?=[A-Z][a-z])")  # Tech|Support


def in_words(names: Sequence[str]) -> list[str]:
    """Identifiers as people say them: late_delivery is "late delivery", and LateDelivery too if others look like it.

    A single name with capitals inside is rather one word, such as JavaScript, and so is one beside names with spaces.
    """
    single = [not any(map(str.isspace, name.strip())) for name in names]
    humps = all(single) and sum(bool(_HUMP.search(name)) for name in names) > 1
    words = [
        name.replace("_", " ").strip() or name if alone else name for name, alone in zip(names, single, strict=True)
    ]
    return [_HUMP.sub(" ", name) for name in words] if humps else words
