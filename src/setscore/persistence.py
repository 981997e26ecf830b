"""A classifier as plain values, and back. What a file says is data: every field is checked, and none grants consent.

The file is JSON: parameters, labels, and what was fitted. What a read-out learned, and the labelled documents as
numbers, stand in a safetensors file beside it, of the same name, which the JSON knows by its SHA-256: arrays of 64-bit
floats, no text. A name that ends in .zip makes one file of both. Neither holds weights of the model or code. Consent to
run a model's own code or to read pickles is given by whoever loads the file, never by the file.
"""

import hashlib
import io
import math
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from reprlib import repr as short
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import safetensors.numpy as safetensors

import setscore.calibration as calibrations
from setscore import scorers
from setscore.backbones import BACKBONES, check_backbone, check_name, split_name, with_allowances
from setscore.calibration import options_of
from setscore.ensemble import Ensemble, blend_of
from setscore.errors import DataFileError, SetScoreError, unknown_name
from setscore.fitting import MODEL, Fitted, Known, learns
from setscore.prompts import Template, Verbalizer
from setscore.readout import Readout
from setscore.records import LABEL_TEXTS, FloatArray, LabelSet
from setscore.shortlist import shortlist_of
from setscore.storage import SAVED, one_line, read_json, read_limited, write_bytes, write_json

NOT_SAVED = (".yaml", ".yml", ".txt", ".csv")  # endings of label files
FORMAT, FIRST_FORMAT = "setscore.classifier/2", "setscore.classifier/1"
ENDING = ".safetensors"
PACKED = ".zip"  # both files in one, to hand on
GOLD, VECTORS = "known:gold", "known:vectors"  # no member of a blend goes by such a name
Check = tuple[Callable[[Any], bool], str]  # whether a value will do, and what is wanted in words


def save(path: str | Path, params: Mapping[str, Any], labels: LabelSet, fitted: Fitted | None) -> None:
    """Writes parameters, labels and what was fitted; one file for all of it where its name ends in .zip."""
    if Path(path).suffix == PACKED:
        _save_packed(Path(path), params, labels, fitted)
        return
    if not isinstance(params["backbone"], str):
        raise SetScoreError("only a classifier whose backbone is given by name can be saved.")
    content = content_of(params, labels, fitted)
    if fitted is not None and fitted.known is not None and fitted.known.embedded:
        content |= _written(Path(path), fitted.readout, fitted.known)
    write_json(path, FORMAT, content)


def content_of(params: Mapping[str, Any], labels: LabelSet, fitted: Fitted | None) -> dict[str, Any]:
    """What a file holds of a classifier, but for the arrays of a read-out, which lie beside it."""
    used = dict(params)
    used.pop("store", None)  # where answers are kept is a matter of this machine
    if fitted is not None:  # as it was in `fit`, whatever was set afterwards
        used |= {"shortlist": fitted.shortlist, "blend": fitted.blend}
    plain = {name: value for name, value in used.items() if value is not None or name not in MAY_BE_ABSENT}
    plain |= {
        "backbone": with_allowances(name, ()) if isinstance(name := params["backbone"], str) else name.identity,
        "labels": labels.plain(),
        "label_text": labels.label_text,
        "template": Template.of(params["template"]).text,
        "verbalizer": asdict(Verbalizer.of(params["verbalizer"])),
        "calibration": calibrations.describe(params["calibration"]),
    }
    return {
        "params": plain,
        "calibration": None if fitted is None else fitted.calibration.state(),
        "learned": {} if fitted is None else dict(fitted.learned),
        "identity": None if fitted is None else fitted.identity,
        "readout": None,
        "arrays": None,
    }


def load(path: str | Path, allow: Sequence[str] = ()) -> tuple[dict[str, Any], Fitted | None]:
    """The parameters, and what was fitted or None. `allow` is the reader's consent, as in "remote-code"."""
    if Path(path).suffix == PACKED:
        return _load_packed(Path(path), allow)
    if Path(path).suffix.lower() in NOT_SAVED:
        raise DataFileError(f"{path} is no saved classifier, which is a .json file. Labels go with --labels.")
    content = read_json(path, FORMAT, FIRST_FORMAT)
    try:
        _check_fields(content, "", CONTENT, absent=("format", "learned", "identity", "readout", "arrays"))
        _check_fields(content["params"], "params.", PARAMS, absent=MAY_BE_ABSENT)
        return _restored(content, allow, Path(path))
    except FieldError as error:
        raise DataFileError(f"{path}: {error}") from error
    except (SetScoreError, KeyError, TypeError, ValueError, AttributeError) as error:
        text = str(error) if isinstance(error, SetScoreError) else f"{type(error).__name__}: {error}"
        raise DataFileError(f"{path} is damaged: {text}") from error


def _save_packed(path: Path, params: Mapping[str, Any], labels: LabelSet, fitted: Fitted | None) -> None:
    """Both files in one, named like it."""
    with TemporaryDirectory() as folder:
        inner = Path(folder) / f"{path.stem}.json"
        save(inner, params, labels, fitted)
        data = io.BytesIO()
        with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(Path(folder).iterdir()):
                archive.writestr(zipfile.ZipInfo(file.name), file.read_bytes(), zipfile.ZIP_DEFLATED)
    write_bytes(path, data.getvalue())


def _load_packed(path: Path, allow: Sequence[str]) -> tuple[dict[str, Any], Fitted | None]:
    """What `_save_packed` wrote. Names in the archive are not followed anywhere: there is one of each ending."""
    try:
        with path.open("rb") as file, zipfile.ZipFile(io.BytesIO(read_limited(file, SAVED))) as archive:
            kinds = {Path(name).suffix: name for name in archive.namelist()}
            if len(kinds) != len(archive.namelist()) or ".json" not in kinds or not kinds.keys() <= {".json", ENDING}:
                raise DataFileError(f"{path} must hold a .json file and perhaps a {ENDING} file, and nothing else.")
            contents = {}
            for kind, name in kinds.items():
                with archive.open(name) as member:
                    contents[kind] = read_limited(member, SAVED)  # type: ignore[arg-type]
    except OSError as error:
        raise DataFileError(f"the file {path} cannot be read: {error.strerror or error}.") from error
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, ValueError) as error:
        if isinstance(error, DataFileError):
            raise
        raise DataFileError(f"{path} is damaged: {one_line(error)}") from error
    with TemporaryDirectory() as folder:
        inner = Path(folder) / "classifier.json"
        for kind, content in contents.items():
            inner.with_suffix(kind).write_bytes(content)
        try:
            return load(inner, allow)
        except DataFileError as error:
            raise DataFileError(str(error).replace(str(inner), str(path))) from error


class FieldError(SetScoreError):
    """A field of a file has a value that cannot be used."""

    def __init__(self, field: str, wanted: str, got: Any) -> None:
        super().__init__(f"the field {field} must be {wanted}, got {short(got)}.")


def _restored(content: dict[str, Any], allow: Sequence[str], path: Path) -> tuple[dict[str, Any], Fitted | None]:
    params = {"head": "none"} | content["params"]  # before there were read-outs
    _refuse_consent(params)
    params["labels"] = labels = LabelSet.of(params["labels"]).asked_by(params.pop("label_text", "description"))
    _check_values(params)
    params["backbone"] = with_allowances(params["backbone"], tuple(allow))
    params["verbalizer"] = Verbalizer(**params["verbalizer"])
    shortlist = shortlist_of(params.get("shortlist"))
    blend = blend_of(params.get("blend"))
    state = content["calibration"]
    if state is None:
        return params, None
    check_calibration(state, "calibration.")
    arrays = {} if content.get("arrays") is None else _read(path, content["arrays"])
    plain = content.get("readout")
    return params, Fitted(
        labels=labels,
        calibration=calibrations.restore(state, len(labels)),
        blend=blend if isinstance(blend, Ensemble) else None,
        learned=content.get("learned", {}),
        shortlist=shortlist,
        readout=None if plain is None else _readout(plain, arrays, len(labels)),
        identity=content.get("identity"),
        known=_known(arrays, len(labels)) if arrays else None,
    )


def _written(path: Path, readout: Readout | None, known: Known) -> dict[str, Any]:
    """Writes the arrays beside `path`; what its JSON says about them."""
    plain, arrays = (None, {}) if readout is None else readout.plain()
    named: dict[str, Any] = {f"readout.{name}": values for name, values in arrays.items()}
    named |= {f"known.{name}": values for name, values in known.members.items()}
    named |= {GOLD: known.gold, VECTORS: known.vectors}
    data = safetensors.save({name: np.ascontiguousarray(values, dtype=np.float64) for name, values in named.items()})
    beside = path.with_suffix(ENDING)
    if beside == path:
        raise SetScoreError(f"{path} is where the arrays go; name the classifier's file otherwise, as in .json.")
    write_bytes(beside, data)
    return {"readout": plain, "arrays": {"sha256": hashlib.sha256(data).hexdigest()}}


def _read(path: Path, said: Mapping[str, Any]) -> dict[str, FloatArray]:
    """The arrays beside `path`, if they are the very ones that its JSON was written with."""
    _check_fields(said, "arrays.", {"sha256": TEXT}, absent=())
    beside = path.with_suffix(ENDING)
    try:
        with beside.open("rb") as file:
            data = read_limited(file, SAVED)
    except OSError as error:
        raise DataFileError(f"{beside} cannot be read: {error.strerror}. It belongs to {path}: keep both.") from error
    if hashlib.sha256(data).hexdigest() != said["sha256"]:
        raise DataFileError(f"{beside} is not the file that {path} was saved with: its SHA-256 is another one.")
    try:
        arrays = safetensors.load(data)
    except Exception as error:  # of several kinds, by what is wrong with the header
        raise DataFileError(f"{beside} is no safetensors file: {one_line(error)}") from error
    if odd := [name for name, values in arrays.items() if values.dtype != np.float64]:
        raise DataFileError(f"{beside} is damaged: {odd[0]} does not hold 64-bit floats.")
    return dict(arrays)


def _readout(plain: Any, arrays: Mapping[str, FloatArray], n_labels: int) -> Readout:
    _check_fields(plain, "readout.", {"cosine": (_is_number, "a finite number")}, absent=())
    own = {name.partition(".")[2]: values for name, values in arrays.items() if name.startswith("readout.")}
    return Readout.restore(plain, own, n_labels)


def _known(arrays: Mapping[str, FloatArray], n_labels: int) -> Known:
    """The labelled documents; an error where their arrays do not fit each other."""
    members = {name.removeprefix("known."): values for name, values in arrays.items() if name.startswith("known.")}
    gold, vectors = arrays.get(GOLD), arrays.get(VECTORS)
    if gold is None or vectors is None or MODEL not in members:
        raise SetScoreError(f"the labelled documents are damaged: {GOLD}, {VECTORS} and known.{MODEL} are needed.")
    shape = (len(gold), n_labels)
    fits = gold.ndim == vectors.ndim == 2 and len(vectors) == len(gold)
    if not fits or any(values.shape != shape for values in (gold, *members.values())):
        raise SetScoreError(f"the labelled documents are damaged: their arrays do not fit {n_labels} labels.")
    if not np.isin(gold, (0, 1)).all() or not np.isfinite(vectors).all():
        raise SetScoreError("the labelled documents are damaged: gold is 0 or 1, and vectors are finite.")
    if any(np.isnan(values).any() or np.isposinf(values).any() for values in members.values()):
        raise SetScoreError("the labelled documents are damaged: log-odds are finite, or -inf where nothing was asked.")
    return Known(members, gold.astype(np.bool_), vectors)


def _check_values(params: Mapping[str, Any]) -> None:
    """Names that nothing goes by, and options out of their range: an error here, not at the first prediction."""
    Template(params["template"])
    if "objective" in params:
        calibrations.check_objective(params["objective"])
    reading = scorers.Reading(params["long_documents"], params["pool"], params["overlap"])
    scorers.make(params["scorer"], Template(params["template"]), reading)
    check_calibration(params["calibration"], "params.calibration.")
    calibrations.make(params["calibration"])
    learns(params["head"], params["calibration"])
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
    "arrays": (_is(dict, type(None)), "an object or null"),
}
PARAMS: dict[str, Check] = {
    "labels": (_is(dict), "an object of names and descriptions"),
    "label_text": (lambda value: value in LABEL_TEXTS, f"one of {', '.join(LABEL_TEXTS)}"),
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
    "head": TEXT,
    "objective": TEXT,
    "competition": (lambda value: _is_number(value) and 0 <= value <= 1, "a number from 0 to 1"),
}
MAY_BE_ABSENT = ("label_text", "shortlist", "blend", "competition", "head", "objective")
OPTION_KINDS: dict[Any, Check] = {
    str: TEXT,
    bool: (_is(bool), "true or false"),
    int: (_is_whole, "a whole number"),
    int | None: (lambda value: value is None or _is_whole(value), "a whole number or null"),
    float: (_is_number, "a finite number"),
    tuple[float, float]: (_is_pair, "two finite numbers"),
}
