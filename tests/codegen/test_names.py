"""Names: readable, unique, and the same whatever the order."""

from __future__ import annotations

import keyword
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast._core.text import has_unseen
from holdfast.codegen import names
from holdfast.codegen.names import (
    ATTRIBUTE_RESERVED,
    HANDLE_MEMBERS,
    LONGEST,
    ClassNames,
    method_names,
    namespace_names,
    parameter_names,
    pascal,
    spare,
    split,
)
from holdfast.handles import Handle, Namespace, SyncHandle, SyncNamespace
from tests.codegen.material import names as wire_names
from tests.rows import rows


@pytest.mark.req("H2")
@rows(
    ("tool", "parts"),
    [
        ("nav.goto", ("nav", "goto")),
        ("browser.run_test", ("browser", "run_test")),
        ("browser.run.file", ("browser", "run.file")),
        ("health", (None, "health")),
        ("", (None, "")),
        (".a", ("", "a")),
        ("a.", ("a", "")),
        ("a..b", ("a", ".b")),
    ],
)
def test_names_split_at_the_first_dot(tool: str, parts: tuple[str | None, str]) -> None:
    assert split(tool) == parts


@pytest.mark.req("H2")
@rows(
    ("key", "name"),
    [
        ("goto", "goto"),
        ("run.file", "run_file"),
        ("get-sum", "get_sum"),
        ("a // b", "a_b"),
        ("waitUntil", "waitUntil"),
        ("class", "class_"),
        ("None", "None_"),
        ("match", "match"),
        ("list", "list"),
        ("2fa", "tool_2fa"),
        ("", "tool"),
        ("...", "tool"),
        ("_private", "private"),
        ("__init__", "init__"),
        ("_call", "call"),
        ("Any", "Any_"),
        ("UNSET", "UNSET_"),
        ("builtins", "builtins_"),
        ("größe", "größe"),
        ("名前", "名前"),
        ("ﬁle", "file"),
        ("x\u202ey", "x_y"),
        ("a" * 70, "a" * 57 + "_6bd5e5"),
    ],
)
def test_a_method_is_called_nearly_as_the_tool_is(key: str, name: str) -> None:
    assert method_names([key]) == {key: name}


@pytest.mark.req("H2")
@rows(
    ("wire", "name"),
    [
        ("nav", "nav"),
        ("my-ns", "my_ns"),
        ("client", "client_"),
        ("close", "close_"),
        ("_root", "root"),
        ("", "ns"),
        ("3d", "ns_3d"),
        ("Tools", "Tools_"),
    ],
)
def test_a_namespace_leaves_the_handle_its_own_members(wire: str, name: str) -> None:
    assert namespace_names([wire]) == {wire: name}


@pytest.mark.req("H2")
@rows(
    ("wire", "name"),
    [
        ("url", "url"),
        ("from", "from_"),
        ("self", "self_"),
        ("x-y", "x_y"),
        ("_meta", "_meta"),
        ("__x", "_x"),
        ("$filter", "filter"),
        ("_", "_"),
        ("", "arg"),
        ("1", "arg_1"),
    ],
)
def test_a_parameter_may_begin_with_one_underscore(wire: str, name: str) -> None:
    assert parameter_names([wire]) == {wire: name}


@pytest.mark.req("H2")
def test_the_tool_that_is_spelt_so_keeps_the_name() -> None:
    found = method_names(["run.file", "run_file", "run-file"])
    assert found["run_file"] == "run_file"
    assert found["run.file"].startswith("run_file_")
    assert found["run-file"].startswith("run_file_")
    assert len(set(found.values())) == 3


@pytest.mark.req("H2")
def test_a_new_tool_never_takes_over_the_name_of_another() -> None:
    """Of two that are alike neither keeps the plain name: a caller of it finds out."""
    before, after = method_names(["a-b"]), method_names(["a-b", "a+b"])
    assert before["a-b"] == "a_b"
    assert "a_b" not in after.values()


def test_names_that_differ_in_case_are_two() -> None:
    assert method_names(["Go", "go"]) == {"Go": "Go", "go": "go"}
    classes = ClassNames()
    assert [classes.take("go"), classes.take("Go")] == ["Go", "Go2"]


@pytest.mark.req("H2")
@given(st.lists(wire_names(), max_size=12), st.randoms(use_true_random=False))
def test_names_are_unique_lawful_and_independent_of_order(
    wires: list[str], chance: random.Random
) -> None:
    shuffled = list(wires)
    chance.shuffle(shuffled)
    for allot in (method_names, namespace_names, parameter_names):
        found = allot(wires)
        assert found == allot(shuffled)
        assert found.keys() == set(wires)
        assert len(set(found.values())) == len(found)
        assert all(name.isidentifier() and not keyword.iskeyword(name) for name in found.values())
        assert not any(name.startswith("__") for name in found.values())
    for name in (*method_names(wires).values(), *namespace_names(wires).values()):
        assert not name.startswith("_")
        assert name not in ATTRIBUTE_RESERVED
    assert not HANDLE_MEMBERS & set(namespace_names(wires).values())
    assert "self" not in parameter_names(wires).values()


@pytest.mark.req("H2")
@pytest.mark.parametrize("kind", [Handle, SyncHandle])
def test_no_namespace_hides_a_member_of_the_handle(kind: type) -> None:
    public = {name for name in dir(kind) if not name.startswith("_")}
    assert not public - HANDLE_MEMBERS


@pytest.mark.parametrize("kind", [Namespace, SyncNamespace])
def test_no_tool_hides_a_member_of_its_namespace(kind: type) -> None:
    assert all(name.startswith("_") for name in dir(kind))


@rows(
    ("parts", "name"),
    [
        (("nav", "wait_until"), "NavWaitUntil"),
        (("nav", "waitUntil"), "NavWaitUntil"),
        (("3d",), "T3d"),
        (("名",), "Unnamed"),
        ((), "Unnamed"),
    ],
)
def test_classes_are_written_in_capitals(parts: tuple[str, ...], name: str) -> None:
    assert pascal(*parts) == name


@given(st.lists(st.lists(wire_names(), max_size=4), max_size=8))
def test_class_names_are_unique_short_and_free(paths: list[list[str]]) -> None:
    classes = ClassNames(["Nav"])
    found = [classes.take(*path) for path in paths] + [
        classes.take(*path, pair=True) for path in paths
    ]
    assert len(set(found)) == len(found)
    assert not set(found) & {"Nav", *names.MODULE_NAMES, *keyword.kwlist}
    assert all(name.isidentifier() and name.isascii() for name in found)
    assert all(len(name) <= LONGEST + 4 for name in found)


def test_a_name_that_is_taken_grows() -> None:
    assert spare("timeout", {"timeout", "timeout_"}) == "timeout__"


@rows("unseen", ["\u115f", "\u3164", "\ufe0f", "\u034f", "\U000e0101"])
def test_a_name_has_no_characters_that_cannot_be_seen(unseen: str) -> None:
    for wire in (f"a{unseen}b", f"{unseen}a", f"a{unseen}", unseen):
        found = names.identifier(wire, "tool")
        assert found.isidentifier()
        assert not has_unseen(found)
