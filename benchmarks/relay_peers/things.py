"""The 23 things that should pass between a host and a server, whatever is between them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

from benchmarks.relay_peers import server
from benchmarks.relay_peers.host import ANSWERS, CAPABILITIES, Host, Lost
from benchmarks.relay_peers.links import Journal, Message
from benchmarks.relay_peers.server import META

ODD_ARGUMENTS: Final = {
    "text": 'é \u2028 \U0001f600 \\ "',
    "number": 2**53 - 1,
    "nothing": None,
    "nested": {"": [[], {}, [None, True, 1.5]]},
}
MISSING: Final = "memo://missing"


class Trial(NamedTuple):
    """A host that is connected, and what its server tells aside."""

    host: Host
    journal: Journal


def check(actual: Any, expected: Any) -> None:
    """Raise unless all that is expected is there; what a relay adds to it is no loss."""
    if not _has(actual, expected):
        raise Lost(f"{_brief(actual)} instead of {_brief(expected)}")


def _has(actual: Any, expected: Any) -> bool:
    if isinstance(expected, dict):
        return isinstance(actual, dict) and all(
            key in actual and _has(actual[key], value) for key, value in expected.items()
        )
    if isinstance(expected, list | tuple):
        return len(actual or ()) == len(expected) and all(map(_has, actual, expected))
    return bool(actual == expected)


def _brief(value: Any) -> str:
    shown = json.dumps(value, ensure_ascii=False, default=str)
    return shown if len(shown) <= 80 else f"{shown[:80]}…"


# What is listed


async def all_pages(trial: Trial) -> None:
    tools = await _tools(trial.host)
    check(sorted(tool["name"] for tool in tools), sorted([*server.TOOLS, "fancy"]))


async def _tools(host: Host) -> list[Message]:
    tools: list[Message] = []
    cursor: Message = {}
    while True:
        page = await host.result("tools/list", cursor)
        tools += page["tools"]
        if "nextCursor" not in page:
            return tools
        cursor = {"cursor": page["nextCursor"]}


async def tool_metadata(trial: Trial) -> None:
    tools = await _tools(trial.host)
    check(next((tool for tool in tools if tool["name"] == "fancy"), None), server.FANCY)


async def identity(trial: Trial) -> None:
    introduction = trial.host.introduction
    info = introduction.get("serverInfo") or introduction.get("_meta", {}).get(META + "serverInfo")
    check(info, server.INFO)
    check(introduction.get("instructions"), server.INSTRUCTIONS)


# Calls


async def arguments_and_meta(trial: Trial) -> None:
    meta = {"vendor/trace": {"span": "a-1"}}
    echoed = await trial.host.call("echo", ODD_ARGUMENTS, **meta)
    check(echoed, {"arguments": ODD_ARGUMENTS, "_meta": meta})


async def progress(trial: Trial) -> None:
    since = len(trial.host.notifications)
    await trial.host.call("steps", progressToken="mine")
    await trial.host.notified("notifications/progress", since, progress=3)
    steps = [
        message["params"]
        for message in trial.host.notifications[since:]
        if message["method"] == "notifications/progress"
    ]
    expected = [
        {"progressToken": "mine", "progress": step, "total": 3, "message": f"step {step}"}
        for step in (1, 2, 3)
    ]
    check(steps, expected)


async def cancellation(trial: Trial) -> None:
    held = trial.host.begin("tools/call", {"name": "hold", "arguments": {}})
    await trial.journal.wait_for("held")
    trial.host.cancel(held)
    await trial.journal.wait_for("cancelled")


async def _question(trial: Trial, kind: str) -> None:
    before = trial.journal.count("ran")
    method, params = server.QUESTIONS[kind]
    answer = await trial.host.call("ask", {"kind": kind})
    check(answer, ANSWERS[method])
    check(trial.host.asked[-1], (method, params))
    check(trial.journal.count("ran") - before, 1)


async def elicitation(trial: Trial) -> None:
    await _question(trial, "elicitation")


async def sampling(trial: Trial) -> None:
    await _question(trial, "sampling")


async def roots(trial: Trial) -> None:
    await _question(trial, "roots")


async def error_code_and_data(trial: Trial) -> None:
    answer = await trial.host.request("tools/call", {"name": "fail", "arguments": {}})
    check(answer.get("error"), server.ERROR)


async def unknown_content(trial: Trial) -> None:
    result = await trial.host.result("tools/call", {"name": "odd", "arguments": {}})
    check(result, server.UNKNOWN_RESULT)


# What is announced


async def log_level_and_messages(trial: Trial) -> None:
    host = trial.host
    since = len(host.notifications)
    if host.is_stateless:
        await host.call("log", {}, **{META + "logLevel": "warning"})
    else:
        await host.result("logging/setLevel", {"level": "warning"})
        await host.call("log")
    await host.notified("notifications/message", since, level="error")
    entries = [
        message["params"]
        for message in host.notifications[since:]
        if message["method"] == "notifications/message"
    ]
    expected = [
        {"level": level, "logger": "work", "data": {"text": level, "n": [1]}}
        for level in ("warning", "error")
    ]
    check([{k: v for k, v in entry.items() if k != "_meta"} for entry in entries], expected)


async def list_changed(trial: Trial) -> None:
    since = len(trial.host.notifications)
    stream = await _listen(trial.host, {"toolsListChanged": True})
    await trial.host.call("change")
    params = await trial.host.notified("notifications/tools/list_changed", since)
    check(params.get("_meta", {}).get(META + "subscriptionId"), stream)


async def subscription(trial: Trial) -> None:
    host, uri = trial.host, server.TEXT["uri"]
    since = len(host.notifications)
    stream = await _listen(host, {"resourceSubscriptions": [uri]})
    if not host.is_stateless:
        await host.result("resources/subscribe", {"uri": uri})
    await host.call("touch", {"uri": uri})
    params = await host.notified("notifications/resources/updated", since, uri=uri)
    check(params.get("_meta", {}).get(META + "subscriptionId"), stream)


async def _listen(host: Host, filters: Message) -> int | None:
    """Open a stream, in the era that has them; return its id when it is acknowledged."""
    if not host.is_stateless:
        return None
    since = len(host.notifications)
    stream = host.begin("subscriptions/listen", {"notifications": filters})
    params = await host.notified("notifications/subscriptions/acknowledged", since)
    check(params.get("notifications"), filters)
    check(params.get("_meta", {}).get(META + "subscriptionId"), stream)
    return stream


# The other methods


async def resources(trial: Trial) -> None:
    host = trial.host
    check((await host.result("resources/list"))["resources"], [server.TEXT])
    templates = await host.result("resources/templates/list")
    check(templates["resourceTemplates"], [server.TEMPLATE])
    contents = await host.result("resources/read", {"uri": server.TEXT["uri"]})
    check(contents["contents"], server.CONTENTS)


async def not_found(trial: Trial) -> None:
    answer = await trial.host.request("resources/read", {"uri": MISSING})
    error = answer.get("error", {})
    if error.get("code") not in (-32002, -32602):
        raise Lost(f"code {error.get('code')}")
    check(error.get("message"), f"nothing at {MISSING}")
    check(error.get("data"), {"uri": MISSING})


async def prompts(trial: Trial) -> None:
    host = trial.host
    check((await host.result("prompts/list"))["prompts"], [server.PROMPT])
    params = {"name": "greet", "arguments": {"who": "Zoë"}}
    prompt = await host.result("prompts/get", params)
    check(prompt, server.get_prompt(None, params, None))  # type: ignore[arg-type]


async def completion(trial: Trial) -> None:
    params = {
        "ref": {"type": "ref/prompt", "name": "greet"},
        "argument": {"name": "tone", "value": "wa"},
        "context": {"arguments": {"who": "Zoë"}},
    }
    completed = await trial.host.result("completion/complete", params)
    expected = {"values": ["wa-Zoë"], "total": 12, "hasMore": True}
    check(completed.get("completion"), expected)


async def unknown_methods(trial: Trial) -> None:
    answered = await trial.host.result("vendor/question", {"question": [1, None]})
    check(answered, {"vendor": [1, None]})
    refused = await trial.host.request("vendor/nothing", {"a": 1})
    check(refused.get("error", {}).get("message"), "the scripted server has no vendor/nothing")


# The connection


async def host_capabilities(trial: Trial) -> None:
    check(await trial.host.call("seen"), CAPABILITIES)


async def one_process(trial: Trial) -> None:
    check(await trial.host.call("pid"), await trial.host.call("pid"))


async def death_is_told(trial: Trial) -> None:
    try:
        answer = await trial.host.request("tools/call", {"name": "die", "arguments": {}})
    except Lost:
        if not trial.host.is_lost:
            raise
    else:
        if not _tells_failure(answer):
            raise Lost(f"answered with {_brief(answer.get('error') or answer.get('result'))}")
    check(trial.journal.count("died"), 1)


def _tells_failure(answer: Message) -> bool:
    """Return whether an answer is an error, of the protocol or of the tool, and says of what."""
    if "error" in answer:
        return bool(answer["error"].get("message"))
    result = answer["result"]
    return result.get("isError") is True and bool(result["content"][0].get("text"))


async def life_after_death(trial: Trial) -> None:
    """Call again; a host whose own connection has ended may start anew what it had started."""
    if trial.host.is_lost:
        await trial.host.close()
        await trial.host.open()
    await trial.host.call("pid")


Thing = Callable[[Trial], Awaitable[None]]
THINGS: Final[dict[str, Thing]] = {
    "all pages": all_pages,
    "tool metadata": tool_metadata,
    "identity": identity,
    "arguments and `_meta`": arguments_and_meta,
    "progress": progress,
    "cancellation": cancellation,
    "elicitation": elicitation,
    "sampling": sampling,
    "roots": roots,
    "error code and data": error_code_and_data,
    "unknown content": unknown_content,
    "log level and messages": log_level_and_messages,
    "list_changed": list_changed,
    "subscription": subscription,
    "resources": resources,
    "not found": not_found,
    "prompts": prompts,
    "completion": completion,
    "unknown methods": unknown_methods,
    "the host's capabilities": host_capabilities,
    "one process for two calls": one_process,
    "a death is told": death_is_told,
    "life after it": life_after_death,
}


async def outcomes(trial: Trial, patience: float) -> dict[str, str]:
    """Try all things in order on one connection; return what was lost of each, or nothing.

    Args:
        trial: The connection, open.
        patience: Seconds for each thing.
    """
    lost: dict[str, str] = {}
    for title, thing in THINGS.items():
        try:
            async with asyncio.timeout(patience):
                await thing(trial)
        except Lost as reason:
            lost[title] = str(reason)
        except TimeoutError:
            lost[title] = "nothing came"
        except (LookupError, TypeError) as error:
            lost[title] = f"malformed: {error!r}"
        else:
            lost[title] = ""
    return lost
