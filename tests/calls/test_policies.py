"""The policies of calls: what they refuse, and what the reference says of them."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast import Cache, Observability, ToolPolicy, ValidationError
from holdfast._core.boundary import Traits
from holdfast._core.calls.cache import partition
from holdfast.policies import Policy, Redaction
from holdfast.stores import MemoryStore
from tests.rows import rows

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "policies.md"


@rows(
    ("make", "said"),
    [
        (
            lambda: ToolPolicy(validate="yes"),  # type: ignore[arg-type]
            "validate='yes': must be 'known' or 'always' or 'required' or 'off'",
        ),
        (lambda: ToolPolicy(results="no"), "results='no': must be 'warn' or 'raise' or 'off'"),  # type: ignore[arg-type]
        (lambda: ToolPolicy(allow="search"), "ToolPolicy(allow='search'): must be a list"),
        (lambda: ToolPolicy(deny="search"), "ToolPolicy(deny='search'): must be a list"),
        (
            lambda: ToolPolicy(timeouts={"a": 0}),
            "ToolPolicy(timeouts={'a': 0}): must be a number, more",
        ),
        (lambda: Cache(ttl=-1), "Cache(ttl=-1): must be a number, 0 or more"),
        (lambda: Cache(entries=0), "Cache(entries=0): must be a whole number, more than 0"),
        (lambda: Cache(mode="on"), "mode='on': must be 'use' or 'refresh' or 'bypass'"),  # type: ignore[arg-type]
        (lambda: Cache(invalidate_on="sync"), "Cache(invalidate_on='sync'): must be a list"),
        (lambda: Redaction(keys="token"), "Redaction(keys='token'): must be a list"),
    ],
)
def test_a_policy_that_cannot_work_is_refused_by_name(make: Any, said: str) -> None:
    with pytest.raises(ValidationError) as caught:
        make()
    assert said in str(caught.value)


@pytest.mark.req("T4")
@rows(
    ("policy", "enabled"),
    [
        (ToolPolicy(), True),
        (ToolPolicy(allow=["browser.open"]), True),
        (ToolPolicy(allow=["browser.*"]), True),
        (ToolPolicy(allow=[]), False),
        (ToolPolicy(allow=["files.*"]), False),
        (ToolPolicy(deny=["browser.*"]), False),
        (ToolPolicy(allow=["browser.open"], deny=["*"]), False),
        (ToolPolicy(allow=(name for name in ["browser.open"])), True),
    ],
)
def test_deny_wins_over_allow(policy: ToolPolicy, enabled: bool) -> None:
    assert policy.enables("browser.open") is enabled
    assert policy.enables("browser.open") is enabled, "asked twice"


@pytest.mark.req("R3")
def test_the_closest_name_has_the_timeout() -> None:
    policy = ToolPolicy(timeouts={"*": 1, "browser.*": 2, "browser.open": 3})
    found = [policy.timeout(name) for name in ("browser.open", "browser.close", "files.read")]
    assert found == [3, 2, 1]
    assert ToolPolicy().timeout("a") is None
    assert ToolPolicy(timeouts={"a[b]c": 1, "abc": 2}).timeout("abc") == 2, "a name is closest"


@pytest.mark.parametrize("policy", [ToolPolicy, Cache, Redaction, Observability])
def test_every_setting_is_listed_with_its_default(policy: Any) -> None:
    text = REFERENCE.read_text(encoding="utf-8")
    section = text.partition(f"## {policy.__name__}\n")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| `([^|]*)` \|", section, re.M))
    actual = {name: repr(getattr(policy(), name)) for name in policy.__struct_fields__}
    too_long = {"keys": "SECRETS", "redaction": "Redaction()"}
    assert rows == actual | {name: text for name, text in too_long.items() if name in actual}


# Whose answers are whose


def parts(key: Any, context: str | None, credentials: str = "") -> tuple[str, str]:
    transport = SimpleNamespace(key=key, traits=Traits(credentials=credentials))
    policy = Policy(cache=Cache(store=MemoryStore(), context=context))
    server, whose = partition(transport, policy)
    return server, whose()


@pytest.mark.req("C4")
def test_the_same_server_and_context_share() -> None:
    assert parts(("stdio", "a"), "me") == parts(("stdio", "a"), "me")
    assert parts(("stdio", "a"), "me")[0] != parts(("stdio", "b"), "me")[0]
    assert parts(("stdio", "a"), "me")[1] != parts(("stdio", "a"), "you")[1]


@pytest.mark.req("C4")
def test_a_client_without_a_context_shares_nothing_private() -> None:
    assert parts(("stdio", "a"), None)[1] != parts(("stdio", "a"), None)[1]


@pytest.mark.req("C4")
def test_a_server_without_a_name_is_shared_with_nobody() -> None:
    assert parts(None, "me")[0] != parts(None, "me")[0]


@pytest.mark.req("C4")
@pytest.mark.parametrize("cache", [Cache(), Cache(store=MemoryStore(), context="me")])
def test_other_credentials_are_another_context(cache: Cache) -> None:
    transport = SimpleNamespace(key=("http", "u"), traits=Traits(credentials="one"))
    _, whose = partition(transport, Policy(cache=cache))
    first = whose()
    transport.traits = Traits(credentials="two")
    assert whose() != first


@pytest.mark.req("C4")
def test_no_secret_stands_in_a_key() -> None:
    server, whose = parts(("stdio", (("TOKEN", "hunter2"),)), "me", "hunter2")
    assert "hunter2" not in server + whose


@pytest.mark.req("C4")
def test_private_entries_are_told_apart_by_the_credentials_of_a_url() -> None:
    from holdfast._core.transports.http import Http

    def whose(policy: Policy, **options: Any) -> list[str]:
        _, context = partition(Http("http://x/", **options), policy)
        return [context(), context()]

    fixed = whose(Policy(), headers={"Authorization": "a"})
    assert fixed[0] == fixed[1]
    changing = whose(Policy(), headers=dict)
    assert changing[0] != changing[1]
    named = whose(Policy(cache=Cache(context="ann")), headers=dict)
    assert named[0] == named[1]
