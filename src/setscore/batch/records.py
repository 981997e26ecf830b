"""What a folder says of itself: a manifest of what the batch is, and a receipt for each shard that is done."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from setscore.batch.folders import TEMPORARY, Folder, Seal, seal_of
from setscore.batch.identity import differences
from setscore.batch.inputs import SPOOL
from setscore.batch.locks import LOCK
from setscore.batch.plan import Shard
from setscore.errors import DataFileError, SetScoreError, brief
from setscore.storage import SAVED, parse_json, read_limited

MANIFEST, RECEIPTS, PARTS, ATTEMPT = "_manifest.json", "_shards", "part-", ".attempt"
FORMAT = "setscore.batch/1"


class OtherBatchError(SetScoreError):
    """The folder holds another batch than the one that is to go on."""


@dataclass(frozen=True)
class Manifest:
    """What a batch is: `about` holds all that its rows depend on by name; `finished` is the seal of its one file."""

    about: Mapping[str, Any]
    identity: str
    finished: Seal | None = None


@dataclass(frozen=True)
class Receipt:
    """That a shard is done.

    digest     of the rows that were read
    identity   of what scored them
    seal       of the file that holds them
    rows, failed, truncated, dropped, forwards   what is counted
    """

    number: int
    digest: str
    identity: str
    seal: Seal
    rows: int
    failed: int
    truncated: int
    dropped: int
    forwards: int


def part_name(number: int, form: str) -> str:
    """The file of a shard: sorted by name they are in order."""
    return f"{PARTS}{number:06}.{form}"


def read_manifest(folder: Folder) -> Manifest | None:
    """The manifest, or None in a folder that has none. What cannot be read is an error: nothing is guessed."""
    try:
        with folder.open(MANIFEST) as file:
            content = parse_json(read_limited(file, SAVED).decode(), SAVED)
    except FileNotFoundError:
        return None
    except ValueError as error:
        if isinstance(error, DataFileError):
            raise
        raise _damaged(folder, MANIFEST) from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        found = content.get("format") if isinstance(content, dict) else None
        raise DataFileError(
            f"{folder.path(MANIFEST)} has the format {brief(found)}; this version of SetScore reads {FORMAT!r}."
            " Add --force to begin anew, or give another place."
        )
    try:
        seal = content["finished"]
        return Manifest(dict(content["about"]), str(content["identity"]), None if seal is None else Seal(**seal))
    except (LookupError, TypeError, ValueError) as error:
        raise _damaged(folder, MANIFEST) from error


def write_manifest(folder: Folder, manifest: Manifest) -> None:
    _write(folder, MANIFEST, {"format": FORMAT, **asdict(manifest)})


def write_receipt(folder: Folder, receipt: Receipt) -> None:
    _write(folder, f"{RECEIPTS}/{receipt.number:06}.json", asdict(receipt))


def check_same(folder: Folder, before: Manifest, now: Manifest) -> None:
    """An error that names what differs."""
    if found := differences(before.about, now.about):
        raise OtherBatchError(
            f"{folder.address} holds a batch that differs in {'; '.join(found)}. Give another place, or add --force to"
            " begin anew: what is there is removed."
        )


def finished_shards(
    folder: Folder, shards: Sequence[Shard], identity: str, form: str, *, joined: bool
) -> dict[int, Receipt]:
    """Receipts of shards that are done: their rows have not changed, and their files are whole.

    A file that is torn is scored again; rows that have changed since are an error, as two states of them would mix.
    Files that have been `joined` into one are no longer there.
    """
    done: dict[int, Receipt] = {}
    names = set(folder.names(RECEIPTS))
    for shard in shards:
        if f"{shard.number:06}.json" not in names:
            continue
        receipt = _receipt(folder, shard.number)
        if receipt is None or receipt.identity != identity:
            continue
        if (receipt.digest, receipt.rows) != (shard.digest, shard.rows):
            raise OtherBatchError(
                f"the rows of shard {shard.number} have changed since it was scored. Give another place, or add"
                " --force to begin anew."
            )
        if joined or is_whole(folder, part_name(shard.number, form), receipt.seal):
            done[shard.number] = receipt
    return done


def is_whole(folder: Folder, name: str, seal: Seal) -> bool:
    """Whether a file is there as it was written."""
    return folder.size(name) == seal.size and seal_of(folder, name) == seal


def clear(folder: Folder) -> None:
    """Removes what a batch wrote, and nothing else; what came from standard input just now stays."""
    for name in _ours(folder):
        if not name.startswith(SPOOL):
            folder.remove(name)


def attempt_name(number: int, attempt: int) -> str:
    """A note that somebody began with a shard, for engines whose workers may die unseen."""
    return f"{RECEIPTS}/{number:06}.{attempt}{ATTEMPT}"


def sweep(folder: Folder) -> None:
    """Removes what a process that was killed left half done."""
    for below in ("", f"{RECEIPTS}/"):
        for name in folder.names(below.rstrip("/")):
            if name.endswith((TEMPORARY, ATTEMPT)):
                folder.remove(f"{below}{name}")


def foreign(folder: Folder) -> list[str]:
    """Files of a folder that no batch wrote."""
    return sorted(set(folder.names()) - {name for name in _ours(folder) if "/" not in name} - {LOCK})


def _ours(folder: Folder) -> Iterator[str]:
    yield from (f"{RECEIPTS}/{name}" for name in folder.names(RECEIPTS))
    for name in folder.names():
        if name == MANIFEST or name.startswith((PARTS, SPOOL)):
            yield name


def _receipt(folder: Folder, number: int) -> Receipt | None:
    """None for one that is not whole: its shard is scored again."""
    try:
        with folder.open(f"{RECEIPTS}/{number:06}.json") as file:
            content = parse_json(read_limited(file).decode())
        return Receipt(**{**content, "seal": Seal(**content["seal"])})
    except (ValueError, LookupError, TypeError, FileNotFoundError):
        return None


def _write(folder: Folder, name: str, content: Mapping[str, Any]) -> None:
    with folder.create(name) as file:
        file.write(f"{json.dumps(content, indent=1, ensure_ascii=False)}\n".encode())


def _damaged(folder: Folder, name: str) -> DataFileError:
    return DataFileError(f"{folder.path(name)} is damaged. Add --force to begin anew, or give another place.")
