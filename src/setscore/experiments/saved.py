"""Finished tables in the store, by experiment, method and part: what other runs are compared and mixed with.

A place is FOLDER, FOLDER/EXPERIMENT or FOLDER/EXPERIMENT/METHOD, as in scores/goemotions-development/cosine. One folder
holds several methods side by side, each under its title; where two have the same title, the first digits of their
digest tell them apart.
"""

import io
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from setscore.backbones.checkpoints import checksum
from setscore.datasets import Dataset
from setscore.encoders import EMBEDDED
from setscore.errors import DataFileError, SetScoreError, counted
from setscore.experiments.scored import Scored
from setscore.prompts import QUESTIONS, Template
from setscore.records import FloatArray
from setscore.store import Entry, Store, answered, digest, open_store
from setscore.store.folder import FILE

OLD_FILE = "scores.json"  # what version 0.1 left in every folder of scores
NOT_ASKED = ("backbone", "model", "temperature", "competition", "handicap")  # of a model: its identity says more
OF_A_PART = ("fingerprint", "training", "version")  # what differs between the parts of one method
WORDS = ("name", "split", "labels", "ids", "notes", "config", "groups", "facts")


@dataclass(frozen=True)
class Saved:
    """One method on one experiment, in a store. `title` says which, in words."""

    experiment: str
    method: str
    title: str
    config: Mapping[str, Any]
    keys: Mapping[str, str]  # of the tables, by part
    store: Store

    @property
    def is_model(self) -> bool:
        """Whether a backbone was asked; else a cosine or a baseline."""
        return "identity" in self.config

    def parts(self) -> dict[str, Scored]:
        return {part: _read(self.store, key) for part, key in self.keys.items()}


def open_folder(folder: str | Path | None) -> Store | None:
    """The store of a --save folder. One that version 0.1 filled is refused."""
    if folder is None:
        return None
    if not (Path(folder) / FILE).exists():
        _refuse_old(Path(folder))
    return open_store(folder)


def score_rows(
    store: Store | None,
    identity: Mapping[str, Any],
    dataset: Dataset,
    score: Callable[[Sequence[str]], FloatArray],
    block: int = 256,
) -> FloatArray:
    """What `score` gives for each document [n, k], stored document by document under `identity` and the labels."""
    if store is None:
        return score(dataset.texts)
    about = digest(dict(identity), [[label.name, label.description] for label in dataset.labels.labels]).hex()
    keys = [digest(about, text) for text in dataset.texts]
    return np.stack(answered(store, keys, lambda places: list(score([dataset.texts[p] for p in places])), block))


def keep(store: Store, experiment: str, part: str, scored: Scored) -> None:
    """Puts a finished table into the store."""
    words = json.dumps({key: _plain(getattr(scored, key)) for key in WORDS}).encode()
    buffer = io.BytesIO()
    text = np.frombuffer(words, dtype=np.uint8)
    arrays: dict[str, Any] = {"log_odds": scored.log_odds, "gold": scored.gold, "truncated": scored.truncated}
    if scored.vectors is not None:
        arrays["vectors"] = scored.vectors
    np.savez(buffer, **arrays, words=text)
    about = {"config": dict(scored.config)}
    entry = Entry(experiment, method_of(scored.config), part, key_of(scored.config), about)
    store.put_table(entry, buffer.getvalue())


def known(store: Store, dataset: Dataset, config: Mapping[str, Any]) -> Scored | None:
    """The table of the same documents asked in the same way; notes and groups are those of the dataset at hand."""
    key = key_of(config)
    if store.table(key) is None:
        return None
    return replace(_read(store, key), config=config, notes=dataset.notes, groups=dataset.groups)


def key_of(config: Mapping[str, Any]) -> str:
    """A digest of what was asked, and of which documents."""
    return digest({key: value for key, value in config.items() if key not in _unkeyed(config)}).hex()


def method_of(config: Mapping[str, Any]) -> str:
    """A digest of what was asked, whatever the documents."""
    left_out = (*_unkeyed(config), *OF_A_PART)
    return digest({key: value for key, value in config.items() if key not in left_out}).hex()[:12]


def _unkeyed(config: Mapping[str, Any]) -> tuple[str, ...]:
    return NOT_ASKED if "identity" in config else ()


def title_of(config: Mapping[str, Any]) -> str:
    """A method in a few words: the model, the cosine or the baseline, and what is unlike the defaults."""
    if "identity" not in config:
        return str(config.get("title", "scores"))
    words = [str(config["backbone"])]
    default = Template.of("express").text
    if (template := config["template"]) != default:
        questions = {Template.of(name).text: name for name in QUESTIONS}
        words.append(questions.get(template, repr(template)))
    if config["verbalizer"] != "yes/no":
        words.append(str(config["verbalizer"]))
    words += [str(config[key]) for key in ("scorer", "blend") if key in config]
    if config["long_documents"] in ("chunk", "passages"):
        words.append(config["long_documents"])
    if "shortlist" in config:
        words.append("shortlist " + ":".join(str(value) for value in config["shortlist"].values() if value is not None))
    return ", ".join(words)


def find_saved(place: str | Path) -> list[Saved]:
    """Every method at a place, by experiment; an error says where there is none.

    Where none is named, cosines and baselines are left out if there is a model beside them.
    """
    folder, experiment, method = _split(Path(place))
    store = open_store(folder)
    found: dict[tuple[str, str], list[Entry]] = {}
    for entry in store.entries():
        found.setdefault((entry.experiment, entry.method), []).append(entry)
    made = sorted((_saved(store, entries) for entries in found.values()), key=lambda one: one.experiment)
    chosen = [one for one in made if experiment in (None, one.experiment)]
    if method is not None:
        exact = [one for one in chosen if one.title == method]
        chosen = exact or [one for one in chosen if len(method) >= 4 and one.method.startswith(method)]
    elif any(one.is_model for one in chosen):
        chosen = [one for one in chosen if one.is_model]
    if not chosen:
        there = ", ".join(dict.fromkeys(_address(folder, one) for one in made[:8]))
        more = f" It has {there}." if there else ""
        raise DataFileError(f"{place} holds no scores.{more} Make them with `setscore evaluate NAME --save {folder}`.")
    return chosen


def one_saved(place: str | Path, *, experiment: str | None = None, but: str | None = None) -> Saved:
    """The one method at a place; several are an error that names them.

    A place that says less may be any of `experiment`. The method `but` does not count: its scores are at hand.
    """
    found = find_saved(place)
    folder = _split(Path(place))[0]
    same = [one for one in found if experiment in (None, one.experiment)]
    if not same:
        there = ", ".join(dict.fromkeys(one.experiment for one in found))
        raise DataFileError(
            f"{place} holds no scores of {experiment}, but of {there}; `setscore evaluate --save {folder}` makes them."
        )
    others = [one for one in same if one.method != but]
    if not others:
        raise SetScoreError(
            f"{place} holds {same[0].title}, which is this run itself, and nothing to compare it with. Save a run with"
            " other settings first, or name another place."
        )
    first, *more = others
    if more:
        names = "; ".join(_address(folder, one, digits=True) for one in islice([first, *more], 8))
        raise SetScoreError(f"{place} holds {counted(1 + len(more), 'method')}; name one of them: {names}.")
    return first


def _address(folder: Path, saved: Saved, *, digits: bool = False) -> str:
    """What to write for it."""
    more = f" (or {saved.method[:6]})" if digits else ""
    return f"{folder}/{saved.experiment}/{saved.title}{more}"


def _saved(store: Store, entries: Sequence[Entry]) -> Saved:
    config = entries[-1].about["config"]
    keys = {entry.part: entry.key for entry in entries}
    return Saved(entries[0].experiment, entries[0].method, title_of(config), config, keys, store)


def _split(place: Path) -> tuple[Path, str | None, str | None]:
    """The folder of a store, and what of it is meant."""
    for folder in (place, *place.parents):
        if (folder / FILE).is_file():
            rest = place.relative_to(folder).parts
            return folder, rest[0] if rest else None, "/".join(rest[1:]) or None
    _refuse_old(place)
    raise DataFileError(f"{place} holds no scores. Make them with `setscore evaluate NAME --save {place}`.")


def _refuse_old(folder: Path) -> None:
    """Scores of version 0.1 were keyed by a name that said too little, so they cannot be trusted to be the same."""
    if folder.is_dir() and any(found for depth in range(6) for found in folder.glob("*/" * depth + OLD_FILE)):
        raise DataFileError(
            f"{folder} holds scores of SetScore 0.1, which this version does not read. Score again into a new folder."
        )


def _read(store: Store, key: str) -> Scored:
    found = store.table(key)
    if found is None:
        raise DataFileError(f"the scores {key} were removed from their store. Score again.")
    try:
        with np.load(io.BytesIO(found[1]), allow_pickle=False) as arrays:
            words = json.loads(arrays["words"].tobytes())
            tuples = {name: tuple(words[name]) for name in ("labels", "ids", "notes", "groups")}
            values = {name: arrays[name] for name in ("log_odds", "gold", "truncated")}
            values |= {name: arrays[name] for name in ("vectors",) if name in arrays}
            return Scored(**words | tuples | values)
    except (KeyError, TypeError, ValueError, OSError, zipfile.BadZipFile) as error:
        raise DataFileError(f"the scores {key} are damaged: {error}. Score again into another folder.") from error


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else value


def weights_of(name: str) -> str:
    """What tells the weights of a sentence encoder or a baseline's checkpoint from others: their digest, or a name.

    A folder keeps its name when it is trained again.
    """
    from setscore.backbones.mini import checksums, default_folder

    if name == EMBEDDED:
        return digest(checksums(default_folder())).hex()
    files = [path for path in Path(name).glob("[!.]*") if path.is_file()] if Path(name).is_dir() else []
    return checksum(files) if files else name
