"""Run the fuzz targets of tests/fuzz for a while; what breaks one is kept in its corpus.

With ``atheris`` installed (it is no dependency: it does not build everywhere) the search goes
by the branches that inputs reach. Without it, hypothesis makes inputs by the same recipe as the
tests do, only many more of them.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import importlib.util
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from hypothesis import HealthCheck, Phase, given, settings

from tests.fuzz.inputs import CORPUS, inputs
from tests.fuzz.targets import TARGETS, Target

ROUND: Final = 500
"""Inputs of one run of hypothesis; there are as many runs as fit into the time."""

_settings = settings(
    max_examples=ROUND,
    deadline=None,
    database=None,
    phases=(Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
)


def by_chance(name: str, target: Target, seconds: float) -> tuple[int, bytes | None]:
    """How many inputs were tried, and the smallest that broke the target."""
    tried, broke = 0, list[bytes]()

    @_settings
    @given(inputs(name))
    def attempt(data: bytes) -> None:
        nonlocal tried
        tried += 1
        try:
            target(data)
        except Exception:
            broke.append(data)
            raise

    end = time.monotonic() + seconds
    while time.monotonic() < end and not broke:
        try:
            attempt()
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
    return tried, min(broke, key=len, default=None)


def by_coverage(name: str, seconds: float) -> tuple[int, bytes | None]:
    """The same by atheris, in a process of its own: it ends the one that it runs in."""
    with tempfile.TemporaryDirectory(prefix="holdfast-fuzz-") as folder:
        new = Path(folder) / "new"
        new.mkdir()
        command = [sys.executable, "-m", "tools.fuzz", "--child", name, "--"]
        command += [f"-max_total_time={max(1, round(seconds))}", f"-artifact_prefix={folder}/"]
        done = subprocess.run(
            [*command, str(new), str(CORPUS / name)], stderr=subprocess.PIPE, check=False
        )
        found = [path.read_bytes() for path in Path(folder).glob("*-*") if path.is_file()]
    if done.returncode:
        sys.stderr.buffer.write(done.stderr[-4000:])
    return _runs(done.stderr), min(found, key=len, default=None)


def _runs(said: bytes) -> int:
    """libFuzzer's last word: ``Done 12345 runs in 10 second(s)``."""
    _, _, rest = said.rpartition(b"Done ")
    number = rest.split(b" ", 1)[0]
    return int(number) if number.isdigit() else 0


def child(name: str, arguments: list[str]) -> None:
    atheris: Any = importlib.import_module("atheris")
    for module in ("framing", "jsonrpc", "sse"):
        _instrument(atheris, sys.modules[f"holdfast._core.wire.{module}"])
    atheris.Setup([sys.argv[0], *arguments], TARGETS[name])
    atheris.Fuzz()


def _instrument(atheris: Any, module: Any) -> None:
    """The functions of a module, and of its classes, report the branches they take."""
    owners = [module, *(one for one in vars(module).values() if isinstance(one, type))]
    for owner in owners:
        for one in vars(owner).values():
            if type(one) is type(child) and one.__module__ == module.__name__:
                atheris.instrument_func(one)


def keep(name: str, data: bytes) -> Path:
    """Put what broke a target where the tests will try it from now on."""
    path = CORPUS / name / f"found-{hashlib.sha256(data).hexdigest()[:12]}"
    path.write_bytes(data)
    return path


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="fuzz", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("targets", nargs="*", metavar="target", help=", ".join(TARGETS))
    parser.add_argument("--seconds", type=float, default=15.0, help="for each target (15)")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.child:
        child(options.child, options.targets)
        return 0
    unknown = [name for name in options.targets if name not in TARGETS]
    if unknown:
        parser.error(f"no such target: {unknown[0]} (there are: {', '.join(TARGETS)})")
    return run(options.targets or list(TARGETS), options.seconds)


def run(names: list[str], seconds: float) -> int:
    guided = importlib.util.find_spec("atheris") is not None
    print(f"inputs by {'atheris' if guided else 'hypothesis (atheris is not installed)'}")
    broken = False
    for name in names:
        tried, found = (
            by_coverage(name, seconds) if guided else by_chance(name, TARGETS[name], seconds)
        )
        if found is None:
            print(f"ok    {name}: {tried} inputs in {seconds:g} s", flush=True)
        else:
            broken = True
            print(f"FAIL  {name}: {found!r}\n      kept as {keep(name, found)}", flush=True)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
