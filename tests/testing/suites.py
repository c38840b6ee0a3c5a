"""Suites of users, run in a pytest of their own with the plugin."""

from __future__ import annotations

import importlib
import os
import pkgutil
from importlib.metadata import entry_points

import pytest

import holdfast

PLUGIN = "holdfast.testing.plugin"
INSTALLED = any(entry.value == PLUGIN for entry in entry_points(group="pytest11"))
"""Whether pytest finds it by itself; twice would be once too many."""

INI = """
[pytest]
filterwarnings = error
"""
ASYNCIO = """
asyncio_mode = {mode}
asyncio_default_fixture_loop_scope = function
"""

SERVER = """
import asyncio, json, pytest, holdfast
from holdfast.testing import Peer

CALLS = []
server = Peer("shop")

@server.tool(input_schema={"type": "object", "properties": {"a": {}, "b": {}}})
def add(a, b):
    CALLS.append((a, b))
    return str(a + b)

@server.tool()
def fail():
    raise OSError("out of rope")

@server.tool(input_schema={"type": "object", "properties": {"password": {}, "pin": {
    "type": "string", "format": "password"}}})
def login(password="", pin=""):
    return "welcome"

@server.tool()
def novel():
    return "chapter " * 500
"""

ELSEWHERE = ("__main__", "_core.windows", "load.locust_user")
"""What no other system can load, and what needs Locust."""

# What a suite in this process loads, pytester unloads again: a second one would find half of it.
for module in pkgutil.walk_packages(holdfast.__path__, "holdfast."):
    if not module.name.endswith(ELSEWHERE):
        importlib.import_module(module.name)


def suite(
    pytester: pytest.Pytester, source: str, *, mode: str | None = "auto", more: str = ""
) -> None:
    """Write a suite of one module. ``mode`` is pytest-asyncio's; None: it is not there."""
    pytester.makeini(INI + (ASYNCIO.format(mode=mode) if mode else "") + more)
    pytester.makepyfile(test_it=SERVER + source)


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """Run what was written."""
    os.environ.pop("MCP_SERVER_URL", None)
    plugin = () if INSTALLED else ("-p", PLUGIN)
    return pytester.runpytest_inprocess(*plugin, "-p", "no:cacheprovider", *arguments)


def try_out(
    pytester: pytest.Pytester,
    source: str,
    *arguments: str,
    mode: str | None = "auto",
    more: str = "",
    **expected: int,
) -> str:
    """Write a suite, run it, and see it end as expected; the output."""
    suite(pytester, source, mode=mode, more=more)
    found = run(pytester, *(() if mode else ("-p", "no:asyncio")), *arguments)
    found.assert_outcomes(**expected)
    return found.stdout.str()
