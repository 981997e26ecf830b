"""The table of a report as Markdown, LaTeX and CSV."""

import csv
import io
from collections.abc import Callable, Sequence
from pathlib import Path

from setscore.errors import SetScoreError, unknown_name
from setscore.experiments.reporting.content import COLUMNS, Section, shown
from setscore.storage import write_bytes

LATEX = {"&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}", "±": r"$\pm$",
         "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"}  # fmt: skip


def rows(sections: Sequence[Section]) -> list[list[str]]:
    """Header and cells; columns that no run fills are left out."""
    used = [key for key in COLUMNS if any(shown(one.row, key) for one in sections)]
    return [[COLUMNS[key] for key in used], *([shown(one.row, key) for key in used] for one in sections)]


def markdown(sections: Sequence[Section]) -> str:
    head, *body = rows(sections)
    lines = [head, ["---"] * len(head), *([cell.replace("|", "\\|") for cell in line] for line in body)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def latex(sections: Sequence[Section]) -> str:
    head, *body = rows(sections)
    lines = [" & ".join("".join(LATEX.get(sign, sign) for sign in cell) for cell in line) + r" \\" for line in body]
    names = " & ".join("".join(LATEX.get(sign, sign) for sign in cell) for cell in head)
    columns = "l" * 5 + "r" * (len(head) - 5)
    parts = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", rf"{names} \\", r"\midrule", *lines]
    return "\n".join([*parts, r"\bottomrule", r"\end{tabular}", ""])


def as_csv(sections: Sequence[Section]) -> str:
    """Numbers as they are, in fractions: for a spreadsheet, not for a page."""
    keys = [*COLUMNS, "micro_f1_sd", "macro_f1_sd"]
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(keys)
    for one in sections:
        writer.writerow([_safe(one.row.get(key)) for key in keys])
    return buffer.getvalue()


def _safe(value: object) -> object:
    """A spreadsheet would run a text that begins like a formula."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@") else value


FORMATS: dict[str, tuple[str, Callable[[Sequence[Section]], str]]] = {
    "markdown": (".md", markdown),
    "latex": (".tex", latex),
    "csv": (".csv", as_csv),
}


def check_formats(formats: Sequence[str]) -> None:
    for name in formats:
        if name not in FORMATS:
            raise SetScoreError(unknown_name("format", name, FORMATS))


def write_tables(sections: Sequence[Section], page: Path, formats: Sequence[str]) -> list[Path]:
    """The table beside the page, in each of the formats."""
    made = []
    for name in formats:
        ending, write = FORMATS[name]
        path = page.with_suffix(ending)
        write_bytes(path, write(sections).encode())
        made.append(path)
    return made
