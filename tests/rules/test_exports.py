"""The public names are pinned, and importing them stays light."""

from __future__ import annotations

import importlib
import pydoc
import subprocess
import sys

import pytest

from tests.rules.source import PACKAGE, SRC

PINNED: tuple[str, ...] = (
    "AuthError",
    "Backoff",
    "Bearer",
    "Cache",
    "Client",
    "DriftError",
    "Handlers",
    "HoldfastError",
    "Http",
    "Ledger",
    "Limits",
    "OAuth",
    "Observability",
    "OutcomeUnknown",
    "Progress",
    "PromptResult",
    "ProtocolError",
    "ReadResult",
    "RequestTimeout",
    "RpcError",
    "Servers",
    "StateError",
    "Stdio",
    "Timeouts",
    "Tool",
    "ToolError",
    "ToolPolicy",
    "ToolResult",
    "TransportError",
    "ValidationError",
    "__version__",
    "connect",
)
"""``holdfast.__all__``, sorted. A change here changes the public API: tell CHANGELOG.md."""

HEAVY = (
    "aiohttp",
    "argparse",
    "click",
    "email",
    "http",
    "jsonschema_rs",
    "msgspec",
    "opentelemetry",
    "pydantic",
    "rich",
    "ssl",
    "unittest",
)
"""Loaded on use, never by ``import holdfast``."""

_PROBE = """
import asyncio, sys
heavy = sys.argv[1].split(",")
for name in heavy:
    sys.modules.pop(name, None)  # asyncio loads ssl itself: only what comes after it counts
import {module}
print(",".join(name for name in heavy if name in sys.modules))
"""


def difference(pinned: tuple[str, ...], actual: list[str]) -> str:
    """What to change in ``PINNED``, or in the package, to make them agree; empty if they do."""
    lines = [f"+ {name}  (exported, not pinned)" for name in sorted(set(actual) - set(pinned))]
    lines += [f"- {name}  (pinned, not exported)" for name in sorted(set(pinned) - set(actual))]
    if not lines and list(pinned) != actual:
        lines = [f"not sorted, or doubled: {actual}"]
    return "\n".join(lines)


def heavy_imports(module: str, heavy: tuple[str, ...]) -> list[str]:
    """Which of ``heavy`` a fresh interpreter loads when it imports ``module``."""
    path = f"import sys; sys.path.insert(0, {str(SRC)!r})\n"
    probe = subprocess.run(
        [sys.executable, "-I", "-c", path + _PROBE.format(module=module), ",".join(heavy)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert probe.returncode == 0, probe.stderr
    return [name for name in probe.stdout.strip().split(",") if name]


def _package_exists() -> bool:
    return (SRC / PACKAGE / "__init__.py").exists()


def test_the_public_names_are_the_pinned_ones() -> None:
    if _package_exists():
        actual = list(importlib.import_module(PACKAGE).__all__)
        assert not (delta := difference(PINNED, actual)), f"holdfast.__all__ has changed:\n{delta}"


@pytest.mark.req("N3")
def test_the_package_itself_has_what_a_newcomer_needs_and_no_more() -> None:
    assert len(PINNED) <= 35
    errors = [name for name in PINNED if name.endswith(("Error", "Timeout"))]
    assert len(errors) == 10


@pytest.mark.parametrize("part", ["auth", "calls", "calllog", "lock"])
def test_what_is_no_name_of_the_package_is_in_its_module(part: str) -> None:
    module = importlib.import_module(f"{PACKAGE}.{part}")
    assert all(getattr(module, name) is not None for name in module.__all__)
    assert heavy_imports(f"{PACKAGE}.{part}", HEAVY) == []


def test_every_public_name_can_be_had() -> None:
    if _package_exists():
        package = importlib.import_module(PACKAGE)
        missing = [name for name in package.__all__ if not hasattr(package, name)]
        assert not missing


PACKAGES = ("agents", "auth", "calllog", "calls", "codegen", "config", "handles", "lock", "servers")


@pytest.mark.parametrize("part", ["", *PACKAGES, "sync"])
def test_help_shows_a_package_and_each_of_its_names(part: str) -> None:
    package = importlib.import_module(f"{PACKAGE}.{part}".rstrip("."))
    named = [getattr(package, name) for name in package.__all__]
    for shown in (package, *(one for one in named if not isinstance(one, str))):
        assert pydoc.render_doc(shown)


def test_importing_the_package_is_light() -> None:
    if _package_exists():
        assert heavy_imports(PACKAGE, HEAVY) == []


@pytest.mark.parametrize("name", ["errors", "sync", "testing", "types"])
def test_a_part_can_be_reached_without_an_import_of_its_own(name: str) -> None:
    assert getattr(importlib.import_module(PACKAGE), name).__name__ == f"{PACKAGE}.{name}"


def test_an_unknown_name_is_refused_as_any_module_would() -> None:
    package = importlib.import_module(PACKAGE)
    with pytest.raises(AttributeError, match="has no attribute 'gadget'"):
        _ = package.gadget
    assert {*package.__all__, "sync"} <= {*dir(package)}


def test_a_heavy_import_is_noticed() -> None:
    assert heavy_imports("http.client", ("http", "email", "unittest")) == ["http", "email"]


@pytest.mark.parametrize(
    ("pinned", "actual", "delta"),
    [
        (("a", "b"), ["a", "b"], ""),
        (("a",), ["a", "b"], "+ b  (exported, not pinned)"),
        (("a", "b"), ["a"], "- b  (pinned, not exported)"),
        (("a", "b"), ["b", "a"], "not sorted, or doubled: ['b', 'a']"),
    ],
)
def test_a_changed_export_is_shown(pinned: tuple[str, ...], actual: list[str], delta: str) -> None:
    assert difference(pinned, actual) == delta
