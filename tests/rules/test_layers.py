"""Imports point down.

``ABOVE`` is the architecture: what stands on the left may import what stands on the right, and
whatever that may import in turn. Imports inside functions and under TYPE_CHECKING count too.
"""

from __future__ import annotations

from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.rules.source import PACKAGE, SRC, Module, modules, unit_of, write_package

OPEN_TO_ALL = ("errors", "policies", "types", "_version", "_lazy")

ABOVE: dict[str, tuple[str, ...]] = {
    # the vocabulary
    "errors": (),
    "_version": (),
    "_core": (),
    "_lazy": (),
    "_core.callbacks": (),
    "_core.text": (),
    "_core.line_queue": (),
    "_core.system": (),
    "_core.command_line": (),
    "_core.windows": (),
    "_core.files": ("errors",),
    "_core.redact": ("_core.text",),
    "_core.yaml_reader": ("_core.text",),
    "_core.rate": ("errors",),
    "policies": ("errors", "_version", "_core.rate"),
    "types": ("errors", "_lazy", "_core.text"),
    # the pure core
    "_core.wire": ("errors", "_core.text"),
    "_core.boundary": ("_core.wire",),
    "_core.eras": ("_core.boundary",),
    "_core.engine": ("_core.eras",),
    "_core.server": ("_core.eras", "_core.text"),
    "schema": ("types", "_core.text", "_core.wire"),
    # the shell around it
    "_core.single_flight": ("errors",),
    "stores": ("_core.files", "_core.redact"),
    "_core.ledger": ("stores", "_core.text"),
    "_core.auth": (
        "stores",
        "_core.wire",
        "_core.files",
        "_core.redact",
        "_core.single_flight",
        "_core.callbacks",
    ),
    "_core.transports": (
        "_core.boundary",
        "_core.auth",
        "_core.system",
        "_core.windows",
        "_core.command_line",
    ),
    "_core.mailbox": ("_core.engine", "_core.callbacks"),
    "_core.tap": ("_core.boundary", "_core.redact", "_core.text"),
    "_core.alarm": (),
    "_core.jitter": (),
    "_core.limits": ("_core.engine", "_core.rate", "stores"),
    "_core.waiting": ("_core.boundary",),
    "_core.driver": (
        "_core.waiting",
        "_core.alarm",
        "_core.jitter",
        "_core.engine",
        "_core.limits",
        "_core.mailbox",
        "_core.tap",
    ),
    "_core.forsaken": ("_core.driver",),
    "_core.observers": ("_core.engine", "_core.callbacks", "_core.redact", "schema"),
    "events": ("_core.observers",),
    "_core.calls": (
        "_core.driver",
        "events",
        "_core.auth",
        "_core.ledger",
        "_core.text",
        "_core.single_flight",
        "_core.yaml_reader",
    ),
    "_core.bulk": ("_core.calls", "_core.limits", "_core.jitter"),
    "_core.targets": ("_core.transports",),
    "_core.serve": ("_core.server", "_core.transports"),
    # the products
    "trace": ("calllog", "client"),
    "view": ("trace", "_version"),
    "lock": ("schema", "_core.files", "_core.redact", "_core.command_line"),
    "codegen": ("lock",),
    "calllog": ("_core.calls", "_core.line_queue", "lock", "_core.serve"),
    "client": ("_core.bulk", "_core.calls", "_core.forsaken", "_core.transports"),
    "relay": ("agents", "_core.serve"),
    "auth": ("_core.auth",),
    "calls": ("_core.bulk", "_core.calls"),
    "_pool": ("client",),
    "load": ("_connect",),
    "_accounts": ("_pool",),
    "_options": ("_core.calls", "_core.transports", "calllog", "lock", "trace"),
    "_build": ("_options", "_accounts", "_core.targets"),
    "daemon": ("relay", "_build"),
    "config": ("_build",),
    "hosts": ("config",),
    "registry": ("config",),
    "_connect": ("config",),
    "agents": ("config",),
    "servers": ("agents", "_connect"),
    "langchain": ("sync",),
    "openai_agents": ("servers",),
    "pydantic_ai": ("servers",),
    "sync": ("_connect", "servers"),
    "handles": ("sync", "codegen", "calllog"),
    "__init__": (
        "_connect",
        "auth",
        "calls",
        "sync",
        "servers",
        "handles",
        "langchain",
        "openai_agents",
        "pydantic_ai",
    ),
    "testing": ("__init__",),
    "demo": ("__init__", "view"),
    "cli": ("__init__", "hosts", "registry", "testing", "demo", "view", "relay", "daemon", "load"),
    "__main__": ("cli",),
}

EXCEPTIONS: dict[tuple[str, str], str] = {
    ("_core.boundary", "_core.auth"): "for type checkers only: a transport may have logins",
    ("types.display", "schema"): "a tool is shown as a signature; loads when one is shown",
    ("errors", "_core.redact"): "loads when an error is shown; redaction needs the policies",
    ("client", "agents"): "``client.toolset`` loads when it is used",
    ("agents.listing", "servers"): "a listing says which servers failed",
    ("agents.search", "servers"): "for type checkers only",
    ("agents.toolset", "servers"): "a toolset says which servers failed",
    ("__init__", "testing"): "for type checkers only: ``holdfast.testing`` loads when it is used",
}
"""(module, imported unit): the reason, one sentence. Empty is best."""

_HOW_TO_ADD = (
    "has no row in ABOVE (tests/rules/test_layers.py). Decide where it stands: "
    "give it a row that names the highest thing it may import."
)


def reach(unit: str) -> frozenset[str]:
    """All that a unit may import."""
    found = {unit}
    for below in ABOVE[unit]:
        found |= {below} | reach(below)
    return frozenset(found | (set() if unit in OPEN_TO_ALL else set(OPEN_TO_ALL)))


def imported_units(module: Module, units: set[str]) -> dict[str, int]:
    """The units that a module imports, each with a line. A name of the package is ``__init__``."""
    found: dict[str, int] = {}
    for entry in module.imports():
        package, _, rest = entry.target.partition(".")
        if package == PACKAGE:
            unit = unit_of(rest)
            found.setdefault(unit if unit in units else "__init__", entry.line)
    return found


def upward_imports(src: Path) -> list[str]:
    tree = modules(src)
    units = {module.unit for module in tree}
    faults = [f"{unit} {_HOW_TO_ADD}" for unit in sorted(units - ABOVE.keys())]
    for module in tree:
        if module.unit not in ABOVE:
            continue
        allowed = reach(module.unit)
        faults += [
            f"{module.at(line)} imports {target}, which is not below {module.unit} "
            f"(it may import: {', '.join(sorted(allowed - {module.unit})) or 'nothing'})"
            for target, line in imported_units(module, units).items()
            if target in ABOVE and target not in allowed and (module.name, target) not in EXCEPTIONS
        ]
    return faults


def test_imports_point_down() -> None:
    assert not (faults := upward_imports(SRC)), "\n".join(faults)


def test_the_table_has_no_circle_and_no_unknown_name() -> None:
    assert set(TopologicalSorter(ABOVE).static_order()) == ABOVE.keys()


def test_every_exception_is_still_needed() -> None:
    tree = {module.name: module for module in modules()}
    units = {module.unit for module in tree.values()}
    for (name, target), reason in EXCEPTIONS.items():
        assert reason
        assert name in tree, f"{name} is gone; so should its exception be"
        assert target in imported_units(tree[name], units), f"{name} no longer imports {target}"


@pytest.mark.parametrize(
    "line",
    [
        "from holdfast._core.engine import state",
        "from holdfast._core import engine",
        "import holdfast._core.engine.state",
        "from .. import engine",
        "from ..engine.state import State",
        "if TYPE_CHECKING:\n    from holdfast._core.engine import state",
        "def late():\n    import holdfast._core.engine",
        "importlib.import_module('holdfast._core.engine.state')",
    ],
)
def test_an_upward_import_is_found_however_it_is_written(tmp_path: Path, line: str) -> None:
    files = {
        "_core/wire/__init__.py": "",
        "_core/wire/framing.py": line,
        "_core/engine/state.py": "",
    }
    (fault,) = upward_imports(write_package(tmp_path, files))
    assert fault.startswith("_core.wire.framing:")
    assert "imports _core.engine, which is not below _core.wire" in fault


def test_a_name_of_the_package_counts_as_its_front(tmp_path: Path) -> None:
    src = write_package(
        tmp_path, {"__init__.py": "", "_core/calls/pipeline.py": "import holdfast\n"}
    )
    (fault,) = upward_imports(src)
    assert "_core.calls.pipeline:1 imports __init__" in fault


def test_downward_and_neighbouring_imports_are_fine(tmp_path: Path) -> None:
    files = {
        "__init__.py": "from holdfast._core.engine.state import State\n",
        "policies.py": "from holdfast.errors import ValidationError\n",
        "_core/engine/__init__.py": "from .state import State\n",
        "_core/engine/state.py": "from ..wire import jsonrpc\nfrom holdfast import policies\n",
        "errors.py": "",
        "_core/wire/jsonrpc.py": "import json\nfrom holdfast.errors import ProtocolError\n",
    }
    assert upward_imports(write_package(tmp_path, files)) == []


def test_a_new_module_is_asked_for_its_row(tmp_path: Path) -> None:
    (fault,) = upward_imports(write_package(tmp_path, {"gadgets.py": ""}))
    assert fault.startswith("gadgets has no row in ABOVE")
