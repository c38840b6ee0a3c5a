"""The small examples: each runs as it stands, against the server that comes along."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from aiohttp.test_utils import TestClient, TestServer

from examples import web_service
from tests.rules.source import PROJECT

EXAMPLES = PROJECT / "examples"
PATH = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
PRINTED = {
    "call_a_tool": ["echo", "{'sum': 5}"],
    "many_servers": ["24 tools", "broken failed", '{"sum": 3}'],
    "agent_loop": ['"sum": 42'],
    "answer_questions": ["The server asks: What is your name?", "Hello, Ada!"],
}


def run(*words: str, cwd: Path = PROJECT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words],
        cwd=cwd,
        env={**os.environ, "PATH": PATH},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


@pytest.mark.req("N4")
@pytest.mark.parametrize("name", PRINTED)
def test_an_example_runs_as_it_stands(name: str) -> None:
    done = run(f"examples/{name}.py")
    assert done.returncode == 0, done.stderr
    for text in PRINTED[name]:
        assert text in done.stdout


@pytest.mark.req("N4")
def test_the_typed_handle_is_made_and_used(tmp_path: Path) -> None:
    command = ["codegen", "-o", "demo_tools.py", "--", sys.executable, "-m", "holdfast.demo.server"]
    made = run("-m", "holdfast", *command, cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    (tmp_path / "typed_handle.py").write_text((EXAMPLES / "typed_handle.py").read_text())
    done = run("typed_handle.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "3" in done.stdout
    assert "hello" in done.stdout


@pytest.mark.req("N4")
@pytest.mark.long
def test_the_recording_is_made_and_replayed(tmp_path: Path) -> None:
    test = str(EXAMPLES / "test_with_recording.py")
    options = ["-p", "no:cacheprovider", "-o", "asyncio_mode=auto", "--rootdir", str(tmp_path)]
    for mode in ("--mcp-record", "--mcp-replay"):
        done = run("-m", "pytest", "-q", *options, mode, "recordings", test, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.req("N4")
async def test_the_web_service_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", PATH)
    async with TestClient(TestServer(web_service.make())) as client:
        answer = await client.get("/add", params={"a": "1", "b": "2"})
        assert await answer.json() == {"sum": 3}


@pytest.mark.req("N4")
def test_the_examples_are_short() -> None:
    for path in EXAMPLES.glob("*.py"):
        assert len(path.read_text().splitlines()) <= 40, path.name
