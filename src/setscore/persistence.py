"""A classifier as plain values, and back. What a file says is data: every field is checked, and none grants consent.

The file is JSON: parameters, labels, and what was fitted. It holds no weights and no code. Consent to run a model's own
code or to read pickles is given by whoever loads the file, never by the file.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from reprlib import repr as short
from typing import Any

import setscore.calibration as calibrations
from setscore import scorers
from setscore.backbones import BACKBONES, check_backbone, check_name, split_name, with_allowances
from setscore.calibration import options_of
from setscore.ensemble import Ensemble, blend_of
from setscore.errors import DataFileError, SetScoreError, unknown_name
from setscore.fitting import Fitted
from setscore.predictions import CALIBRATED, LEARNED
from setscore.prompts import Template, Verbalizer
from setscore.readout import Readout, check_head
from setscore.records import LabelSet
from setscore.shortlist import shortlist_of
from setscore.storage import read_json, write_json

FORMAT, FIRST_FORMAT = "setscore.classifier/2", "setscore.classifier/1"
Check = tuple[Callable[[Any], bool], str]  # whether a value will do, and what is wanted in words


def save(path: str | Path, params: Mapping[str, Any], labels: LabelSet, fitted: Fitted | None) -> None:
    """Writes parameters, labels and what was fitted."""
    if not isinstance(params["backbone"], str):
        raise SetScoreError("only a classifier whose backbone is given by name can be saved.")
    write_json(path, FORMAT, content_of(params, labels, fitted))


def content_of(params: Mapping[str, Any], labels: LabelSet, fitted: Fitted | None) -> dict[str, Any]:
    """What a file holds of a classifier."""
    plain = {name: value for name, value in params.items() if value is not None or name not in MAY_BE_ABSENT}
    plain.pop("store", None)  # where answers are kept is a matter of this machine
    plain |= {
        "backbone": with_allowances(name, ()) if isinstance(name := params["backbone"], str) else name.identity,
        "labels": labels.plain(),
        "template": Template.of(params["template"]).text,
        "verbalizer": asdict(Verbalizer.of(params["verbalizer"])),
        "calibration": calibrations.describe(params["calibration"]),
    }
    if fitted is not None and fitted.shortlist is not None:
        plain["shortlist"] = fitted.shortlist
    if fitted is not None and fitted.blend is not None:
        plain["blend"] = fitted.blend
    return {
        "params": plain,
        "calibration": None if fitted is None else fitted.calibration.state(),
        "learned": {} if fitted is None else dict(fitted.learned),
        "identity": None if fitted is None else fitted.identity,
        "readout": None if fitted is None or fitted.readout is None else fitted.readout.plain(),
    }


def load(path: str | Path, allow: Sequence[str] = ()) -> tuple[dict[str, Any], Fitted | None]:
    """The parameters, and what was fitted or None. `allow` is the reader's consent, as in "remote-code"."""
    content = read_json(path, FORMAT, FIRST_FORMAT)
    try:
        _check_fields(content, "", CONTENT, absent=("format", "learned", "identity", "readout"))
        _check_fields(content["params"], "params.", PARAMS, absent=MAY_BE_ABSENT)
        return _restored(content, allow)
    except FieldError as error:
        raise DataFileError(f"{path}: {error}") from error
    except (SetScoreError, KeyError, TypeError, ValueError, AttributeError) as error:
        text = str(error) if isinstance(error, SetScoreError) else f"{type(error).__name__}: {error}"
        raise DataFileError(f"{path} is damaged: {text}") from error


class FieldError(SetScoreError):
    """A field of a file has a value that cannot be used."""

    def __init__(self, field: str, wanted: str, got: Any) -> None:
        super().__init__(f"the field {field} must be {wanted}, got {short(got)}.")


def _restored(content: dict[str, Any], allow: Sequence[str]) -> tuple[dict[str, Any], Fitted | None]:
    params = dict(content["params"])
    _refuse_consent(params)
    labels = LabelSet.of(params["labels"])
    _check_values(params)
    params["backbone"] = with_allowances(params["backbone"], tuple(allow))
    params["verbalizer"] = Verbalizer(**params["verbalizer"])
    shortlist = shortlist_of(params.get("shortlist"))
    blend = blend_of(params.get("blend"))
    state = content["calibration"]
    if state is None:
        return params, None
    check_calibration(state, "calibration.")
    readout = _readout(content.get("readout"), len(labels))
    return params, Fitted(
        labels=labels,
        calibration=calibrations.restore(state, len(labels)),
        blend=blend if isinstance(blend, Ensemble) else None,
        learned=content.get("learned", {}),
        shortlist=shortlist,
        readout=readout,
        identity=content.get("identity"),
        regime=CALIBRATED if readout is None else LEARNED,
    )


def _readout(plain: Any, n_labels: int) -> Readout | None:
    if plain is None:
        return None
    for name in ("labels", "centre", "shared", "weights", "biases"):
        if not isinstance(plain.get(name), dict):
            raise FieldError(f"readout.{name}", "an object with shape and base64", plain.get(name))
    return Readout.restore(plain, n_labels)


def _check_values(params: Mapping[str, Any]) -> None:
    """Names that nothing goes by, and options out of their range: an error here, not at the first prediction."""
    Template(params["template"])
    check_head(params.get("head", "none"))
    reading = scorers.Reading(params["long_documents"], params["pool"], params["overlap"])
    scorers.make(params["scorer"], Template(params["template"]), reading)
    check_calibration(params["calibration"], "params.calibration.")
    calibrations.make(params["calibration"])
    name, _ = split_name(params["backbone"])
    if name in BACKBONES:
        check_backbone(name, attention=params["attention"])
    else:
        check_name(params["backbone"])


def _refuse_consent(params: Mapping[str, Any]) -> None:
    """A file cannot say that its model may run code, nor where something is written."""
    _, options = split_name(params["backbone"])
    if options.allow:
        wanted = ", ".join(options.allow)
        yours = f"a model without allow={wanted}: consent is not a file's to give, say allow={wanted} when loading it"
        raise FieldError("params.backbone", yours, params["backbone"])
    shortlist = params.get("shortlist")
    if isinstance(shortlist, dict) and shortlist.get("cache") is not None:
        raise FieldError("params.shortlist.cache", "null: a file does not choose where to write", shortlist["cache"])


def check_calibration(state: Mapping[str, Any], where: str) -> None:
    """Name, options and fitted values of a calibration: known ones, of their kind and in their range."""
    name = state.get("name")
    if not isinstance(name, str) or name not in calibrations.CALIBRATIONS:
        raise SetScoreError(unknown_name("calibration", str(name)[:80], calibrations.CALIBRATIONS))
    kind = calibrations.CALIBRATIONS[name]
    options = state.get("options")
    if not isinstance(options, dict):
        raise FieldError(f"{where}options", "an object", options)
    known = options_of(kind)
    for key, value in options.items():
        if key not in known:
            raise SetScoreError(f"the field {where}options: {unknown_name('option', key, known)}")
        fits, wanted = OPTION_KINDS[known[key].annotation]
        if not fits(value):
            raise FieldError(f"{where}options.{key}", wanted, value)
    for key, value in state.get("fitted", {}).items():
        if key not in ("thresholds_", "choice_", "fingerprint_", *kind.fitted):
            raise SetScoreError(f"the field {where}fitted.{key} is unknown; {name} has {', '.join(kind.fitted)}.")
        if not _is_fitted_value(value):
            raise FieldError(f"{where}fitted.{key}", "text, a finite number or a list of them", value)
    for part in ("chosen", "map"):
        if part in state:
            check_calibration(state[part], f"{where}{part}.")


def _is_fitted_value(value: Any) -> bool:
    if isinstance(value, list | dict):
        return all(_is_number(entry) for entry in (value.values() if isinstance(value, dict) else value))
    return isinstance(value, str) or _is_number(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_pair(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2 and all(map(_is_number, value))


def _is_verbalizer(value: Any) -> bool:
    return isinstance(value, dict) and set(value) == {"yes", "no"} and all(isinstance(v, str) for v in value.values())


def _is(*kinds: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kinds)


def _check_fields(values: Any, where: str, known: Mapping[str, Check], absent: Sequence[str]) -> None:
    if not isinstance(values, dict):
        raise FieldError(where.rstrip(".") or "content", "an object", values)
    for key in known:
        if key not in values and key not in absent:
            raise SetScoreError(f"the field {where}{key} is missing.")
    for key, value in values.items():
        if key not in known:
            raise SetScoreError(f"the field {where}{unknown_name('field', key, known)}")
        fits, wanted = known[key]
        if not fits(value):
            raise FieldError(f"{where}{key}", wanted, value)


TEXT: Check = (_is(str), "a text")
CONTENT: dict[str, Check] = {
    "format": TEXT,
    "params": (_is(dict), "an object"),
    "calibration": (_is(dict, type(None)), "an object or null"),
    "learned": (_is(dict), "an object"),
    "identity": (_is(str, type(None)), "a text or null"),
    "readout": (_is(dict, type(None)), "an object or null"),
}
PARAMS: dict[str, Check] = {
    "labels": (_is(dict), "an object of names and descriptions"),
    "scorer": TEXT,
    "backbone": TEXT,
    "template": TEXT,
    "verbalizer": (_is_verbalizer, 'an object of two texts, "yes" and "no"'),
    "attention": TEXT,
    "long_documents": TEXT,
    "pool": TEXT,
    "overlap": (lambda value: _is_whole(value) and value >= 0, "a whole number from 0"),
    "shortlist": (_is(int, str, dict), "a number, a text or an object"),
    "blend": (_is(str, dict), "a text or an object"),
    "calibration": (_is(dict), "an object"),
    "threshold": (lambda value: _is_number(value) and 0 <= value <= 1, "a number from 0 to 1"),
    "head": (_is(str), "a text"),
    "competition": (lambda value: _is_number(value) and 0 <= value <= 1, "a number from 0 to 1"),
}
MAY_BE_ABSENT = ("shortlist", "blend", "competition", "head")
OPTION_KINDS: dict[Any, Check] = {
    str: TEXT,
    bool: (_is(bool), "true or false"),
    int: (_is_whole, "a whole number"),
    int | None: (lambda value: value is None or _is_whole(value), "a whole number or null"),
    float: (_is_number, "a finite number"),
    tuple[float, float]: (_is_pair, "two finite numbers"),
}
