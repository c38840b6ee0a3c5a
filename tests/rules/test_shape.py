"""Modules stay small, and the tests of a module are where one would look for them."""

from __future__ import annotations

from pathlib import Path

from tests.rules.source import PROJECT, SRC, TESTS, Module, modules, write_package

MOST_LINES = 420

PROVEN_ELSEWHERE: dict[str, str] = {
    "__init__": "tests/rules/test_exports.py",
    "__main__": "tests/cli/test_main.py",
    "boundary": "tests/engine/test_connection.py",
    "calls": "tests/test_client.py",
    "demo_server": "tests/demo_server/test_demo_server.py",
    "connecting": "tests/test_targets.py",
    "lazy": "tests/rules/test_exports.py",
    "sync": "tests/sync/test_client.py",
    "transports.refusal": "tests/transports/test_web.py",
    "testing.contract": "tests/transports/test_contract.py",
    "testing.obedient": "tests/transports/test_contract.py",
    "types": "tests/types/test_schema.py",
}
"""A module, or a whole package, whose proof has another home: where it is."""


def too_long(src: Path, limit: int = MOST_LINES) -> list[str]:
    sizes = {m.name: len(m.path.read_bytes().splitlines()) for m in modules(src)}
    return [
        f"{name}: {lines} lines, {limit} at most; would two nouns be clearer?"
        for name, lines in sizes.items()
        if lines > limit
    ]


def unproven(src: Path, tests: Path, elsewhere: dict[str, str]) -> list[str]:
    return [
        f"{module.name}: no {_home(module)}; write it, or name its proof in PROVEN_ELSEWHERE"
        for module in modules(src)
        if not (module.is_package and module.name != "__init__")
        and not ({module.name, module.unit} & elsewhere.keys())
        and not _has_home(module, tests)
    ]


def _path(module: Module) -> list[str]:
    """``demo.__main__`` is looked for as ``demo/main``."""
    return [part.strip("_") for part in module.name.split(".")]


def _home(module: Module) -> str:
    *folders, name = _path(module)
    return "/".join(["tests", *folders, f"test_{name}.py"])


def _has_home(module: Module, tests: Path) -> bool:
    """``wire/framing.py``: tests/wire/test_framing.py, test_framing_*.py beside it, or framing/."""
    *folders, name = _path(module)
    folder = tests.joinpath(*folders)
    patterns = (f"test_{name}.py", f"test_{name}_*.py", f"{name}/test_*.py")
    return any(next(folder.glob(pattern), None) for pattern in patterns)


def test_no_module_is_too_long() -> None:
    assert not (faults := too_long(SRC)), "\n".join(faults)


def test_every_module_has_its_tests() -> None:
    assert not (faults := unproven(SRC, TESTS, PROVEN_ELSEWHERE)), "\n".join(faults)


def test_every_other_home_exists() -> None:
    missing = [path for path in PROVEN_ELSEWHERE.values() if not (PROJECT / path).exists()]
    assert not missing


def test_a_long_module_is_found(tmp_path: Path) -> None:
    src = write_package(tmp_path, {"long.py": "x = 1\n" * 421, "short.py": "x = 1\n" * 420})
    (fault,) = too_long(src)
    assert fault.startswith("long: 421 lines")


def test_a_module_without_tests_is_found(tmp_path: Path) -> None:
    files = {"wire/__init__.py": "", "wire/framing.py": "", "wire/jsonrpc.py": "", "client.py": ""}
    src = write_package(tmp_path, files)
    tests = tmp_path / "tests"
    (tests / "wire").mkdir(parents=True)
    (tests / "wire" / "test_jsonrpc_limits.py").touch()
    (fault,) = unproven(src, tests, {"client": "tests/elsewhere.py"})
    assert fault.startswith("wire.framing: no tests/wire/test_framing.py")
    (tests / "wire" / "framing").mkdir()
    (tests / "wire" / "framing" / "test_sse.py").touch()
    assert unproven(src, tests, {"client": "tests/elsewhere.py"}) == []


def test_one_entry_can_stand_for_a_package(tmp_path: Path) -> None:
    src = write_package(tmp_path, {"types/tools.py": "", "types/prompts.py": ""})
    assert unproven(src, tmp_path / "tests", {"types": "tests/test_types.py"}) == []
