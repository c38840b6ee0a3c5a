"""``holdfast codegen``: a module, written only where that is wanted."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import DEMO, Cli, Configure, stdio
from tests.cli.rig import puppet

SZKRABOK = [sys.executable, str(Path(__file__).parents[1] / "handles" / "szkrabok.py")]


@pytest.mark.req("F3")
def test_a_module_is_written_once(cli: Cli) -> None:
    words = ["codegen", "-o", "tools.py", "--", *DEMO]
    assert cli(*words).err.endswith("Generated 12 tools.\n")
    source = Path("tools.py").read_text()
    compile(source, "tools.py", "exec")
    assert "Regenerate: holdfast codegen -o tools.py -- " in source
    assert cli(*words).err.endswith("No changes.\n")
    assert "class Tools(Handle, RootTools):" in cli("codegen", "--", *DEMO).out


@pytest.mark.req("F3")
def test_a_module_that_is_not_fresh_is_found(cli: Cli) -> None:
    cli("codegen", "-o", "tools.py", "--", *puppet())
    done = cli("codegen", "-o", "tools.py", "--check", "--", *puppet(tools=["other"]))
    assert done.code == 6
    assert "tools.py is not what the server's tools would give now." in done.err
    words = ["codegen", "-o", "missing.py", "--check", "--json", "--", *puppet()]
    done = cli(*words)
    assert (done.code, done.error["kind"], done.value["changed"]) == (6, "drift", True)
    assert not Path("missing.py").exists()
    done = cli("codegen", "-o", "tools.py", "--check", "--", *puppet())
    assert (done.code, done.err) == (0, "No changes.\n")
    assert "name it with -o" in cli("codegen", "--check", "--", *puppet()).err


@pytest.mark.req("F3")
def test_nobody_elses_file_is_written_over(cli: Cli) -> None:
    Path("main.py").write_text("print('mine')\n")
    done = cli("codegen", "-o", "main.py", "--", *puppet())
    assert done.code == 2
    assert "main.py is not a module of holdfast codegen; nothing was written" in done.err
    assert Path("main.py").read_text() == "print('mine')\n"
    assert cli("codegen", "-o", "no/such/folder.py", "--", *puppet()).code == 2


def test_a_module_for_a_server_with_sessions(cli: Cli) -> None:
    words = ["--session", "sessionName", "--hide", "health", "--sync", "--no-target", "--stamp"]
    done = cli("codegen", *words, "--", *SZKRABOK)
    assert done.code == 0
    assert "def connect_sync(" in done.out
    assert "session.open" in done.out
    assert "    health" not in done.out
    regenerate = next(line for line in done.out.splitlines() if line.startswith("Regenerate: "))
    for word in ("--session sessionName", "--hide health", "--sync", "--no-target", "--stamp"):
        assert word in regenerate


def test_a_configured_servers_own_settings_stay_out_of_it(cli: Cli, configure: Configure) -> None:
    configure(x=stdio(puppet(), env={"TOKEN": "s3cret"}))
    done = cli("codegen", "x", "--json")
    assert done.value["tools"] == 1
    assert "Regenerate: holdfast codegen x\n" in done.value["source"]
    assert 'TARGET: Final[Target] = "x"' in done.value["source"]
    assert "s3cret" not in done.out


_USE = """
import asyncio, tools_of_x

async def main():
    async with tools_of_x.connect() as handle:
        print(handle.client.name, len(await handle.client.list_tools()))

asyncio.run(main())
"""


@pytest.mark.req("N5")
def test_a_module_for_a_configured_server_finds_it_by_its_name(
    cli: Cli, configure: Configure
) -> None:
    configure(x=stdio(puppet()))
    assert cli("codegen", "x", "-o", "tools_of_x.py").code == 0
    done = subprocess.run([sys.executable, "-c", _USE], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["x", "1"], done.stderr


@pytest.mark.parametrize("word", ["no target", "a file of one's own", "not one word"])
def test_a_name_that_connect_would_not_find_is_left_out(
    cli: Cli, configure: Configure, tmp_path: Path, word: str
) -> None:
    name = "x y" if word == "not one word" else "x"
    configure(**{name: stdio(puppet())})
    options = ["--no-target"] if word == "no target" else []
    if word == "a file of one's own":
        file = tmp_path / "own.json"
        file.write_text(json.dumps({"mcpServers": {"x": stdio(puppet())}}))
        options = ["--config", str(file)]
    done = cli("codegen", name, *options, "--json")
    assert "TARGET: Final[Target] = None" in done.value["source"]


USER = """
import asyncio, mcp_tools

async def main():
    async with mcp_tools.connect() as demo:
        print((await demo.echo(text="hi")).text)

asyncio.run(main())
"""


@pytest.mark.req("F3")
def test_a_module_for_a_configured_name_works_from_any_folder(
    cli: Cli, configure: Configure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(demo=stdio(DEMO))
    assert cli("codegen", "demo", "-o", "mcp_tools.py").code == 0
    monkeypatch.setenv("PYTHONPATH", str(Path.cwd()))
    done = subprocess.run(
        [sys.executable, "-c", USER], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("hi\n", "")
