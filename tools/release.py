"""Is this fit to be released? Builds the wheel and the sdist, and tries what was built.

The wheel is installed into a virtual environment of its own, in a temporary folder, and used
from there: nothing of the source tree is in reach. ``--out dist`` keeps what was built.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tools import wheel as judge

PROJECT: Final = Path(__file__).resolve().parent.parent
LONGEST: Final = 240.0
"""Seconds for one command."""

SUITE: Final = (
    "conftest.py",
    "posix.py",
    "rows.py",
    "skipping.py",
    "thorough.py",
    "engine",
    "eras",
    "server",
    "wire",
    "http",
    "sync",
    "testing/suites.py",
    "testing/test_peer.py",
    "testing/test_plugin.py",
    "transports",
    "test_boundary.py",
    "test_client.py",
    "test_driver.py",
    "test_mailbox.py",
    "test_policies.py",
    "demo",
    "test_errors.py",
    "test_targets.py",
)
"""Tests that need nothing but the package: these are run against the installed wheel."""

SMOKE: Final = """
import asyncio, importlib.metadata, importlib.resources, importlib.util, pathlib, sys
import holdfast

home = pathlib.Path(holdfast.__file__).resolve()
assert home.is_relative_to(pathlib.Path(sys.prefix).resolve()), home
assert holdfast.__version__ == importlib.metadata.version("holdfast"), holdfast.__version__
assert importlib.resources.files("holdfast").joinpath("py.typed").is_file()
for name in ("tests", "tools", "benchmarks"):
    assert importlib.util.find_spec(name) is None, name
for name in holdfast.__all__:
    getattr(holdfast, name)

async def main():
    async with holdfast.connect([sys.executable, "-m", "holdfast.demo.server"]) as client:
        tools = await client.list_tools()
        assert tools, "no tools"
        result = await client.call_tool("add", {"a": 2, "b": 3})
        assert "5" in result.text, result
    return len(tools)

print(asyncio.run(asyncio.wait_for(main(), 30)), "tools")
"""

EXTRAS: Final = """
import cryptography, keyring, opentelemetry.trace, prompt_toolkit, redis, uvloop, yaml
import asyncio, sys
import holdfast

async def main():
    observability = holdfast.Observability(opentelemetry=True)
    target = [sys.executable, "-m", "holdfast.demo.server"]
    async with holdfast.connect(target, observability=observability) as client:
        assert (await client.call_tool("add", {"a": 2, "b": 3})).text

uvloop.run(asyncio.wait_for(main(), 30))

from holdfast.load import McpUser  # last: Locust replaces the sockets of its process
assert McpUser.abstract
"""

SAME: Final = """
import sys
from pathlib import Path

import holdfast


def test_this_is_the_installed_package() -> None:
    assert Path(holdfast.__file__).resolve().is_relative_to(Path(sys.prefix).resolve())
"""


class NotFit(Exception):  # noqa: N818  (a verdict)
    """A reason not to release."""


class Bench:
    """One check of a release, in a folder that is not the project's."""

    def __init__(self, folder: Path, project: Path = PROJECT) -> None:
        self.folder = folder
        self.project = project
        self.dist = folder / "dist"
        self.venv = folder / "venv"
        self.settings: dict[str, Any] = tomllib.loads(
            (project / "pyproject.toml").read_text(encoding="utf-8")
        )

    @property
    def python(self) -> str:
        return str(self.venv / "bin" / "python")

    @property
    def wheel(self) -> Path:
        return _only(self.dist, "*.whl")

    def run(self, *command: str, cwd: Path | None = None) -> str:
        """What a command prints; `NotFit` with the end of it if it fails."""
        try:
            done = subprocess.run(
                command,
                cwd=self.folder if cwd is None else cwd,
                env=clean(os.environ),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                errors="replace",
                timeout=LONGEST,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise NotFit(f"{' '.join(command[:4])}: no end after {LONGEST:g} s") from None
        if done.returncode:
            tail = "\n".join(done.stdout.splitlines()[-30:])
            raise NotFit(f"{' '.join(command[:4])}: exit status {done.returncode}\n{tail}")
        return done.stdout

    # The checks, in order

    def build(self) -> str:
        """The sdist from the tree, and the wheel from the sdist: so the sdist is complete."""
        self.run(sys.executable, "-m", "build", "-o", str(self.dist), str(self.project))
        return f"{self.wheel.name}, {self.wheel.stat().st_size // 1024} KiB"

    def build_again(self) -> str:
        """The wheel straight from the tree is the same file."""
        other = self.folder / "other"
        self.run(sys.executable, "-m", "build", "--wheel", "-o", str(other), str(self.project))
        if _only(other, "*.whl").read_bytes() != self.wheel.read_bytes():
            raise NotFit("the wheel of the sdist is not the wheel of the tree")
        return "byte by byte"

    def inspect(self) -> str:
        sources = judge.read_sources(self.project / "src")
        sdist = judge.sdist_names(_only(self.dist, "*.tar.gz"))
        faults = [
            *judge.wheel_faults(judge.Wheel.read(self.wheel), self.settings["project"], sources),
            *judge.sdist_faults(sdist, sources),
        ]
        if faults:
            raise NotFit("\n".join(faults))
        return f"{len(sources)} files in the package, {len(sdist)} in the sdist"

    def install(self) -> str:
        """The wheel alone, with what it says it needs and no more."""
        self.run(sys.executable, "-m", "venv", str(self.venv))
        self.pip(str(self.wheel))
        self.run(self.python, "-m", "pip", "check")
        packages = len(self.run(self.python, "-m", "pip", "list").splitlines()) - 2
        return f"{packages} packages, {size(self.venv) / 1e6:.0f} MB with pip itself"

    def use(self) -> str:
        return self.run(self.python, "-I", "-W", "error", "-c", SMOKE).strip()

    def newcomer(self) -> str:
        """Follow README and Installation, with the times of each step."""
        command = (sys.executable, "-m", "tests.newcomer", "--python", self.python)
        said = self.run(*command, cwd=self.project).splitlines()
        return "\n".join([said[-1], *(f"        {line}" for line in said[:-1])])

    def demo(self) -> str:
        lines = self.run(self.python, "-I", "-m", "holdfast.demo").splitlines()
        return f"{len(lines)} lines"

    def script(self) -> str:
        """The console scripts run, where the project has any."""
        scripts = judge.Wheel.read(self.wheel).scripts
        for name in scripts:
            command = str(self.venv / "bin" / name)
            self.run(command, "--help")
            said = self.run(command, "--version")
            if judge.Wheel.read(self.wheel).metadata["Version"] not in said:
                raise NotFit(f"{name} --version says {said.strip()!r}")
        return ", ".join(scripts) or "none"

    def extras(self) -> str:
        extras = ",".join(sorted(judge.EXTRAS))
        self.pip(f"{self.wheel}[{extras}]", *self.test_tools())
        self.run(self.python, "-m", "pip", "check")
        self.run(self.python, "-I", "-c", EXTRAS)
        return extras

    def suite(self) -> str:
        """Copied tests, beside no sources, against what is installed."""
        lay_out(self.project, self.folder / "suite")
        return self.run_suite()

    def run_suite(self) -> str:
        command = (self.python, "-m", "pytest", "-q", "-m", "not hypothesis")
        said = self.run(*command, "-p", "no:cacheprovider", cwd=self.folder / "suite")
        return said.splitlines()[-1].strip("= ")

    def lowest(self) -> str:
        """The same tests, with the oldest versions that the project says will do."""
        pins = oldest(self.settings["project"])
        self.pip(*pins)
        lines = self.run_suite()
        return f"{', '.join(pins)}: {lines}"

    def pip(self, *what: str) -> None:
        self.run(self.python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *what)

    def test_tools(self) -> list[str]:
        """What the tests need, by the versions that the project itself asks for."""
        named = ("pytest>", "pytest-asyncio", "hypothesis")
        dev = self.settings["project"]["optional-dependencies"]["dev"]
        return [need for need in dev if need.startswith(named)]


CHECKS: Final[tuple[tuple[str, Callable[[Bench], str]], ...]] = (
    ("build the sdist and the wheel", Bench.build),
    ("build the same wheel again", Bench.build_again),
    ("look inside", Bench.inspect),
    ("install the wheel alone", Bench.install),
    ("use it", Bench.use),
    ("follow README and Installation as a newcomer", Bench.newcomer),
    ("run its demo", Bench.demo),
    ("run its console scripts", Bench.script),
    ("install and use the extras", Bench.extras),
    ("run the tests against it", Bench.suite),
)


LOWEST: Final = ("run the tests with the oldest versions", Bench.lowest)


def oldest(project: Mapping[str, Any]) -> list[str]:
    """The lower bounds of what the package and its extras need, as pins."""
    extras = project["optional-dependencies"]
    needs = [*project["dependencies"], *(need for name in judge.EXTRAS for need in extras[name])]
    return sorted(need.partition(";")[0].strip().replace(">=", "==") for need in needs)


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def clean(environ: Mapping[str, str]) -> dict[str, str]:
    """An environment through which nothing of the source tree is found."""
    leaks = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "MCP_SERVER_URL", "HOLDFAST_REQUIRE_ALL")
    return {name: value for name, value in environ.items() if name not in leaks}


def lay_out(project: Path, suite: Path) -> None:
    """Copy the tests and pytest's settings, and a test that looks where the package is from."""
    (suite / "tests").mkdir(parents=True)
    for name in SUITE:
        source, target = project / "tests" / name, suite / "tests" / name
        target.parent.mkdir(exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    shutil.copy(project / "pyproject.toml", suite)
    (suite / "tests" / "test_installed.py").write_text(SAME, encoding="utf-8")


def _only(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        raise NotFit(f"{pattern}: {len(found)} files were built, not one")
    return found[0]


@contextmanager
def somewhere() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="holdfast-release-") as folder:
        yield Path(folder).resolve()


def check(bench: Bench, checks: Sequence[tuple[str, Callable[[Bench], str]]] = CHECKS) -> bool:
    """Go through the checks; the first that fails ends it."""
    for title, step in checks:
        began = time.monotonic()
        try:
            said = step(bench)
        except NotFit as reason:
            print(f"FAIL  {title}\n{reason}", flush=True)
            return False
        print(f"ok    {title}: {said} ({time.monotonic() - began:.1f} s)", flush=True)
    return True


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="release", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, help="keep the wheel and the sdist in this folder")
    parser.add_argument(
        "--lowest", action="store_true", help="try the oldest versions of the dependencies too"
    )
    options = parser.parse_args(argv)
    with somewhere() as folder:
        bench = Bench(folder)
        fit = check(bench, (*CHECKS, LOWEST) if options.lowest else CHECKS)
        if fit and options.out is not None:
            shutil.copytree(bench.dist, options.out, dirs_exist_ok=True)
    return 0 if fit else 1


if __name__ == "__main__":
    sys.exit(main())
