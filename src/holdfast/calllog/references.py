"""References to earlier results in the arguments of a sequence.

    {"name":"list","arguments":{}}
    {"name":"open","arguments":{"id":"${1.result.items[0].id}"}}
    {"name":"note","arguments":{"text":"opened ${last.result.title}"}}

A reference is ``${CALL}`` or ``${CALL.PART…}``. CALL is the number of a call, the first being
1, or ``last``. PART is ``result`` (what the call gave: the structured result, or the JSON of its
text, or the text), ``text``, ``structured`` or ``content``; without one it is ``result``. Then
come any number of ``.key``, ``["any key"]`` and ``[index]``. A string that is one reference
becomes what it refers to, whatever that is; inside of a longer string it becomes text.
``$${`` stands for ``${`` itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from holdfast.calllog.lines import compact
from holdfast.calllog.matching import brief
from holdfast.calllog.results import parsed
from holdfast.errors import ValidationError
from holdfast.types.tools import ToolResult

_FOUND: Final = re.compile(r"\$\$\{|\$\{([^{}]*)\}|\$\{")
_CALL: Final = re.compile(r"([0-9]{1,9}|last)(?=[.\[]|$)")
_STEP: Final = re.compile(
    r"""\.(?P<key>[^.\[\]"'\s]+) | \["(?P<quoted>[^"\]]*)"\] | \[(?P<index>-?[0-9]{1,9})\]""",
    re.VERBOSE,
)
_HINT: Final = "write $${ for a ${ that is meant as it stands"


class _Dangling(Exception):  # noqa: N818  (a finding, told with its line)
    """Why a reference leads nowhere."""


def fill_in(arguments: dict[str, Any], results: Sequence[Any], line: int) -> dict[str, Any]:
    """The arguments with every reference replaced; ``results`` are those of the calls before.

    A result is what the caller returned, or an exception. Raises `ValidationError`.
    """

    def replace(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: replace(item) for name, item in value.items()}
        if isinstance(value, list):
            return [replace(item) for item in value]
        return _in_text(value, results) if isinstance(value, str) and "${" in value else value

    try:
        return {name: replace(item) for name, item in arguments.items()}
    except _Dangling as error:
        raise ValidationError(f"line {line}: {error}") from None


def _in_text(text: str, results: Sequence[Any]) -> Any:
    whole = _FOUND.fullmatch(text)
    if whole is not None and whole[1] is not None:
        return _resolve(whole[1], results)

    def replace(match: re.Match[str]) -> str:
        if match[0] == "$${":
            return "${"
        if match[1] is None:
            raise _Dangling(f"a ${{ without its }} in {brief(text)}; {_HINT}")
        value = _resolve(match[1], results)
        return value if isinstance(value, str) else compact(value).decode()

    return _FOUND.sub(replace, text)


def _resolve(reference: str, results: Sequence[Any]) -> Any:
    shown = f"${{{reference}}}"
    call = _CALL.match(reference)
    if call is None:
        raise _Dangling(
            f"{shown} is no reference: it begins with the number of a call, or last; {_HINT}"
        )
    steps = _steps(reference, call.end(), shown)
    found = _call(call[1], results, shown)
    where = "result"
    if steps and isinstance(steps[0], str):
        where, steps = steps[0], steps[1:]
    value = _part(found, where, shown)
    for step in steps:
        value = _step(value, step, where, shown)
        where += f"[{step}]" if isinstance(step, int) else f".{step}"
    return value


def _steps(reference: str, start: int, shown: str) -> list[str | int]:
    steps: list[str | int] = []
    while start < len(reference):
        match = _STEP.match(reference, start)
        if match is None:
            rest = reference[start:]
            raise _Dangling(f'{shown}: {rest!r} is no step; they are .key, ["key"] and [0]')
        index, start = match["index"], match.end()
        steps.append(int(index) if index is not None else match["key"] or match["quoted"] or "")
    return steps


def _call(which: str, results: Sequence[Any], shown: str) -> Any:
    number = len(results) if which == "last" else int(which)
    if not 1 <= number <= len(results):
        count = len(results)
        there = "is 1 call" if count == 1 else f"are {count or 'no'} calls"
        raise _Dangling(f"{shown}: there {there} before this one")
    found = results[number - 1]
    if found is None or isinstance(found, BaseException):
        raise _Dangling(f"{shown}: call {number} failed, so it has no result")
    return found


def _part(found: Any, part: str, shown: str) -> Any:
    if not isinstance(found, ToolResult):
        if part == "result":
            return found
        raise _Dangling(f"{shown}: that call gave no tool result, it has only .result")
    if part == "structured" and not found.has_structured:
        raise _Dangling(f"{shown}: that call gave no structured result")
    if part not in _PARTS:
        raise _Dangling(f"{shown}: {part!r} is not one of {', '.join(_PARTS)}")
    return _PARTS[part](found)


def result_of(found: ToolResult) -> Any:
    """What a call gave, in the form that is easiest to go on with."""
    return found.structured if found.has_structured else parsed(found.text)


_PARTS: Final[dict[str, Callable[[ToolResult], Any]]] = {
    "result": result_of,
    "text": lambda found: found.text,
    "structured": lambda found: found.structured,
    "content": lambda found: found.raw.get("content", []),
}


def _step(value: Any, step: str | int, where: str, shown: str) -> Any:
    if isinstance(step, int) and isinstance(value, list):
        if -len(value) <= step < len(value):
            return value[step]
        raise _Dangling(f"{shown}: {where} has {len(value)} items, so there is no [{step}]")
    if isinstance(step, str) and isinstance(value, dict):
        if step in value:
            return value[step]
        keys = ", ".join(map(repr, list(value)[:10])) or "none"
        raise _Dangling(f"{shown}: {where} has no {step!r}; its keys are: {keys}")
    raise _Dangling(f"{shown}: {where} is {brief(value)}, which has no {step!r} in it")
