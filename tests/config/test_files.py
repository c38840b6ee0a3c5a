"""Files that may be hostile, and JSON as people write it."""

from __future__ import annotations

import builtins
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.config.files import (
    PROJECT_BYTES,
    ReadBudget,
    UnreadableFileError,
    parse,
    parse_env,
    read,
    read_env,
)
from tests.rows import rows


def refusal(path: Path, **options: Any) -> str:
    with pytest.raises(UnreadableFileError) as caught:
        read(str(path), PROJECT_BYTES, **options)
    return str(caught.value)


def parsed(text: str | bytes, name: str = "mcp.json") -> Any:
    return parse(name, text.encode() if isinstance(text, str) else text, ReadBudget())


def fault(text: str | bytes, name: str = "mcp.json") -> str:
    with pytest.raises(UnreadableFileError) as caught:
        parsed(text, name)
    return str(caught.value)


# Files


def test_a_file_that_is_not_there_is_none(tmp_path: Path) -> None:
    assert read(str(tmp_path / "none"), PROJECT_BYTES) is None
    (tmp_path / "file").touch()
    assert read(str(tmp_path / "file" / "below"), PROJECT_BYTES) is None


def test_a_long_file_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "long"
    with path.open("wb") as file:
        file.truncate(PROJECT_BYTES + 1)
    assert refusal(path) == "is longer than 256 KiB"


def test_a_pipe_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert refusal(tmp_path / "pipe") == "is not a regular file"


def test_folders_and_devices_are_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path) == "is not a regular file"
    (tmp_path / "link").symlink_to("/dev/zero")
    assert refusal(tmp_path / "link") == "is not a regular file"


def test_a_link_out_of_the_project_is_not_followed(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (tmp_path / "secret").write_text("{}")
    (project / "inside").write_text("{}")
    (project / "out").symlink_to(tmp_path / "secret")
    (project / "in").symlink_to("inside")
    assert "leads out of the project" in refusal(project / "out", inside=str(project))
    assert read(str(project / "in"), PROJECT_BYTES, inside=str(project)) == b"{}"
    assert read(str(project / "out"), PROJECT_BYTES) == b"{}", "without a bound it is followed"


def test_links_that_lead_nowhere_or_round_are_told(tmp_path: Path) -> None:
    (tmp_path / "gone").symlink_to("nothing")
    (tmp_path / "round").symlink_to("round")
    assert refusal(tmp_path / "gone") == "is a link that leads nowhere"
    assert refusal(tmp_path / "round").startswith("cannot be read: ")


def test_a_file_that_may_not_be_read_is_told(tmp_path: Path) -> None:
    assert refusal(tmp_path / ("x" * 5000)) == "cannot be read: file name too long"
    for name in ("a\0b", "a\ud800b"):
        assert refusal(tmp_path / name) == "has a character in its name that no file can have"


# JSON


def test_comments_and_trailing_commas_are_accepted() -> None:
    text = """\ufeff{ // a comment, with a "quote
        "url": "https://x//y", /* another,
        ] */ "list": [1, 2, ], "odd": "// no \\" /* comment, ]",
    }"""
    assert parsed(text) == {
        "url": "https://x//y",
        "list": [1, 2],
        "odd": '// no " /* comment, ]',
    }


def test_a_fault_is_told_by_line_and_column() -> None:
    text = '{\n // one\n "a": 1,\n /* two\n */ "b" 2\n}'
    assert fault(text) == "is not JSON: expecting ':' delimiter (line 5, column 9)"


@rows(
    ("text", "message"),
    [
        (b"\xff\xfe\x00", "is not text in UTF-8"),
        (b'{"a": "\x00"}', "is not text: it has zero bytes in it"),
        ("[]", "must hold an object at its top"),
        ('{"a": NaN}', "is not JSON: NaN is no number of JSON"),
        ('{"a": {"b": 1, "b": 2}}', "has the key 'b' twice in one object (line 1)"),
        (
            '{"b": ["{\\"", {"a": "b"}, {}],\n/* "b": */ "c": {"b":\n[]},\n"\\u0062" : 2,}',
            "has the key 'b' twice in one object (line 4)",
        ),
        ("[" * 200_000, "is nested too deeply"),
        ('{"a":' * 40_000 + "1" + "}" * 40_000, "is nested too deeply"),
    ],
    ids=["binary", "zero", "list", "nan", "twice", "twice in another line", "deep", "deep objects"],
)
def test_what_cannot_be_used_is_told_in_a_sentence(text: str | bytes, message: str) -> None:
    assert fault(text) == message


def test_numbers_of_absurd_length_are_told() -> None:
    assert fault('{"a": ' + "1" * 10_000 + "}").startswith("is not JSON: ")


def test_an_empty_file_says_nothing() -> None:
    for name in ("a.json", "a.toml", "a.yaml"):
        assert parsed(" \n", name) == {}


@pytest.mark.parametrize(
    "unit", ['"\\"', "/*", "/*/", "//", '"', ",", "[,", '"\\', "*", ", \n", '{"'],
)  # fmt: skip
@pytest.mark.hang(120)
def test_a_hostile_megabyte_is_refused_quickly(unit: str) -> None:
    assert fault("{" + unit * (PROJECT_BYTES // len(unit)))


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@settings(max_examples=60)
@given(st.dictionaries(st.text(), _JSON), st.sampled_from(["// c\n", "/* , } */", "\n", " "]))
def test_comments_change_nothing(value: dict[str, Any], space: str) -> None:
    plain = json.dumps(value)
    if "\\u0000" in plain:
        return
    pretty = json.dumps(value, indent=0).replace("\n", f"{space}\n")
    assert parsed(f"{space}{pretty}{space}") == value
    assert parsed(plain) == value


# The others


def test_toml_is_told_apart_by_its_ending() -> None:
    assert parsed("[a]\nb = 1", "x.toml") == {"a": {"b": 1}}
    assert fault("[a\n", "x.toml").startswith("is not TOML: ")
    assert fault("[a]\n[a]", "x.toml").startswith("is not TOML: ")
    assert fault("a = " + "[" * 5000, "x.toml") == "is nested too deeply"


def test_yaml_runs_no_code() -> None:
    assert parsed("a: [1, x]", "x.yml") == {"a": [1, "x"]}
    assert fault("a: !!python/object/apply:os.system [ls]", "x.yaml").startswith("is not YAML")
    assert fault("a: [", "x.yaml").startswith("is not YAML (line 2")


@rows(
    ("text", "message"),
    [
        ("a: 1\na: 2", "has the key 'a' twice in one object (line 2)"),
        ("? [a]\n: 1", "has a key in it that is not a string (line 1)"),
        ("a: &x [1]\nb: *x", "has an alias (*x) in it, which is not read (line 2)"),
        ("a: &x {b: 1}\nc:\n  <<: *x", "has an alias (*x) in it, which is not read (line 3)"),
        ("a: " + "[" * 200, "is nested too deeply"),
        ("a: [" + "1," * 30_000 + "1]", "has more than 20,000 values in it"),
        ("a: 1e999", "has a number in it that is too large"),
    ],
    ids=["twice", "list as key", "alias", "merge", "deep", "long", "infinite"],
)
def test_yaml_that_would_multiply_or_mislead_is_refused(text: str, message: str) -> None:
    assert fault(text, "x.yaml") == message


@pytest.mark.req("E2")
def test_without_pyyaml_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name == "yaml":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.delitem(sys.modules, "yaml", raising=False)
    monkeypatch.setattr(builtins, "__import__", without)
    assert fault("a: 1", "x.yaml") == "is YAML, which needs PyYAML: install holdfast[yaml]"


# Files of variables


def test_lines_of_names_and_values() -> None:
    text = """
# comment
A=1
export B = two words  # comment
C='single # $A'
D="double\\n\\"x\\" \\q"
E=
F=a=b#c
"""
    assert parse_env(text) == {
        "A": "1",
        "B": "two words",
        "C": "single # $A",
        "D": 'double\n"x" \\q',
        "E": "",
        "F": "a=b#c",
    }


def test_a_line_that_is_none_is_told_by_number() -> None:
    with pytest.raises(UnreadableFileError, match="line 2 is not NAME=value"):
        parse_env("A=1\nrm -rf /")


def test_a_file_that_is_not_there_or_no_text(tmp_path: Path) -> None:
    path = tmp_path / "env"
    assert read_env(str(path), None).fault == "does not exist"
    for data, why in {b"\xff\xfe": "is not text in UTF-8", b"A=\0": "zero bytes"}.items():
        path.write_bytes(data)
        found = read_env(str(path), None)
        assert why in (found.fault or "")
        assert (found.data, found.variables) == (data, {})
