"""The config of a run: what is asked, of which documents, and how decisions are made. Unknown keys are refused.

A config is data. It cannot say where results are written, nor allow a model to run code of its own: both are options of
the command.
"""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from setscore.backbones import split_name
from setscore.baselines import BASELINES, TRAINED
from setscore.calibration import make as make_calibration
from setscore.classifier import SetScoreClassifier
from setscore.errors import DataFileError, SetScoreError, brief, unknown_name
from setscore.experiments.protocol import PROTOCOLS, Protocol, protocol
from setscore.prompts import Template
from setscore.records import LABEL_FILES
from setscore.storage import Limits, decoded, one_line, read_limited
from setscore.store import digest

LIMITS = Limits(size=2**20)  # of a config
DEFAULTS = SetScoreClassifier()


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class DatasetConfig(_Part):
    """Documents: of a named dataset (`name`), or of a labelled file (`file` with the inventory `labels`)."""

    name: str | None = None
    slices: Literal["development", "paper"] | None = None  # development with data_dir, else paper
    data_dir: str | None = None  # the parent of the dataset's folder
    file: str | None = None
    labels: str | None = None
    text_column: str = "text"
    labels_column: str = "labels"
    id_column: str | None = None
    separator: str | None = None
    ignore_unknown: bool = False
    limit: int | None = Field(default=None, ge=4)
    label_text: Literal["both", "description", "name"] | None = None  # both of a file, description of a named one

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.name is None) == (self.file is None):
            raise ValueError("give name (see `setscore datasets`) or file, one of the two")
        if self.file is not None and self.labels is None:
            raise ValueError("a file needs labels as well: the inventory, as a file or as names with commas")
        return self


class MethodConfig(_Part):
    """The classifier's options, or a baseline with its own. Several templates: the best on validation documents."""

    backbone: str = str(DEFAULTS.backbone)
    scorer: str = "per_label"
    template: str | tuple[str, ...] = "express"
    layout: str = "paper"
    verbalizer: str = "yes/no"
    attention: str = "auto"
    long_documents: str = "auto"
    pool: str = "logmeanexp"
    overlap: int = Field(default=64, ge=0)
    shortlist: str | None = None
    blend: str | None = None
    competition: float | None = Field(default=None, ge=0, le=1)
    head: str = str(DEFAULTS.head)
    baseline: str | None = None
    checkpoint: str | None = None
    device: str = "auto"
    train: Literal["split", "validation", "either"] = "split"
    train_limit: int | None = Field(default=None, ge=1)
    decided: Literal["calibrated", "own", "half", "zero-shot"] = "calibrated"

    @property
    def templates(self) -> tuple[str, ...]:
        return (self.template,) if isinstance(self.template, str) else self.template


class RunConfig(_Part):
    """Everything that a run depends on beside weights and documents."""

    title: str = ""
    protocol: str = "setscore"
    seeds: tuple[int, ...] | None = None
    calibration: str = "auto"
    dataset: DatasetConfig
    method: MethodConfig = Field(default_factory=MethodConfig)

    @property
    def drawn(self) -> tuple[int, ...]:
        """The seeds that draw validation documents."""
        return protocol(self.protocol).seeds if self.seeds is None else self.seeds

    def resolved(self) -> "RunConfig":
        """With what the protocol fixes, and every default that depends on something else, spelt out."""
        known, data = protocol(self.protocol), self.dataset
        prompted = self.method.baseline not in TRAINED
        method: dict[str, Any] = {}
        if "shortlist" not in self.method.model_fields_set and data.name is not None:
            method["shortlist"] = known.shortlist(data.name, prompted=prompted)
        method |= {key.partition(".")[2]: value for key, value in known.fixed.items() if key.startswith("method.")}
        slices = data.slices or ("paper" if data.data_dir is None and data.file is None else "development")
        asked_by = data.label_text or ("description" if data.file is None else "both")
        whole = {key: value for key, value in known.fixed.items() if "." not in key}
        return self.model_copy(
            update=whole
            | {
                "seeds": self.drawn,
                "dataset": data.model_copy(update={"slices": slices, "label_text": asked_by}),
                "method": self.method.model_copy(update=method),
            }
        )

    def key(self) -> str:
        """A digest of what the results depend on beside documents; the title and where files lie do not matter."""
        plain = self.resolved().model_dump(mode="json")
        del plain["title"]
        for place in ("data_dir", "file", "labels"):
            del plain["dataset"][place]
        return digest(plain).hex()

    def classifier(self, template: str, **more: Any) -> SetScoreClassifier:
        """The classifier of a resolved config, unfitted."""
        method = self.method
        options = {
            name: getattr(method, name)
            for name in ("scorer", "long_documents", "pool", "overlap", "shortlist", "blend", "competition", "head")
        }
        wording = Template.of(template, method.layout)
        return SetScoreClassifier(template=wording, calibration=self.calibration, **options | more)

    def check(self) -> Self:
        """An error for what is unknown or does not go together; nothing is loaded."""
        _check_protocol(self, protocol(self.protocol))
        ready, method = self.resolved(), self.method
        if len(set(ready.drawn)) < len(ready.drawn) or not ready.drawn or min(ready.drawn) < 0:
            raise SetScoreError(f"seeds are different whole numbers from 0, got {list(ready.drawn)}.")
        make_calibration(ready.calibration)
        if method.baseline is None:
            for template in method.templates:
                ready.classifier(
                    template, backbone=method.backbone, attention=method.attention, verbalizer=method.verbalizer
                ).check()
        elif method.baseline not in BASELINES:
            raise SetScoreError(unknown_name("baseline", method.baseline, BASELINES))
        elif set(method.model_fields_set) & {"backbone", "scorer", "template"}:
            raise SetScoreError(f"the baseline {method.baseline} has no backbone, scorer or template; remove them.")
        return self


def _check_protocol(config: RunConfig, known: Protocol) -> None:
    for key, value in known.fixed.items():
        owner: BaseModel = config.method if key.startswith("method.") else config
        name = key.rpartition(".")[2]
        if name in owner.model_fields_set and getattr(owner, name) != value:
            others = ", ".join(other for other in PROTOCOLS if other != known.name)
            raise SetScoreError(
                f"the protocol {known.name!r} fixes {key} at {value!r}, got {getattr(owner, name)!r}. Remove it, or"
                f" choose another protocol ({others})."
            )


def load_config(path: Path, changes: Sequence[str] = (), *, allow: Sequence[str] = ()) -> RunConfig:
    """The config in a TOML file, with changes as in "method.template=article-topic".

    Files that it names are looked for beside it. `allow` is the caller's consent to what its model needs.
    """
    try:
        with path.open("rb") as file:
            content: dict[str, Any] = tomllib.loads(decoded(read_limited(file, LIMITS)))
    except OSError as error:
        raise DataFileError(f"the config {path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise DataFileError(f"{path} is no TOML: {one_line(error)}") from error
    content = _beside(content, path.parent)
    for change in changes:
        _set(content, change)
    return make_config(content, where=str(path), allow=allow)


def make_config(content: Mapping[str, Any], *, where: str = "the config", allow: Sequence[str] = ()) -> RunConfig:
    """A checked config; every mistake is one line that names its key."""
    try:
        made = RunConfig.model_validate(dict(content))
    except ValidationError as error:
        raise SetScoreError(f"{where}: {' '.join(_told(one) for one in error.errors())}") from error
    _, options = split_name(made.method.backbone)
    if refused := [name for name in options.allow if name not in allow]:
        raise SetScoreError(
            f"{where}: method.backbone asks for allow={','.join(refused)}. Consent is not a file's to give: add"
            f" --allow {refused[0]}."
        )
    return made.check()


def _told(error: Mapping[str, Any]) -> str:
    key = ".".join(str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        owners: dict[str, type[BaseModel]] = {"dataset": DatasetConfig, "method": MethodConfig}
        owner = owners.get(str(error["loc"][0]), RunConfig)
        return unknown_name("key", key, [_whole(error["loc"], name) for name in owner.model_fields])
    message = error["msg"].removeprefix("Value error, ")
    got = "" if error["type"] in ("missing", "value_error") else f", got {brief(error['input'])}"
    return f"{key or 'the config'}: {message}{got}."


def _whole(place: Sequence[Any], name: str) -> str:
    return ".".join([*map(str, place[:-1]), name])


def _beside(content: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Paths of a config are relative to it."""
    data = content.get("dataset")
    if not isinstance(data, dict):
        return content
    moved = dict(data)
    for key in ("file", "labels", "data_dir"):
        value = data.get(key)
        if isinstance(value, str) and (key != "labels" or Path(value).suffix.lower() in LABEL_FILES):
            moved[key] = str(folder / value)
    return content | {"dataset": moved}


def _set(content: dict[str, Any], change: str) -> None:
    """One change, "a.b=c"; c is TOML where it can be read as that, else a text."""
    key, sign, text = change.partition("=")
    if not sign or not key.strip():
        raise SetScoreError(f"--set takes KEY=VALUE, as in method.template=article-topic; got {change!r}.")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except ValueError:
        value = text
    *owners, last = key.strip().split(".")
    place = content
    for owner in owners:
        inner = place.setdefault(owner, {})
        if not isinstance(inner, dict):
            raise SetScoreError(f"--set {change}: {owner} is no table of the config.")
        place = inner
    place[last] = value
