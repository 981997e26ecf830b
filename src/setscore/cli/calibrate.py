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
from setscore.cli.mistakes import Mistakes, write_mistakes
from setscore.cli.suggest import wrote
from setscore.datasets import Dataset, find_source, load_dataset
from setscore.ensemble import BLENDS, blend_of
from setscore.errors import DataFileError, SetScoreError, counted, plural, truncation
from setscore.experiments import Outcome, Scored, cross_validated
from setscore.experiments.evaluation import VALIDATION_SIZE
from setscore.experiments.learning import (
    CALIBRATED_ONLY,
    HONEST,
    LEAST_CURVE,
    Point,
    cross_validated_fit,
    draw_curve,
    in_words,
    label_changes,
    learning_curve,
)
from setscore.experiments.pictures import check_plots
from setscore.experiments.saved import open_folder
from setscore.experiments.scored import UNFITTED, Kind, decided, describe
from setscore.metrics import compare
from setscore.persistence import ENDING, PACKED
from setscore.persistence import FORMAT as SAVED_AS
from setscore.storage import read_json, write_json

FORMAT = "setscore.calibration/1"
MOST_CHANGED = 5  # labels that are told of unless all are wanted
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
    head: Annotated[
        str,
        typer.Option(
            help="readout learns on top of the model's scores, none only calibrates them, as the paper does; auto is"
            " readout unless --calibration names one."
        ),
    ] = "auto",
    objective: Annotated[
        str | None,
        typer.Option(help="micro_f1, macro_f1 or balanced (both alike), the default with a head.", show_default=False),
    ] = None,
    curve: Annotated[
        Path | None,
        typer.Option(help="A .png with F1 by the number of labelled documents (extra plots).", show_default=False),
    ] = None,
    per_label: Annotated[bool, typer.Option("--per-label", help="Also a row for each label.")] = False,
    mistakes: Mistakes = None,
) -> None:
    """Fit on labelled documents, say what that changed and what more of them would bring, and save the classifier.

    The documents are your own file, or are drawn from a dataset's validation split; a handful often helps, 200 do well.
    The model's weights stay as they are. The F1 that is printed is cross-validated: decisions on documents that were
    not fitted on.

    Examples:

        setscore calibrate --file tickets.csv --labels labels.yaml --out classifier.json

        setscore calibrate --file tickets.csv --labels labels.yaml --calibration "auto?objective=macro_f1&most=3"

        setscore calibrate --file tickets.csv --labels labels.yaml --curve curve.png --per-label

        setscore calibrate --file tickets.csv --labels labels.yaml --out tickets.json --mistakes mistakes.csv

        setscore calibrate goemotions --data-dir DATA --seed 17 --save scores --out emotions.json

        setscore classify --file new.csv --classifier classifier.json --format csv
    """
    for path in (out, json, curve, mistakes):
        if path is not None:
            options.check_folder(path)
    if curve is not None:
        check_plots()
    (kind,) = options.parse_calibrations(calibration, several=False)
    classifier = model.classifier().set_params(head=head, objective=objective, calibration=calibration).check()
    pool = _pool(name, own, data_dir)
    wanted = size if own.file is not None else size or VALIDATION_SIZE
    drawn = pool if wanted is None or wanted >= len(pool) else pool.draw(wanted, seed)[0]
    classifier.set_params(labels=drawn.labels, store=None if save is None else open_folder(save))
    unfitted = classifier.current_calibration()
    with progress() as bar:
        classifier.fit(drawn.texts, drawn.gold, progress=watch_steps(bar, f"{drawn.name}: ", "document"))
    before, scored = _scored(classifier, drawn)
    outcomes = {UNFITTED: decided(unfitted, before, UNFITTED)}
    learns = fitting.learns(head, calibration)
    if len(scored) > 1:
        outcomes[CALIBRATED_ONLY if learns else f"{kind}, cross-validated"] = cross_validated(scored, kind)
    points = _learned(classifier, scored, outcomes)
    remarks = list(_remarks(classifier, scored, list(outcomes.values())))
    empty = int((~drawn.gold.any(axis=1)).sum())
    if own.file is not None and len(drawn) / 2 <= empty < len(drawn):  # more than a file has that was filled in
        remarks.append(
            f"{empty} of {counted(len(drawn), 'document')} {plural(empty, 'has', 'have')} no label and taught that none"
            " applies. If nobody has looked at them yet, leave them out."
        )
    remarks += _picked(own.file)
    plain = not learns and classifier.blend is None and scored.config["model"] == BLENDS[SUGGESTED]
    if plain and _seeks_micro_f1(classifier):
        remarks += _suggested(scored, drawn, kind, list(outcomes.values())[-1])
    write_mistakes(mistakes, drawn, list(outcomes.values())[-1])
    if curve is not None:
        _draw(curve, points, drawn.name)
    if json is not None:
        few = None if learns else fitting.few_documents(len(scored))
        words = {"words": list(in_words(classifier.fitted_, points)), "curve": [asdict(point) for point in points]}
        told = {"seed": seed, "remarks": [*filter(None, [few]), *remarks]} | words
        write_json(json, FORMAT, _as_json(classifier, scored, outcomes) | told)
    if out is not None:  # before anything is printed: a reader such as `head` may close the pipe
        classifier.save(out)
    _show(classifier, scored, outcomes, points, per_label=per_label)
    for text in remarks:
        remark(text)
    if out is None:
        remark("the classifier was not saved: --out FILE saves it.")
    else:
        results.print(f"saved: {literal(_files(out))}", soft_wrap=True)


def _files(out: Path) -> str:
    """The files of a saved classifier: the arrays of a read-out lie beside its JSON."""
    if out.suffix == PACKED or "arrays" not in read_json(out, SAVED_AS):
        return str(out)
    return f"{out} and {out.with_suffix(ENDING).name}, which belong together"


def _scored(fitted: SetScoreClassifier, drawn: Dataset) -> tuple[Scored, Scored]:
    """The scores that `fit` was given, mixed as before it and as after it where there is a blend."""
    config, cut, known = describe(fitted, drawn), fitted.fit_scores_.truncated, fitted.fitted_.known
    assert known is not None  # the documents of a dataset have gold
    plain = None if fitted.blend is None else blend_of(fitted.blend)
    before, after = (fitting.mixed(known.members, blend) for blend in (plain, fitted.fitted_.blend))
    return Scored.of(drawn, before, config, truncated=cut), Scored.of(drawn, after, config, truncated=cut)


def _learned(fitted: SetScoreClassifier, scored: Scored, outcomes: dict[str, Outcome]) -> list[Point]:
    """Adds what the whole fit is worth on documents that it has not seen; the curve up to there."""
    state = fitted.fitted_
    if state.readout is None or state.known is None:
        return []
    aim = fitted.aim()
    outcomes[HONEST] = cross_validated_fit(scored, state.known, state.readout.labels, aim)
    return learning_curve(state.known, state.readout.labels, aim)


def _draw(path: Path, points: Sequence[Point], name: str) -> None:
    if len(points) > 1:
        draw_curve(path, points, name)
    else:
        remark(f"no curve was drawn: it takes a head and {LEAST_CURVE} documents.")


def _remarks(fitted: SetScoreClassifier, scored: Scored, outcomes: Sequence[Outcome]) -> Iterator[str]:
    """What to know of the documents and the blend, and what speaks against using the fit."""
    yield from scored.notes
    if (blend := fitted.fitted_.blend) is not None:
        yield f"blend: {blend.sentence()}, chosen on all of these documents, which flatters the cross-validated row."
    if cut := int(scored.truncated.sum()):
        yield f"{truncation(cut, len(scored))} Use --long-documents chunk to read them whole."
    if not scored.gold.any():
        yield "none of these documents has a gold label: all that can be learned from them is to predict nothing."
    elif worse := _worse(fitted, outcomes[0].metrics, outcomes[-1].metrics):
        enough = fitting.few_documents(len(scored)) is None
        advice = "Look at the gold labels, or label more documents before you use this fit."
        yield f"{worse}. {advice if enough else 'So few documents cannot tell which is better: label more.'}"


def _picked(file: Path | None) -> Iterator[str]:
    if file is not None and wrote(file):
        yield (
            "`setscore suggest` picked these documents because they are hard, so this report's numbers are usually"
            " lower than on others. Measure with `setscore evaluate --classifier` on documents drawn at random."
        )


def _worse(fitted: SetScoreClassifier, before: Mapping[str, float], after: Mapping[str, float]) -> str:
    """A clause if every F1 that the fit aims at is lower than with nothing fitted; else nothing."""
    aims = {"micro_f1": ("micro",), "macro_f1": ("macro",), "balanced": ("micro", "macro")}
    names = aims.get(getattr(fitted.calibration_, "objective", ""), ())
    if not names or any(after[f"{name}_f1"] >= before[f"{name}_f1"] for name in names):
        return ""
    told = (
        f"{name}-F1 is {100 * after[f'{name}_f1']:.1f} cross-validated and {100 * before[f'{name}_f1']:.1f}"
        for name in names
    )
    return f"{', '.join(told)} with nothing fitted"


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
        return _with_gold(own.load(), own)
    if own.file is not None:
        raise SetScoreError(f"--file stands alone: remove {name!r}.")
    source = find_source(name)
    found = load_dataset(source.name, source.validation, data_dir)
    return found.with_labels(found.labels.asked_by(own.label_text))


def _with_gold(found: Dataset, own: options.Own) -> Dataset:
    """The same; an error if no row has a label, as in the file of `setscore suggest` before it is filled in."""
    if found.gold.any():
        return found
    asked = f"no row of {own.file} has a label: was the column {own.labels_column!r} filled in?"
    raise DataFileError(" ".join([asked, *found.notes]))  # labels outside the inventory may have been ignored


def _show(
    fitted: SetScoreClassifier,
    scored: Scored,
    outcomes: Mapping[str, Outcome],
    points: Sequence[Point],
    *,
    per_label: bool,
) -> None:
    documents, labels = counted(len(scored), "document"), counted(len(scored.labels), "label")
    results.print(f"{fitted.regime}: fitted on {documents}, {labels}")
    for sentence in in_words(fitted.fitted_, points):
        results.print(literal(sentence[0].upper() + sentence[1:]), soft_wrap=True)
    results.print("")
    show_outcomes(outcomes)
    last, outcome = list(outcomes.items())[-1]
    changes = label_changes(outcomes[UNFITTED].labels, outcome.labels)
    results.print("\nWhat fitting changed, on documents that were not fitted on:")
    for change in changes if per_label else changes[:MOST_CHANGED]:
        results.print(f"  {literal(change)}", soft_wrap=True)
    if per_label:
        show_labels({last: [outcome.labels]})
    elif len(changes) > MOST_CHANGED:
        results.print(f"  and {len(changes) - MOST_CHANGED} more, with --per-label", style="dim")
    if text := abstained(last, outcome.metrics):
        remark(text)


def _as_json(fitted: SetScoreClassifier, scored: Scored, outcomes: Mapping[str, Outcome]) -> dict[str, Any]:
    calibration = fitted.calibration_
    return {
        "version": __version__,
        "dataset": scored.name,
        "documents": len(scored),
        "config": dict(scored.config),
        "calibration": spelt(calibration),
        "regime": fitted.regime,
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
