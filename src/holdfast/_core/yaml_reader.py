"""YAML as plain values, within bounds: no aliases, no key twice, no tag that runs code.

PyYAML is an optional dependency and reads YAML 1.1, in which ``no`` is False and a date is an
object. Here it reads the core schema of YAML 1.2 (10.3.2), in which both are text.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, Final

from holdfast._core.text import visible

DEEPEST: Final = 100
"""Levels of nesting."""
EVENTS: Final = 20_000


class YamlFault(ValueError):  # noqa: N818
    """A text that is not YAML, or not read; the message continues "the text …"."""


def read_yaml(text: str, most: int = EVENTS) -> Any:
    """Return the value of a YAML text with at most ``most`` parsing events."""
    try:
        import yaml
    except ImportError:
        raise YamlFault("is YAML, which needs PyYAML: install holdfast[yaml]") from None
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _check_events(yaml, text, loader, min(most, EVENTS))
        return yaml.load(text, Loader=_loader(yaml, loader))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f" (line {mark.line + 1}, column {mark.column + 1})"
        raise YamlFault(f"is not YAML{where}") from None
    except YamlFault:
        raise
    except ValueError as error:
        raise YamlFault(f"is not YAML: {visible(str(error), 200)}") from None


def _check_events(yaml: Any, text: str, loader: Any, most: int) -> None:
    """Bound what is built: aliases of aliases multiply (the "billion laughs" attack)."""
    depth = 0
    for number, event in enumerate(yaml.parse(text, Loader=loader)):
        if isinstance(event, yaml.AliasEvent):
            where = _line(event.start_mark)
            raise YamlFault(
                f"has an alias (*{visible(event.anchor, 80)}) in it, which is not read{where}"
            )
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise YamlFault("is nested too deeply")
        if number > most:
            raise YamlFault(f"has more than {most:,} values in it")


def _line(mark: Any) -> str:
    return f" (line {mark.line + 1})"


def _loader(yaml: Any, base: Any) -> Any:
    class Loader(base):  # type: ignore[misc]
        yaml_implicit_resolvers: ClassVar[Any] = {}

    def mapping(self: Any, node: Any) -> dict[str, Any]:
        content: dict[str, Any] = {}
        for key, value in node.value:
            # In JSON, which YAML 1.2 is compared with, every key is text.
            if not isinstance(key, yaml.ScalarNode):
                where = _line(key.start_mark)
                raise YamlFault(f"has a key in it that is not a string{where}")
            if key.value in content:
                name, where = visible(key.value, 80), _line(key.start_mark)
                raise YamlFault(f"has the key '{name}' twice in one object{where}")
            content[key.value] = self.construct_object(value, True)
        return content

    def reads(read: Any) -> Any:
        return lambda loader, node: read(loader.construct_scalar(node))

    Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, mapping)
    for kind, pattern, first, read in _CORE:
        tag = f"tag:yaml.org,2002:{kind}"
        Loader.add_implicit_resolver(tag, re.compile(rf"(?:{pattern})\Z"), first)
        Loader.add_constructor(tag, reads(read))
    return Loader


def _int(text: str) -> int:
    return int(text, 0) if text[:2] in ("0o", "0x") else int(text)


_TRUE: Final = ("true", "True", "TRUE")
_FLOAT: Final = r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
_CORE: Final = (
    ("null", r"~|null|Null|NULL|", [*"~nN", ""], lambda text: None),
    ("bool", r"true|True|TRUE|false|False|FALSE", [*"tTfF"], _TRUE.__contains__),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", [*"-+0123456789"], _int),
    ("float", _FLOAT, [*"-+.0123456789"], float),
)
"""The tags of the core schema: pattern, first characters, and what reads a match."""
