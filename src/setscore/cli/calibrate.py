"""`setscore calibrate`: a classifier fitted on labelled documents, saved for `setscore classify`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from setscore import __version__, fitting
from setscore.calibration import spelt
from setscore.classifier import SetScoreClassifier
from setscore.cli import options
from setscore.cli.console import abstained, literal, progress, remark, results, show_labels, show_outcomes, watch_steps
from setscore.datasets import Dataset, find_source, load_dataset
from setscore.ensemble import BLENDS, blend_of
from setscore.errors import SetScoreError, counted, truncation
from setscore.experiments import Outcome, Scored, cross_validated
from setscore.experiments.evaluation import VALIDATION_SIZE
from setscore.experiments.saved import open_folder
from setscore.experiments.scored import UNFITTED, Kind, decided, describe
from setscore.metrics import compare
from setscore.storage import write_json

FORMAT = "setscore.calibration/1"
WORTH_TELLING = 1.0  # points of micro-F1 that another setting must gain
SUGGESTED = "own-cosine"  # the blend that costs nothing but time with the embedded model


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
    classifier = model.classifier()
    pool = _pool(name, own, data_dir)
    wanted = size if own.file is not None else size or VALIDATION_SIZE
    drawn = pool if wanted is None or wanted >= len(pool) else pool.draw(wanted, seed)[0]
    classifier.set_params(labels=drawn.labels, calibration=kind, store=None if save is None else open_folder(save))
    unfitted = classifier.current_calibration()
    with progress() as bar:
        classifier.fit(drawn.texts, drawn.gold, progress=watch_steps(bar, f"{drawn.name}: ", "document"))
    before, scored = _scored(classifier, drawn)
    outcomes = {UNFITTED: decided(unfitted, before, UNFITTED)}
    if len(scored) > 1:
        outcomes[f"{kind}, cross-validated"] = cross_validated(scored, kind)
    remarks = list(_remarks(classifier, scored, list(outcomes.values())))
    if classifier.blend is None and scored.config["model"] == BLENDS[SUGGESTED] and _seeks_micro_f1(classifier):
        remarks += _suggested(scored, drawn, kind, list(outcomes.values())[-1])
    if json is not None:
        told = [*filter(None, [fitting.few_documents(len(scored))]), *remarks]
        write_json(json, FORMAT, _as_json(classifier, scored, outcomes) | {"seed": seed, "remarks": told})
    if out is not None:  # before anything is printed: a reader such as `head` may close the pipe
        classifier.save(out)
    _show(classifier, scored, outcomes, remarks, per_label=per_label)
    if out is None:
        remark("the classifier was not saved: --out FILE saves it.")
    else:
        results.print(f"saved: {literal(str(out))}", soft_wrap=True)


def _scored(fitted: SetScoreClassifier, drawn: Dataset) -> tuple[Scored, Scored]:
    """The scores that `fit` was given, mixed as before it and as after it where there is a blend."""
    config, cut = describe(fitted, drawn), fitted.fit_scores_.truncated
    plain = None if fitted.blend is None else blend_of(fitted.blend)
    before, after = (fitting.mixed(fitted.fit_members_, blend) for blend in (plain, fitted.fitted_.blend))
    return Scored.of(drawn, before, config, truncated=cut), Scored.of(drawn, after, config, truncated=cut)


def _remarks(fitted: SetScoreClassifier, scored: Scored, outcomes: Sequence[Outcome]) -> Iterator[str]:
    """What to know of the documents and the blend, and what speaks against using the fit."""
    yield from scored.notes
    if (blend := fitted.fitted_.blend) is not None:
        yield f"blend: {blend.sentence()}, chosen on all of these documents, which flatters the cross-validated row."
    if cut := int(scored.truncated.sum()):
        yield f"{truncation(cut, len(scored))} Use --long-documents chunk to read them whole."
    was, now = (100 * one.metrics["micro_f1"] for one in (outcomes[0], outcomes[-1]))
    if not scored.gold.any():
        yield "none of these documents has a gold label: all that can be learned from them is to predict nothing."
    elif now < was and _seeks_micro_f1(fitted):
        yield (
            f"micro-F1 is {now:.1f} cross-validated and {was:.1f} with nothing fitted: look at the gold labels, or"
            " label more documents before you use this fit."
        )


def _seeks_micro_f1(fitted: SetScoreClassifier) -> bool:
    return getattr(fitted.calibration_, "objective", None) == "micro_f1"


def _suggested(scored: Scored, drawn: Dataset, kind: Kind, alone: Outcome) -> Iterator[str]:
    """The blend that the embedded model could have, where these documents leave little doubt that it is better."""
    if fitting.few_documents(len(scored)) is not None or not scored.gold.any() or alone.decisions is None:
        return
    from setscore.experiments.blending import score_blend, weigh

    mixed, _ = weigh(scored, score_blend({"slice": drawn}, SUGGESTED)["slice"], SUGGESTED)
    blended = cross_validated(mixed, kind)
    assert blended.decisions is not None  # as in the one beside it
    gain = compare(scored.gold, alone.decisions, blended.decisions)["micro_f1"]
    if 100 * gain.difference >= WORTH_TELLING and gain.low > 0:
        was, now = (100 * one.metrics["micro_f1"] for one in (alone, blended))
        yield (
            f"with --blend {SUGGESTED} micro-F1 would be {now:.1f} cross-validated instead of {was:.1f}, its weights"
            " chosen on all of these documents."
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
    found = load_dataset(source.name, source.validation, data_dir)
    return found.with_labels(found.labels.asked_by(own.label_text))


def _show(
    fitted: SetScoreClassifier, scored: Scored, outcomes: Mapping[str, Outcome], remarks: list[str], *, per_label: bool
) -> None:
    results.print(f"fitted on {counted(len(scored), 'document')}, {counted(len(scored.labels), 'label')}")
    results.print(f"chosen: {literal(fitted.calibration_.choice_)}\n", soft_wrap=True)
    show_outcomes(outcomes)
    last, outcome = list(outcomes.items())[-1]
    if per_label:
        show_labels(last, [outcome.labels])
    for text in (*remarks, abstained(last, outcome.metrics)):
        if text:
            remark(text)


def _as_json(fitted: SetScoreClassifier, scored: Scored, outcomes: Mapping[str, Outcome]) -> dict[str, Any]:
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
                "choice": outcome.choice,
                "metrics": dict(outcome.metrics),
                "intervals": {key: asdict(interval) for key, interval in outcome.intervals.items()},
                "labels": [dict(label) for label in outcome.labels],
            }
            for name, outcome in outcomes.items()
        ],
    }
