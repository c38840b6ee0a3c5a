"""Edits of hosts' files: what is left alone, refused, added and removed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.config.files import UnreadableFileError, parse
from holdfast.config.hosts import HOSTS
from holdfast.hosts import document
from holdfast.hosts.document import HostDocument, HostFile
from holdfast.hosts.plan import THEIRS, UNTOLD, plan_install
from tests.hosts.rig import HEAD, head, installed, servers, uninstalled
from tests.rows import rows
from tests.thorough import THOROUGH

pytestmark = pytest.mark.req("Y6")


def cursor(entries: Any) -> bytes:
    return json.dumps({"mcpServers": entries}).encode()


@rows(
    ("entry", "reason"),
    [
        ({"url": "https://example.org"}, "is reached by a URL"),
        (
            {"command": "a", "url": "https://example.org"},
            "has a command and a URL; its host takes one of them: remove the other",
        ),
        ({"command": ""}, "has no command"),
        ({"command": 7}, "has no command"),
        ({"command": "a", "args": "b"}, "has args that are not a list"),
        ({"command": "a", "args": None}, "has args that are not a list"),
        ({"command": "a", "args": [["b"]]}, "has an argument that is not a string"),
        ({"command": "npx -y a"}, "has a space in its command; write its arguments in args"),
        (
            {"command": "npx -y a", "args": ["b"]},
            "has a space in its command; write its arguments in args",
        ),
        ({"command": "/o/holdfast", "args": ["serve", "--"]}, "has no command after --"),
        ("text", "is not an object"),
    ],
)
def test_what_is_no_command_is_left_with_a_reason(entry: Any, reason: str) -> None:
    data = cursor({"x": entry, "a": {"command": "a"}})
    plan = installed("cursor", "mcp.json", data)
    assert plan.skipped == {"x": reason}
    assert [change.name for change in plan.changes] == ["a"]


def test_a_url_beside_a_command_that_is_meant_does_no_harm() -> None:
    entries = {"a": {"type": "stdio", "command": "a", "args": [], "url": "https://example.org"}}
    plan = installed("cursor", "mcp.json", cursor(entries))
    assert plan.after is not None
    # Installed by an earlier version, which did not look for a URL.
    data = plan.after.replace(b'"type": "stdio", ', b"")
    assert uninstalled("cursor", "mcp.json", data).changes[0].after == ("a",)


@pytest.mark.parametrize("args", [{}, {"args": []}, {"args": ["b c"]}])
def test_a_path_may_have_spaces(args: dict[str, list[str]]) -> None:
    plan = installed("cursor", "mcp.json", cursor({"a": {"command": "/My Apps/run", **args}}))
    assert plan.changes[0].after == (*HEAD, "/My Apps/run", *args.get("args", []))


def test_one_that_cannot_be_edited_safely_costs_only_itself() -> None:
    """The place of a list behind an anchor is not known well enough."""
    text = "extensions:\n  x:\n    cmd: x\n    args: &list\n    - b\n  a:\n    cmd: a\n"
    plan = installed("goose", "config.yaml", text.encode())
    assert plan.skipped == {"x": "cannot be edited safely; edit it by hand"}
    assert [change.name for change in plan.changes] == ["a"]
    back = uninstalled("goose", "config.yaml", plan.after, backups=[text.encode()])
    assert back.after == text.encode()


def test_the_work_does_not_grow_with_the_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of megabytes is read as often for many servers as for two."""
    readings = 0

    def count(file: str, data: bytes) -> Any:
        nonlocal readings
        readings += 1
        return parse(file, data)

    monkeypatch.setattr(document, "parse", count)

    def readings_for(number: int) -> int:
        nonlocal readings
        readings = 0
        data = cursor({f"s{entry}": {"command": "a"} for entry in range(number)})
        after = installed("cursor", "mcp.json", data).after
        other = ("/new/holdfast", "serve", "--inherit-env", "--")
        file = HostFile(HOSTS["cursor"], "mcp.json", after)
        after = plan_install(file, (), lambda server: other).after
        assert uninstalled("cursor", "mcp.json", after, backups=[data]).after == data
        uninstalled("cursor", "mcp.json", after)
        return readings

    assert readings_for(40) == readings_for(2)


@rows(
    ("host", "file", "data", "more"),
    [
        ("cursor", "mcp.json", '{"mcpServers": {"a": {"command": "a"}}, "n": 1}', ("1}", "2}")),
        (
            "cursor",
            "mcp.json",
            '{"mcpServers":{"a":{\n"command":"a", // x\n"env":{}}}}',
            ("{}", "{ }"),
        ),
        ("codex", "config.toml", '[mcp_servers.a]\r\ncommand = "a" # x\r\n[b]\r\n', ("b", "c")),
        ("codex", "config.toml", 'mcp_servers.a.command = "a"\nn = 1', ("1", "2")),
        ("codex", "config.toml", 'mcp_servers = {a = {command = "a", x = 1}}\n', ("1", "2")),
        ("goose", "config.yaml", "n: 1\nextensions:\n  a: {type: stdio, cmd: a}\n", ("1", "2")),
    ],
)
def test_a_missing_list_is_missing_again_after_the_host_wrote(
    host: str, file: str, data: str, more: tuple[str, str]
) -> None:
    """The text does not tell whether there was one; a copy of before does."""
    after = installed(host, file, data.encode()).after
    assert after is not None
    written = after.decode().replace(*more).encode()
    back = uninstalled(host, file, written, backups=[after, b"no {", data.encode()])
    assert back.after == data.replace(*more).encode()


@rows(
    ("written", "back"),
    [
        # Its own order: the list comes first.
        ('{"args": [HEAD], "command": "h", "z": 1}', '{"command": "a", "z": 1}'),
        ('{"args": [HEAD],\n"command": "h"}', '{"command": "a"}'),
        # A comment between them is somebody's, and stays.
        ('{"command": "h", /* c */ "args": [HEAD]}', '{"command": "a", /* c */ "args": []}'),
    ],
)
def test_a_missing_list_of_a_host_with_its_own_layout(written: str, back: str) -> None:
    def whole(entry: str) -> bytes:
        words = ", ".join(map(json.dumps, [*HEAD[1:], "a"]))
        entry = entry.replace('"h"', json.dumps(HEAD[0])).replace("HEAD", words)
        return f'{{"mcpServers": {{"a": {entry}}}}}'.encode()

    before = cursor({"a": {"command": "a"}})
    assert uninstalled("cursor", "m.json", whole(written), backups=[before]).after == whole(back)


def test_numbers_in_arguments_stay_numbers() -> None:
    data = cursor({"a": {"command": "a", "args": ["--port", 8080, 1.50]}})
    plan = installed("cursor", "mcp.json", data)
    assert plan.after is not None
    assert json.loads(plan.after)["mcpServers"]["a"]["args"][-2:] == [8080, 1.5]
    assert uninstalled("cursor", "mcp.json", plan.after).after == data


def test_other_options_replace_those_of_before() -> None:
    data = cursor({"a": {"command": "a", "args": ["b"]}})
    first = installed("cursor", "mcp.json", data)
    file = HostFile(HOSTS["cursor"], "mcp.json", first.after)
    other = ("/new/holdfast", "serve", "--inherit-env", "--log", "/l", "--")
    plan = plan_install(file, (), lambda server: other)
    assert [change.action for change in plan.changes] == ["update"]
    assert plan.changes[0].after == (*other, "a", "b")
    back = uninstalled("cursor", "mcp.json", plan.after, backups=[first.after, data])
    assert back.after == data


@rows(
    "words",
    [
        ["holdfast", "serve", "--", "a"],
        ["/x/bin/holdfast", "serve", "--log", "f", "--", "a"],
        [r"C:\Tools\holdfast.exe", "serve", "--", "a"],
        ["/x/python", "-E", "-P", "-m", "holdfast", "serve", "--", "a"],
        ["/x/uvx", "holdfast==1.2", "serve", "--inherit-env", "--", "a"],
        ["uvx", "holdfast@1.2", "serve", "--", "a"],
    ],
)
def test_every_way_to_start_it_is_known(words: list[str]) -> None:
    data = cursor({"a": {"command": words[0], "args": words[1:]}})
    back = uninstalled("cursor", "mcp.json", data, "a")
    assert servers("cursor", "mcp.json", back.after)["a"].words == ("a",)


WRITTEN = {
    "relayed": {"command": "holdfast", "args": ["serve", "--timeout", "600", "--", "uvx", "x"]},
    "mine": {"command": "holdfast", "args": ["serve", "mine"]},
    "a": {"command": "a"},
}


def test_what_a_person_wrote_is_left_unless_it_is_named() -> None:
    data = cursor(WRITTEN)
    plan = installed("cursor", "mcp.json", data)
    assert [change.name for change in plan.changes] == ["a"]
    assert plan.skipped == {"relayed": THEIRS}
    back = uninstalled("cursor", "mcp.json", plan.after)
    assert [change.name for change in back.changes] == ["a"]
    assert back.skipped == dict.fromkeys(["relayed", "mine"], THEIRS)
    assert uninstalled("cursor", "mcp.json", plan.after, backups=[data]).after == data
    gone = uninstalled("cursor", "mcp.json", data, "mine", backups=[data])
    assert [(change.name, change.action) for change in gone.changes] == [("mine", "remove")]
    bare = uninstalled("cursor", "mcp.json", data, "relayed", backups=[data])
    assert servers("cursor", "mcp.json", bare.after)["relayed"].words == ("uvx", "x")


def test_what_a_person_wrote_comes_back_to_the_byte() -> None:
    data = cursor(WRITTEN)
    plan = installed("cursor", "mcp.json", data, "relayed")
    assert plan.changes[0].after == (*HEAD, "uvx", "x")
    assert uninstalled("cursor", "mcp.json", plan.after, backups=[data]).after == data


def test_without_a_copy_an_empty_list_is_said_to_stay() -> None:
    data = cursor({"a": {"command": "a"}})
    after = installed("cursor", "mcp.json", data).after
    assert uninstalled("cursor", "mcp.json", after).note == UNTOLD
    assert not uninstalled("cursor", "mcp.json", after, backups=[data]).note
    after = installed("cursor", "mcp.json", cursor({"a": {"command": "a", "args": ["b"]}})).after
    assert not uninstalled("cursor", "mcp.json", after).note


@pytest.mark.parametrize(
    "words",
    [
        ["npx", "x", "--", "holdfast", "serve", "--", "y"],
        ["docker", "run", "image", "holdfast", "serve", "--", "y"],
        ["ssh", "far", "holdfast", "serve", "--", "y"],
    ],
)
def test_a_holdfast_elsewhere_is_a_server_like_any(words: list[str]) -> None:
    """Behind the command of another program it is that program's business."""
    data = cursor({"a": {"command": words[0], "args": words[1:]}})
    plan = installed("cursor", "mcp.json", data)
    assert plan.changes[0].after == (*HEAD, *words)
    assert uninstalled("cursor", "mcp.json", plan.after).after == data


@rows(
    ("host", "file", "data", "fault"),
    [
        ("cursor", "mcp.json", b'{"mcpServers": {', "is not JSON"),
        ("cursor", "mcp.json", b"[]", "must hold an object"),
        ("cursor", "mcp.json", b'{"mcpServers": []}', "must hold an object under mcpServers"),
        ("cursor", "mcp.json", b'{"mcpServers": {"a": {}, "a": {}}}', "twice"),
        ("cursor", "mcp.json", b'{"mcpServers": {"a": {"command": "\xff"}}}', "UTF-8"),
        ("cursor", "mcp.json", "{}".encode("utf-16"), "UTF-8"),
        ("codex", "config.toml", b"[mcp_servers", "is not TOML"),
        ("goose", "config.yaml", b"a: [", "is not YAML"),
        ("goose", "config.yaml", b"a: &x {}\nextensions: *x\n", "alias"),
    ],
)
def test_a_broken_file_is_refused(host: str, file: str, data: bytes, fault: str) -> None:
    with pytest.raises(UnreadableFileError, match=fault):
        installed(host, file, data)


# Servers of Holdfast's own

ADDED = ("/o/holdfast", "serve", "mine")

EMPTY = [
    ("cursor", "mcp.json", None),
    ("cursor", "mcp.json", b""),
    ("cursor", "mcp.json", b"{}"),
    ("cursor", "mcp.json", b"null"),
    ("cursor", "mcp.json", b"// {\nnull\n"),
    ("cursor", "mcp.json", b'{"mcpServers": {}}'),
    ("cursor", "mcp.json", b'{"mcpServers": null}'),
    ("claude-code", ".claude.json", b'{\n  "mcpServers": null, // none\n  "n": 1\n}\n'),
    ("opencode", "opencode.json", b'{"mcp": null}'),
    ("cursor", "mcp.json", b'{\n\t"mcpServers": {\n\t\t"a": {"command": "a"}\n\t}\n}'),
    ("cursor", "mcp.json", b'{"mcpServers": {"a": {"url": "x"},}, "b": 1}'),
    ("claude-code", ".claude.json", b'{"numStartups": 1}\r\n'),
    ("vscode", "mcp.json", b"{\n  // none yet\n}\n"),
    ("codex", "config.toml", None),
    ("codex", "config.toml", b"model = 'x'"),
    ("codex", "config.toml", b"model = 'x'\r\n"),
    ("codex", "config.toml", b"[mcp_servers.a]\ncommand = 'a'\n\n# next\n[b]\nc = 1\n"),
    ("zed", "settings.json", b'{"a": 1}'),
    ("copilot", "mcp-config.json", None),
    ("opencode", "opencode.json", b'{"mcp": {"servers": {}}}'),
    ("opencode", "opencode.jsonc", b'{"x": 1,}'),
    ("goose", "config.yaml", None),
    ("goose", "config.yaml", b"a: 1"),
    ("goose", "config.yaml", b"extensions: {}\nb: 2\n"),
    ("goose", "config.yaml", b"extensions:\n    a:\n        type: builtin\nb: 2\n"),
    ("goose", "config.yaml", b"extensions:\r\n  a:\r\n    type: builtin"),
]


@rows(("host", "file", "data"), EMPTY)
def test_a_server_is_added_and_removed_to_the_byte(
    host: str, file: str, data: bytes | None
) -> None:
    source = HostFile(HOSTS[host], file, data)
    plan = plan_install(source, (), head, [("mine", ADDED)], only_new=True)
    assert plan.after is not None
    assert servers(host, file, plan.after)["mine"].words == ADDED
    leaves = _leaves(parse(file, plan.after))
    before = _leaves(parse(file, data or b""))
    assert all(leaves[path] == value for path, value in before.items() if value is not None)
    back = uninstalled(host, file, plan.after, backups=[data], added=[ADDED])
    assert back.after == data
    # Without a backup the rest is as it was, and the server is gone.
    plain = uninstalled(host, file, plan.after, added=[ADDED])
    assert "mine" not in servers(host, file, plain.after)
    assert plain.after is not None
    emptied = {"mcpServers", "servers", "mcp_servers", "context_servers", "mcp", "extensions"}
    rest = [
        {key: value for key, value in parse(file, text).items() if value or key not in emptied}
        for text in (data or b"", plain.after)
    ]
    assert rest[0] == rest[1]


def _leaves(content: Any) -> dict[tuple[str, ...], Any]:
    leaves: dict[tuple[str, ...], Any] = {}
    todo: list[tuple[tuple[str, ...], Any]] = [((), content)]
    while todo:
        path, value = todo.pop()
        if isinstance(value, dict):
            todo += [((*path, key), inner) for key, inner in value.items()]
        else:
            leaves[path] = value
    return leaves


@rows("table", [b"[1]", b'"x"', b"false", b"0"])
def test_a_server_is_not_added_to_what_is_no_table(table: bytes) -> None:
    file = HostFile(HOSTS["cursor"], "mcp.json", b'{"mcpServers": ' + table + b"}")
    with pytest.raises(UnreadableFileError, match="must hold an object under mcpServers"):
        plan_install(file, (), head, [("mine", ADDED)], only_new=True)


@rows("host", HOSTS)
def test_a_new_entry_has_the_form_of_its_host(host: str) -> None:
    file = {"codex": "config.toml", "goose": "config.yaml"}.get(host, "mcp.json")
    plan = plan_install(
        HostFile(HOSTS[host], file, None), (), head, [("m y", ADDED)], only_new=True
    )
    assert plan.after is not None
    content: Any = parse(file, plan.after)
    for key in HOSTS[host].tables[0]:
        content = content[key]
    entry = content["m y"]
    command = entry.pop("cmd", None) or entry.pop("command")
    args = entry.pop("args", [])
    assert ([*command] if isinstance(command, list) else [command, *args]) == list(ADDED)
    expected = {**HOSTS[host].template, **({"name": "m y"} if host == "goose" else {})}
    assert entry == expected


def test_what_cannot_be_edited_safely_is_refused() -> None:
    """An inline table takes no further table: the text would not be TOML any more."""
    data = b'mcp_servers = {a = {command = "a"}}\n'
    with pytest.raises(UnreadableFileError, match="cannot be edited safely"):
        plan_install(
            HostFile(HOSTS["codex"], "config.toml", data), (), head, [("b", ADDED)], only_new=True
        )


# Any file

WORDS = st.text(st.characters(min_codepoint=1, max_codepoint=0xD7FF), max_size=12)
NAMES = st.text("abcXYZ019_-é .\"'\\#", min_size=1, max_size=8)
GAPS = st.sampled_from(["", " ", "\n", "\t", "\r\n  ", " // c\n", "/* { */", "\n\n    "])


@st.composite
def json_files(draw: Any) -> str:
    """Servers in JSON with comments, any white space, and trailing commas."""

    def gap() -> str:
        return str(draw(GAPS))

    def strings(items: list[str]) -> str:
        inner = ",".join(f"{gap()}{_quoted(draw, item)}{gap()}" for item in items)
        return f"[{inner}{',' if items and draw(st.booleans()) else ''}{gap()}]"

    def entry() -> str:
        fields = [f'"command"{gap()}:{gap()}{_quoted(draw, draw(WORDS) + "x/")}']
        if draw(st.booleans()):
            fields.append(f'"args":{gap()}{strings(draw(st.lists(WORDS, max_size=3)))}')
        if draw(st.booleans()):
            fields.append('"env": {"K": "v"}')
        fields = draw(st.permutations(fields))
        return "{" + ",".join(gap() + field + gap() for field in fields) + "}"

    names = draw(st.lists(NAMES, unique=True, min_size=1, max_size=3))
    table = ",".join(f"{gap()}{json.dumps(name)}:{gap()}{entry()}{gap()}" for name in names)
    text = f'{gap()}{{{gap()}"mcpServers":{gap()}{{{table}}}{gap()},"z": [1]{gap()}}}{gap()}'
    return str(text)


def _quoted(draw: Any, text: str) -> str:
    return json.dumps(text, ensure_ascii=bool(draw(st.booleans())))


@st.composite
def toml_files(draw: Any) -> str:
    """Servers in TOML: tables, inline tables and dotted keys, with comments."""
    newline = draw(st.sampled_from(["\n", "\r\n"]))

    def string() -> str:
        text = draw(st.text('ab c#[]{}=,."é', max_size=8))
        if draw(st.booleans()) and "'" not in text:
            return f"'{text}'"
        return json.dumps(text, ensure_ascii=False)

    def array() -> str:
        between = draw(st.sampled_from([" ", newline, f" # c{newline}  "]))
        items = [string() for _ in range(draw(st.integers(0, 3)))]
        closing = "," if items and draw(st.booleans()) else ""
        return f"[{between}{f',{between}'.join(items)}{closing}{between}]"

    tables: list[str] = []
    top: list[str] = [f"model = {string()}"]
    for number in range(draw(st.integers(1, 3))):
        command, args = f"'c{number}'", array() if draw(st.booleans()) else None
        form = draw(st.sampled_from(["table", "inline", "dotted"]))
        if form == "inline" and (args is None or "\n" not in args):
            rest = "" if args is None else f", args = {args}"
            top.append(f"mcp_servers.i{number} = {{ command = {command}{rest} }}")
        elif form == "dotted":
            top.append(f"mcp_servers.d{number}.command = {command} # c")
            if args is not None:
                top.append(f"mcp_servers . d{number} . args = {args}")
        else:
            lines = [f"[mcp_servers_x.t{number}]", "command = 'decoy'"]
            lines += [f'["mcp_servers".t{number}] # t', f"  command={command}"]
            lines += [] if args is None else [f"  args={args}"]
            tables.append(newline.join(lines))
    if len(top) > 1:
        tables = []  # dotted keys define the table, and it cannot be opened again
    ending: str = draw(st.sampled_from(["", newline, newline * 3]))
    return str(newline.join([*top, *tables]) + ending)


@pytest.mark.thorough
@settings(max_examples=150 if THOROUGH else 100, deadline=None)
@given(json_files())
def test_any_json_comes_back(text: str) -> None:
    _check(HostFile(HOSTS["cursor"], "mcp.json", text.encode()))


@pytest.mark.thorough
@settings(max_examples=150 if THOROUGH else 100, deadline=None)
@given(toml_files())
def test_any_toml_comes_back(text: str) -> None:
    _check(HostFile(HOSTS["codex"], "config.toml", text.encode()))


def _check(file: HostFile) -> None:
    before = {server.path: server for server in HostDocument(file).servers()}
    plan = plan_install(file, (), head)
    changed = file._replace(data=plan.after)
    after = {server.path: server for server in HostDocument(changed).servers()}
    for path, server in before.items():
        words = () if server.fault else (*HEAD, *server.words)
        assert after[path].words == words
    back = uninstalled(file.host.name, file.path, plan.after, backups=[file.data])
    assert back.after == (file.data if plan.changes else plan.after)
    plain = file._replace(data=uninstalled(file.host.name, file.path, plan.after).after)
    assert {server.path: server for server in HostDocument(plain).servers()} == before
