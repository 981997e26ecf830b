"""`setscore serve` as a process: it starts, says where, answers what it accepted when told to end, refuses mistakes."""

import builtins

import pytest
from commands import invoke
from servers import KEY

from benchmarks.speed import serve as load
from setscore.errors import MissingExtraError
from setscore.server import Settings, create_app


def test_clients_that_leave_free_their_place_and_sigterm_loses_nothing():
    found = load.stress(6)
    assert found["leaving"]["waiting"] > 64
    assert found["leaving"]["abandoned"] > 0
    assert found["sigterm"] == {"sent": 6, "answered": 6}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--host", "0.0.0.0"], "0.0.0.0 can be reached by others: give a key"),
        (["--api-key-file", "nowhere"], "the key file nowhere cannot be read: No such file or directory."),
        (["--classifier", "nowhere.json"], "nowhere.json"),
        (["--backbone", "nothing"], "unknown backbone 'nothing'"),
        (["--allow", "pickle"], "--allow is for --classifier"),
        (["--labels", "a,a"], "label 'a' is listed twice"),
        (["--label-text", "name"], "--label-text says how the labels of --labels are asked"),
    ],
)
def test_mistakes_are_told_before_anything_is_served(tmp_path, options, told):
    code, _, err = invoke("serve", "--port", "0", "--no-page", *options, folder=tmp_path)
    assert (code, told in err) == (2, True), err


@pytest.mark.parametrize(("key", "told"), [("", "holds no key"), ("two words", "ASCII without blanks")])
def test_keys_that_are_none(tmp_path, key, told):
    (tmp_path / "key").write_text(key)
    code, _, err = invoke("serve", "--port", "0", "--api-key-file", "key", folder=tmp_path)
    assert (code, told in err) == (2, True), err


def test_a_key_is_never_shown():
    assert KEY not in repr(Settings(described=None, key=KEY))


def test_without_the_extra_it_says_what_to_install(monkeypatch):
    real = builtins.__import__

    def without(name, *arguments, **more):
        if name == "setscore.server" and arguments[2] == ("app",):
            raise ModuleNotFoundError("No module named 'fastapi'", name="fastapi")
        return real(name, *arguments, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"dllm-setscore\[serve\]"):
        create_app(Settings(described=None))
