"""How each format writes what `HostDocument` adds: a word, a list of words, a server.

Everything returns text or an offset with text; nothing is checked here, because the whole document
is read again after each edit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from holdfast.config.files import drop_member, set_member
from holdfast.hosts.nodes import DocumentMember, DocumentNode, Tree

_PLAIN: Final = re.compile(r"[A-Za-z/][\w./+@=-]*")
"""Words that YAML need not quote, in any place."""
_YAML_WORDS: Final = re.compile(r"(?i)true|false|null|yes|no|on|off|y|n")
_TOML_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")


class Insertion(NamedTuple):
    """A text to put in at an offset."""

    at: int
    text: str


class Syntax(Protocol):
    """One format."""

    def tree(self, text: str) -> Tree:
        """Return where the values of a text stand."""

    def token(self, word: str) -> str:
        """Return a string as the format writes it."""

    def can_move(self, raw: str) -> bool:
        """Return whether a value may stand in a list as it is written elsewhere."""

    def list_after(
        self, text: str, member: DocumentMember, is_flow: bool, tokens: Sequence[str]
    ) -> Insertion:
        """Return a new member ``args`` behind another one."""

    def add_server(self, text: str, path: tuple[str, ...], fields: Mapping[str, Any]) -> str:
        """Return the text with one more server; ``path`` ends with its name."""

    def drop_server(self, text: str, path: tuple[str, ...]) -> str:
        """Return the text without a server."""


def newline_of(text: str) -> str:
    """Return the line break that a text uses."""
    return "\r\n" if "\r\n" in text else "\n"


def line_end(text: str, at: int) -> int:
    """Return where the line of an offset ends, before its break."""
    end = text.find("\n", at)
    if end < 0:
        return len(text)
    return end - 1 if text[at:end].endswith("\r") else end


def line_start(text: str, at: int) -> int:
    """Return where the line of an offset begins."""
    return text.rfind("\n", 0, at) + 1


def indent_of(text: str, at: int) -> str:
    """Return the white space before an offset, if there is nothing else in its line."""
    before = text[line_start(text, at) : at]
    return before if not before.strip() else ""


class JsonSyntax:
    """JSON with comments."""

    def tree(self, text: str) -> Tree:
        """Return where the values of a text stand."""
        from holdfast.hosts.json_nodes import JsonTree

        return JsonTree(text)

    def token(self, word: str) -> str:
        """Return a string of JSON."""
        return json.dumps(word, ensure_ascii=False)

    def can_move(self, raw: str) -> bool:
        """Return True: a string is the same everywhere."""
        return True

    def list_after(
        self, text: str, member: DocumentMember, is_flow: bool, tokens: Sequence[str]
    ) -> Insertion:
        """Return ``, "args": […]``, in a line of its own if the one before it has one."""
        gap = re.search(r"\s*\Z", text[: member.start])
        assert gap is not None
        return Insertion(member.node.end, f',{gap[0]}"args": [{", ".join(tokens)}]')

    def add_server(self, text: str, path: tuple[str, ...], fields: Mapping[str, Any]) -> str:
        """Return the text with one more member, and the objects above it where they are missing."""
        tree = self.tree(text)
        value: Any = dict(fields)
        at = len(path) - 1
        while at and ((table := tree.find(path[:at])) is None or table.members is None):
            value = {path[at]: value}
            at -= 1
        parent = tree.find(path[:at])
        assert parent is not None
        return set_member(text, parent.start, path[at], value, at + 1)

    def drop_server(self, text: str, path: tuple[str, ...]) -> str:
        """Return the text without a member."""
        parent = self.tree(text).find(path[:-1])
        assert parent is not None
        return drop_member(text, parent.start, path[-1])


class TomlSyntax:
    """TOML."""

    def tree(self, text: str) -> Tree:
        """Return where the values of a text stand."""
        from holdfast.hosts.toml_nodes import toml_tree

        return toml_tree(text)

    def token(self, word: str) -> str:
        """Return a basic string. It is one of JSON, but DEL has to be escaped (TOML 1.0)."""
        return json.dumps(word, ensure_ascii=False).replace("\x7f", "\\u007f")

    def can_move(self, raw: str) -> bool:
        """Return True: strings of all four kinds may stand in a list."""
        return True

    def list_after(
        self, text: str, member: DocumentMember, is_flow: bool, tokens: Sequence[str]
    ) -> Insertion:
        """Return ``args = […]``: in a line of its own, or in the same inline table."""
        value = f"args = [{', '.join(tokens)}]"
        prefix = text[member.start : member.name]  # the tables of a dotted key
        if is_flow:
            return Insertion(member.node.end, f", {prefix}{value}")
        indent = indent_of(text, member.start)
        return Insertion(
            line_end(text, member.node.end), f"{newline_of(text)}{indent}{prefix}{value}"
        )

    def add_server(self, text: str, path: tuple[str, ...], fields: Mapping[str, Any]) -> str:
        """Return the text with one more table at its end."""
        newline = newline_of(text)
        keys = [key if _TOML_KEY.fullmatch(key) else self.token(key) for key in path]
        lines = [f"[{'.'.join(keys)}]"]
        lines += [f"{name} = {self._value(value)}" for name, value in fields.items()]
        gap = "" if not text.strip() else newline if text.endswith("\n") else newline * 2
        return text + gap + newline.join(lines) + newline

    def _value(self, value: Any) -> str:
        if isinstance(value, list):
            return f"[{', '.join(map(self.token, value))}]"
        return self.token(value) if isinstance(value, str) else json.dumps(value)

    def drop_server(self, text: str, path: tuple[str, ...]) -> str:
        """Return the text without a table and those below it."""
        header = re.compile(r"(?m)^[ \t]*\[")
        while (node := self.tree(text).find(path)) is not None:
            start = line_start(text, node.start)
            if header.match(text, start) is None:
                break  # it is in an inline table, or of dotted keys: refused by the check
            following = header.search(text, line_end(text, start))
            end = len(text) if following is None else following.start()
            # Comments and blank lines before the next table are that table's.
            block = text[start:end]
            if following is not None:
                lines = block.splitlines(keepends=True)
                while len(lines) > 1 and (not lines[-1].strip() or lines[-1].lstrip()[:1] == "#"):
                    end -= len(lines.pop())
            before = re.sub(r"\r?\n[ \t]*\r?\n\Z", newline_of(text), text[:start])
            text = before + text[end:]
        return text


class YamlSyntax:
    """YAML."""

    def tree(self, text: str) -> Tree:
        """Return where the values of a text stand."""
        from holdfast.hosts.yaml_nodes import yaml_tree

        return yaml_tree(text)

    def token(self, word: str) -> str:
        """Return a plain word, or one in double quotes, which are those of JSON."""
        if _PLAIN.fullmatch(word) and not _YAML_WORDS.fullmatch(word):
            return word
        return json.dumps(word, ensure_ascii=False)

    def can_move(self, raw: str) -> bool:
        """Return whether a value is quoted, or a word that means the same everywhere."""
        is_quoted = raw[:1] in ("'", '"') and "\n" not in raw
        return is_quoted or _PLAIN.fullmatch(raw) is not None

    def list_after(
        self, text: str, member: DocumentMember, is_flow: bool, tokens: Sequence[str]
    ) -> Insertion:
        """Return ``args:`` with its items, in lines or in the same braces."""
        if is_flow:
            return Insertion(member.node.end, f", args: [{', '.join(tokens)}]")
        indent = newline_of(text) + " " * (member.start - line_start(text, member.start))
        items = "".join(f"{indent}- {token}" for token in tokens)
        return Insertion(line_end(text, member.node.end), f"{indent}args:{items}")

    def add_server(self, text: str, path: tuple[str, ...], fields: Mapping[str, Any]) -> str:
        """Return the text with one more extension, and their table where it is missing."""
        newline = newline_of(text)
        table = self.tree(text).find(path[:-1])
        if table is None or not table.members:
            unit, lead, at = "  ", f"{path[0]}:{newline}", len(text)
            if table is not None:  # an empty one, ``{}``
                return self._replaced(text, table, path, fields)
        else:
            first = min(member.start for member in table.members.values())
            unit, lead, at = indent_of(text, first), "", line_end(text, table.end)
        block = self._block(path[-1], fields, unit, newline)
        gap = "" if not text[:at].strip() or text[:at].endswith("\n") else newline
        rest = text[at:]
        return text[:at] + gap + lead + block.removesuffix(newline if rest else "") + rest

    def _replaced(
        self, text: str, table: DocumentNode, path: tuple[str, ...], fields: Mapping[str, Any]
    ) -> str:
        newline = newline_of(text)
        block = self._block(path[-1], fields, "  ", newline).removesuffix(newline)
        before = text[: table.start].rstrip(" ")
        return before + newline + block + text[table.end :]

    def _block(self, name: str, fields: Mapping[str, Any], unit: str, newline: str) -> str:
        lines = [f"{unit}{self.token(name)}:"]
        for key, value in {**fields, "name": name}.items():
            if isinstance(value, list) and value:
                lines += [f"{unit}  {key}:", *(f"{unit}  - {self.token(item)}" for item in value)]
            else:
                text = self.token(value) if isinstance(value, str) else json.dumps(value)
                lines.append(f"{unit}  {key}: {text}")
        return newline.join(lines) + newline

    def drop_server(self, text: str, path: tuple[str, ...]) -> str:
        """Return the text without the lines of an extension."""
        tree = self.tree(text)
        table = tree.find(path[:-1])
        assert table is not None
        assert table.members is not None
        member = table.members[path[-1]]
        start, end = line_start(text, member.start), line_end(text, member.node.end)
        end += len(newline_of(text)) if end < len(text) else 0
        if len(table.members) > 1:
            return text[:start] + text[end:]
        parent = tree.find(path[:-2])
        assert parent is not None
        assert parent.members is not None
        key = line_end(text, parent.members[path[-2]].start)
        return f"{text[:key]} {{}}{newline_of(text)}{text[end:]}"


def syntax_of(path: str) -> Syntax:
    """Return the format of a file, by the ending of its name."""
    ending = path.lower().rpartition(".")[2]
    if ending == "toml":
        return TomlSyntax()
    return YamlSyntax() if ending in ("yaml", "yml") else JsonSyntax()
