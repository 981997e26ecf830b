"""`setscore calibrate`: a classifier fitted on one's own labelled documents, saved for `setscore classify`."""

import warnings
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from setscore.calibration import CALIBRATIONS
from setscore.cli import options
from setscore.cli.console import progress, remark, results, watch
from setscore.errors import FewDocumentsWarning, SetScoreError
from setscore.experiments import cross_validated, prepare_own
from setscore.experiments.comparison import learnt, seed_classifier
from setscore.experiments.report import calibrated, score_parts


@options.grouped
def calibrate(
    *,
    own: options.Own,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where the classifier is saved.", show_default=False)
    ] = None,
    calibration: Annotated[str, typer.Option(help=f"One of {', '.join(CALIBRATIONS)}.")] = "auto",
    model: options.Model,
    save: options.Save = None,
) -> None:
    """Fit temperature, biases and thresholds on labelled documents (about 200 will do) and save the classifier.

    The model's weights stay as they are. The F1 that is printed is cross-validated: decisions on documents that the
    calibration was not fitted on.

    Examples:

        setscore calibrate --file tickets.csv --labels labels.yaml --out classifier.json

        setscore calibrate --file tickets.csv --labels labels.yaml --scorer milp --out classifier.json

        setscore classify --file new.csv --classifier classifier.json --format csv
    """
    if own.file is None or out is None:
        raise SetScoreError("labelled documents and a place for the classifier are needed: --file FILE --out FILE.")
    options.check_folder(out)
    (kind,) = options.parse_calibrations(calibration, several=False)
    dataset, classifier = own.load(), model.classifier()
    experiment = prepare_own(dataset)
    with progress() as bar:
        if seed := seed_classifier(classifier):  # such a scorer learns from these documents before it scores them
            seeds = score_parts(experiment, seed, tell=watch(bar, dataset.name))["pool"]
            classifier = learnt(classifier, seeds, kind)
        scored = score_parts(experiment, classifier, save=save, tell=watch(bar, dataset.name))["pool"]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", FewDocumentsWarning)
        fitted = calibrated(classifier, dataset.labels, scored, kind)
    fitted.save(out)
    for text in (*(str(warning.message) for warning in caught), *dataset.notes):
        remark(text)
    if cut := int(scored.truncated.sum()):
        remark(
            f"{cut} of {len(scored)} documents were truncated: only their beginning was read."
            " Use --long-documents chunk to read them whole."
        )
    results.print(f"fitted on {len(scored)} documents, {len(dataset.labels)} labels")
    results.print(f"chosen: {escape(fitted.calibration_.choice_)}", soft_wrap=True)
    if len(scored) > 1:
        found = cross_validated(scored, kind)
        results.print(
            f"cross-validated: micro-F1 {100 * found['micro_f1']:.1f}, macro-F1 {100 * found['macro_f1']:.1f}"
        )
    results.print(f"saved: {escape(str(out))}", soft_wrap=True)
