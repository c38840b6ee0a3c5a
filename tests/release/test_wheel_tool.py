"""tools/wheel.py on small wheels: each fault is found, and told by name."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.rows import rows
from tools import wheel as judge
from tools.wheel import Wheel, sdist_faults, wheel_faults

PROJECT: dict[str, Any] = {
    "name": "holdfast",
    "requires-python": ">=3.11",
    "license": "Apache-2.0",
    "dependencies": ["jsonschema-rs>=0.60", "msgspec>=0.19"],
    "scripts": {"holdfast": "holdfast.cli.main:main"},
}
SOURCES = {"holdfast/__init__.py": b"x = 1\n", "holdfast/py.typed": b""}
INFO = "holdfast-1.0.dist-info"
METADATA = """\
Metadata-Version: 2.4
Name: holdfast
Version: 1.0
License-Expression: Apache-2.0
Requires-Python: >=3.11
Requires-Dist: jsonschema_rs>=0.60
Requires-Dist: msgspec>=0.19
Requires-Dist: pyyaml>=6; extra == 'yaml'
Provides-Extra: auth
Provides-Extra: load
Provides-Extra: otel
Provides-Extra: redis
Provides-Extra: shell
Provides-Extra: uvloop
Provides-Extra: yaml
Description-Content-Type: text/markdown

# Holdfast
"""
ENTRY_POINTS = "[console_scripts]\nholdfast = holdfast.cli.main:main\n\n[other]\na = b\n"


def good() -> dict[str, bytes]:
    return {
        **SOURCES,
        f"{INFO}/METADATA": METADATA.encode(),
        f"{INFO}/RECORD": b"",
        f"{INFO}/entry_points.txt": ENTRY_POINTS.encode(),
        f"{INFO}/licenses/LICENSE": b"",
    }


def faults(files: dict[str, bytes]) -> list[str]:
    return wheel_faults(Wheel(files), PROJECT, SOURCES)


def test_a_good_wheel_has_no_faults() -> None:
    assert faults(good()) == []


@pytest.mark.parametrize(
    "name", ["tests/test_a.py", "setup.py", "holdfast/__pycache__/a.pyc", "holdfast/a.so"]
)
def test_what_does_not_belong_is_named(name: str) -> None:
    assert faults({**good(), name: b""}) == [f"{name}: does not belong in a wheel"]


def test_a_missing_module_is_named() -> None:
    files = good()
    del files["holdfast/__init__.py"]
    assert faults(files) == ["holdfast/__init__.py: missing from the wheel"]


def test_an_old_copy_of_a_module_is_named() -> None:
    found = faults({**good(), "holdfast/__init__.py": b"x = 2\n"})
    assert found == ["holdfast/__init__.py: not what is in the source tree"]


def test_a_wheel_without_types_or_licence_is_refused() -> None:
    files = good()
    del files["holdfast/py.typed"], files[f"{INFO}/licenses/LICENSE"]
    assert [fault.partition(":")[0] for fault in faults(files)] == [
        "holdfast/py.typed",
        "py.typed",
        "LICENSE",
    ]


@rows(
    ("old", "new", "fault"),
    [
        ("Name: holdfast", "Name: holdslow", "Name: 'holdslow', not 'holdfast'"),
        (">=3.11\n", ">=3.8\n", "Requires-Python: '>=3.8', not '>=3.11'"),
        ("Provides-Extra: otel\n", "", "extra 'otel': not in the metadata"),
        ("Requires-Dist: msgspec>=0.19\n", "", "Requires-Dist: ['jsonschema-rs>=0.60'], not"),
        ("text/markdown", "text/plain", "Description-Content-Type: 'text/plain'"),
    ],
)
def test_metadata_that_is_not_the_projects_is_told(old: str, new: str, fault: str) -> None:
    files = {**good(), f"{INFO}/METADATA": METADATA.replace(old, new).encode()}
    (found,) = faults(files)
    assert found.startswith(fault)


def test_a_missing_console_script_is_told() -> None:
    (found,) = faults({**good(), f"{INFO}/entry_points.txt": b""})
    assert found == "console scripts: {}, not {'holdfast': 'holdfast.cli.main:main'}"


def test_an_sdist_needs_all_that_a_build_needs_and_no_litter() -> None:
    names = [*judge.SDIST_NEEDS, "src/holdfast/__init__.py", "tests/test_a.py"]
    assert sdist_faults(names, SOURCES) == []
    assert sdist_faults([*names, ".venv/bin/python"], SOURCES) == [
        ".venv/bin/python: does not belong in an sdist"
    ]
    assert sdist_faults(names[1:], SOURCES) == ["pyproject.toml: missing from the sdist"]


def test_archives_are_read_by_name(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as archive:
        archive.writestr("holdfast/a.py", "x")
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as sdist:
        member = tarfile.TarInfo("holdfast-1.0/src/a.py")
        member.size = 1
        sdist.addfile(member, io.BytesIO(b"x"))
    assert Wheel.read(tmp_path / "a.whl").files == {"holdfast/a.py": b"x"}
    assert judge.sdist_names(tmp_path / "a.tar.gz") == ["src/a.py"]


def test_sources_are_the_files_that_a_wheel_should_have(tmp_path: Path) -> None:
    package = tmp_path / "holdfast"
    (package / "__pycache__").mkdir(parents=True)
    (package / "__pycache__" / "a.pyc").touch()
    (package / "a.py").write_text("x = 1\n")
    (package / "py.typed").touch()
    assert judge.read_sources(tmp_path) == {"holdfast/a.py": b"x = 1\n", "holdfast/py.typed": b""}
