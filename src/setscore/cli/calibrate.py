"""`setscore calibrate`: a classifier fitted on labelled documents, saved for `setscore classify`."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from setscore import __version__
from setscore.calibration import spelt
from setscore.classifier import SetScoreClassifier
from setscore.cli import options
from setscore.cli.console import literal, progress, remark, results, watch
from setscore.cli.tables import abstained, show_labels, show_rows
from setscore.datasets import Dataset, find_source, load_dataset
from setscore.ensemble import BLENDS, Ensemble
from setscore.errors import FewDocumentsWarning, SetScoreError, counted, truncation
from setscore.experiments import Row, Scored, cross_validated
from setscore.experiments.blending import OWN, before_fit, score_blend, split_blend, weigh
from setscore.experiments.comparison import learnt, seed_classifier
from setscore.experiments.evaluation import UNFITTED, VALIDATION_SIZE, Kind, unfitted
from setscore.experiments.report import calibrated, draw_slice, remembering, score_slice
from setscore.fitting import few_documents
from setscore.metrics import compare
from setscore.storage import write_json

FORMAT = "setscore.calibration/1"
WORTH_TELLING = 1.0  # points of micro-F1 that another setting must gain


@options.grouped
def calibrate(
    *,
    name: Annotated[
        str | None, typer.Argument(help="A dataset (see `setscore datasets`), or --file.", show_default=False)
    ] = None,
    own: options.Own,
    data_dir: options.DataDir = None,
    seed: Annotated[int, typer.Option(min=0, help="Draws the documents to fit on.")] = 13,
    size: Annotated[
        int | None,
        typer.Option(
            min=1,
            help=f"How many documents are drawn; {VALIDATION_SIZE} of a dataset, all of a file.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where the classifier is saved.", show_default=False)
    ] = None,
    calibration: Annotated[str, typer.Option(help=f"One of {options.CALIBRATION}")] = "auto",
    model: options.Model,
    save: options.Save = None,
    json: Annotated[Path | None, typer.Option(help="A file for what was chosen and all metrics.")] = None,
    per_label: Annotated[bool, typer.Option("--per-label", help="Also a row for each label.")] = False,
) -> None:
    """Fit temperature, biases and thresholds on labelled documents (about 200 will do) and save the classifier.

    The documents are your own file, or are drawn from a dataset's validation split. The model's weights stay as they
    are. The F1 that is printed is cross-validated: decisions on documents that the calibration was not fitted on.

    Examples:

        setscore calibrate --file tickets.csv --labels labels.yaml --out classifier.json

        setscore calibrate --file tickets.csv --labels labels.yaml --calibration "auto?objective=macro_f1&most=3"

        setscore calibrate goemotions --data-dir DATA --seed 17 --save scores --out emotions.json

        setscore classify --file new.csv --classifier classifier.json --format csv
    """
    for path in (out, json):
        if path is not None:
            options.check_folder(path)
    (kind,) = options.parse_calibrations(calibration, several=False)
    classifier, blend = split_blend(model.classifier())
    pool = _pool(name, own, data_dir)
    wanted = size if own.file is not None else size or VALIDATION_SIZE
    classifier = remembering(classifier, draw_slice(pool, wanted, seed))
    with progress() as bar:
        told = watch(bar, pool.name)
        if start := seed_classifier(classifier):  # such a scorer learns from these documents before it scores them
            classifier = learnt(classifier, score_slice(pool, wanted, seed, start, tell=told), kind)
        scored = score_slice(pool, wanted, seed, classifier, save=save, tell=told)
    before, chosen = scored, None
    if blend is not None:
        cosine = score_blend({"slice": draw_slice(pool, wanted, seed)}, blend)["slice"]
        before, (scored, chosen) = before_fit(scored, cosine, blend), weigh(scored, cosine, blend)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", FewDocumentsWarning)
        fitted = calibrated(classifier, pool.labels, scored, kind, chosen)
    rows = {UNFITTED: unfitted(before)}
    if len(scored) > 1:
        rows[f"{kind}, cross-validated"] = cross_validated(scored, kind)
    remarks = [*(str(warning.message) for warning in caught), *_remarks(fitted, scored, chosen, list(rows.values()))]
    if blend is None and scored.config["backbone"] == BLENDS[OWN] and _seeks_micro_f1(fitted):
        remarks += _suggested(scored, draw_slice(pool, wanted, seed), kind, list(rows.values())[-1])
    if json is not None:
        write_json(json, FORMAT, _as_json(fitted, scored, rows) | {"seed": seed, "remarks": remarks})
    if out is not None:  # before anything is printed: a reader such as `head` may close the pipe
        fitted.save(out)
    _show(fitted, scored, rows, remarks, per_label=per_label)
    if out is None:
        remark("the classifier was not saved: --out FILE saves it.")
    else:
        results.print(f"saved: {literal(str(out))}", soft_wrap=True)


def _remarks(fitted: SetScoreClassifier, scored: Scored, chosen: Ensemble | None, rows: Sequence[Row]) -> Iterator[str]:
    """What to know of the documents and the blend, and what speaks against using the fit."""
    yield from scored.notes
    if chosen is not None:
        yield f"blend: {chosen.sentence()}, chosen on all of these documents, which flatters the cross-validated row."
    if cut := int(scored.truncated.sum()):
        yield f"{truncation(cut, len(scored))} Use --long-documents chunk to read them whole."
    was, now = (100 * row.metrics["micro_f1"] for row in (rows[0], rows[-1]))
    if not scored.gold.any():
        yield "none of these documents has a gold label: all that can be learnt from them is to predict nothing."
    elif now < was and _seeks_micro_f1(fitted):
        yield (
            f"micro-F1 is {now:.1f} cross-validated and {was:.1f} with nothing fitted: look at the gold labels, or"
            " label more documents before you use this fit."
        )


def _seeks_micro_f1(fitted: SetScoreClassifier) -> bool:
    return getattr(fitted.calibration_, "objective", None) == "micro_f1"


def _suggested(scored: Scored, drawn: Dataset, kind: Kind, row: Row) -> Iterator[str]:
    """The blend that the embedded model could have, where these documents leave little doubt that it is better."""
    if few_documents(len(scored)) is not None or not scored.gold.any() or row.decisions is None:
        return
    mixed, _ = weigh(scored, score_blend({"slice": drawn}, OWN)["slice"], OWN)
    blended = cross_validated(mixed, kind)
    assert blended.decisions is not None  # as in the row beside it
    gain = compare(scored.gold, row.decisions, blended.decisions)["micro_f1"]
    if 100 * gain.difference >= WORTH_TELLING and gain.low > 0:
        was, now = (100 * one.metrics["micro_f1"] for one in (row, blended))
        yield (
            f"with --blend {OWN} micro-F1 would be {now:.1f} cross-validated instead of {was:.1f}, its weights chosen"
            " on all of these documents."
        )


def _pool(name: str | None, own: options.Own, data_dir: Path | None) -> Dataset:
    """The labelled documents to draw from."""
    if name is None:
        if own.file is None:
            raise SetScoreError("labelled documents are needed: --file FILE, or a dataset (see `setscore datasets`).")
        if data_dir is not None:
            raise SetScoreError("--file stands alone: remove --data-dir.")
        return own.load()
    if own.file is not None:
        raise SetScoreError(f"--file stands alone: remove {name!r}.")
    source = find_source(name)
    return load_dataset(source.name, source.validation, data_dir)


def _show(
    fitted: SetScoreClassifier, scored: Scored, rows: Mapping[str, Row], remarks: list[str], *, per_label: bool
) -> None:
    results.print(f"fitted on {counted(len(scored), 'document')}, {counted(len(scored.labels), 'label')}")
    results.print(f"chosen: {literal(fitted.calibration_.choice_)}\n", soft_wrap=True)
    show_rows(rows)
    last, row = list(rows.items())[-1]
    if per_label:
        show_labels(last, [row.labels])
    for text in (*remarks, abstained(last, row.metrics)):
        if text:
            remark(text)


def _as_json(fitted: SetScoreClassifier, scored: Scored, rows: Mapping[str, Row]) -> dict[str, Any]:
    calibration = fitted.calibration_
    return {
        "version": __version__,
        "dataset": scored.name,
        "documents": len(scored),
        "config": dict(scored.config),
        "calibration": spelt(calibration),
        "choice": calibration.choice_,
        "thresholds": dict(zip(scored.labels, calibration.thresholds_.tolist(), strict=True)),
        "rows": [
            {
                "name": name,
                "choice": row.choice,
                "metrics": dict(row.metrics),
                "intervals": {key: asdict(interval) for key, interval in row.intervals.items()},
                "labels": [dict(label) for label in row.labels],
            }
            for name, row in rows.items()
        ],
    }
