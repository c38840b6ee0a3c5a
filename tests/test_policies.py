"""The policies: their defaults, what they refuse, and the sums they do."""

from __future__ import annotations

import itertools
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import Handlers
from holdfast._core.engine.outbox import ATTEMPTS, PAUSE, PAUSE_JITTER
from holdfast.errors import ValidationError
from holdfast.policies import (
    Backoff,
    Cache,
    Identity,
    Limits,
    Observability,
    Policy,
    Redaction,
    Timeouts,
    ToolPolicy,
    jittered,
)
from tests.rows import rows

EVEN = itertools.repeat(0.5)
jitter = st.floats(0, 1, exclude_max=True)


@pytest.mark.req("R3", "L5", "L6", "R7", "R9")
def test_the_defaults_are_the_promised_ones() -> None:
    times, backoff = Timeouts(), Backoff()
    assert (times.request, times.handshake, times.total_for(30)) == (30, 10, 300)
    assert (backoff.first, backoff.max, backoff.jitter) == (1, 30, 0.2)
    assert backoff.attempts is None
    assert (ATTEMPTS, PAUSE, PAUSE_JITTER) == (3, 0.010, 0.5)
    assert Limits().frame_bytes == 16_777_216
    assert (Policy().when_down, Policy().replay, Policy().protocol) == ("fail", "never", None)


@pytest.mark.req("R3")
@rows(
    ("method", "seconds"),
    [
        ("tools/call", 1.0),
        ("tools/list", 1.0),
        ("resources/read", 0.5),
        ("prompts/get", 2.0),
        ("completion/complete", 30.0),
        ("ping", 30.0),
        ("request", 30.0),
        ("total", 30.0),
    ],
)
def test_each_kind_of_method_has_its_own_timeout(method: str, seconds: float) -> None:
    assert Timeouts(tools=1.0, resources=0.5, prompts=2.0).for_method(method) == seconds


@pytest.mark.req("R3")
def test_a_kind_without_a_timeout_of_its_own_has_the_common_one() -> None:
    assert Timeouts(request=7.0).for_method("tools/call") == 7.0


BAD: list[Any] = [0, -1, -0.5, float("nan"), "5", True]


@rows("field, bad", product(Timeouts.__struct_fields__, BAD))
def test_a_timeout_that_cannot_work_is_refused_by_name(field: str, bad: Any) -> None:
    with pytest.raises(ValidationError, match=rf"Timeouts\({field}=.*more than 0"):
        Timeouts(**{field: bad})


@rows("field, bad", product(sorted({*Limits.__struct_fields__} - {"store", "key"}), BAD))
def test_a_limit_that_cannot_work_is_refused_by_name(field: str, bad: Any) -> None:
    with pytest.raises(ValidationError, match=rf"Limits\({field}="):
        Limits(**{field: bad})


@pytest.mark.parametrize("field", ["request", "handshake", "probe"])
def test_a_timeout_that_everything_falls_back_to_cannot_be_left_out(field: str) -> None:
    missing: dict[str, Any] = {field: None}
    with pytest.raises(ValidationError, match=field):
        Timeouts(**missing)


@pytest.mark.req("R3")
@pytest.mark.parametrize(
    ("total", "idle", "seconds"), [(None, 30, 300), (None, 600, 600), (1, 30, 1), (900, 30, 900)]
)
def test_a_total_is_what_it_says_or_makes_room_for_the_silence(
    total: float | None, idle: float, seconds: float
) -> None:
    assert Timeouts(total=total).total_for(idle) == seconds


@pytest.mark.parametrize("field", ["total", "tools", "resources", "prompts"])
def test_a_timeout_of_a_kind_can_be_left_out(field: str) -> None:
    missing: dict[str, Any] = {field: None}
    assert getattr(Timeouts(**missing), field) is None


@rows(
    "options",
    [
        {"first": 0},
        {"max": -1},
        {"attempts": 0},
        {"jitter": -0.1},
        {"jitter": 1.1},
        {"healthy_after": -1},
        {"healthy_after": float("nan")},
    ],
    ids=repr,
)
def test_a_backoff_that_cannot_work_is_refused(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(ValidationError, match=rf"Backoff\({name}="):
        Backoff(**options)


def test_a_backoff_may_have_no_jitter_and_no_wait_for_health() -> None:
    assert Backoff(jitter=0, healthy_after=0).delay(1, iter([0.9])) == 1.0


@pytest.mark.parametrize("options", [{"when_down": "sulk"}, {"replay": "always"}], ids=repr)
def test_a_policy_that_does_not_exist_is_refused_with_the_choices(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=" or "):
        Policy(**options)


@pytest.mark.req("L5")
def test_the_delay_doubles_from_one_second_to_thirty() -> None:
    delays = [Backoff().delay(failures, EVEN) for failures in range(1, 9)]
    assert delays == [1, 2, 4, 8, 16, 30, 30, 30]
    assert Backoff().delay(10_000, EVEN) == 30


@pytest.mark.req("L5")
@given(st.integers(1, 200), jitter)
def test_the_delay_is_spread_by_a_fifth(failures: int, draw: float) -> None:
    centre = min(30.0, 2.0 ** (failures - 1))
    delay = Backoff().delay(failures, iter([draw]))
    assert centre * 0.8 <= delay <= centre * 1.2


@pytest.mark.req("L5", "R7")
def test_the_spread_reaches_to_both_ends() -> None:
    least, most = 0.0, 1.0 - 1e-12
    assert Backoff().delay(1, iter([least])) == pytest.approx(0.8)
    assert Backoff().delay(1, iter([most])) == pytest.approx(1.2)
    assert jittered(PAUSE, PAUSE_JITTER, iter([least])) == pytest.approx(0.005)
    assert jittered(PAUSE, PAUSE_JITTER, iter([most])) == pytest.approx(0.015)


@given(st.floats(0, 1e6), st.floats(0, 1), jitter)
def test_a_spread_is_never_negative_and_the_middle_of_luck_changes_nothing(
    delay: float, factor: float, draw: float
) -> None:
    assert jittered(delay, factor, iter([draw])) >= 0
    assert jittered(delay, factor, EVEN) == delay


@pytest.mark.req("R5")
def test_a_tombstone_lives_as_long_as_a_late_answer_can_take() -> None:
    assert Policy().tombstone_ttl == 75.0
    times, backoff = Timeouts(request=1, handshake=2), Backoff(max=3)
    assert Policy(timeouts=times, backoff=backoff).tombstone_ttl == 1 + 2 + 3 + 5


@pytest.mark.req("X5")
def test_an_identity_shows_a_title_only_if_it_has_one() -> None:
    assert Identity(name="me", version="2").info() == {"name": "me", "version": "2"}
    assert Identity(name="me", version="2", title="Me").info()["title"] == "Me"
    assert Identity().info()["name"] == "holdfast"


@rows("policy", [Timeouts(), Limits(), Backoff(), Identity(), Policy()])
def test_policies_are_frozen(policy: Any) -> None:
    with pytest.raises(AttributeError):
        setattr(policy, policy.__struct_fields__[0], 1)


@pytest.mark.req("X5")
@rows(
    ("kind", "field", "wrong", "expected"),
    [
        (Handlers, "sampling", 5, "a function"),
        (Handlers, "progress", "print", "a function"),
        (Handlers, "elicitation", "ask", "a function or 'return'"),
        (Handlers, "roots", "/tmp", "a list of file:// URIs, or a function"),
        (Handlers, "roots", 5, "a list of file:// URIs, or a function"),
        (ToolPolicy, "timeouts", 3, "a mapping of tools to seconds"),
        (ToolPolicy, "allow", 3, "a list of strings"),
        (ToolPolicy, "budget", 0, "a number of characters"),
        (Cache, "store", 3, "a holdfast.stores.Store"),
        (Cache, "serve_stale", 1, "True or False"),
        (Cache, "context", 7, "a string"),
        (Cache, "entries", 1.5, "a whole number, more than 0"),
        (Limits, "frame_bytes", 1.5, "a whole number, more than 0"),
        (Backoff, "attempts", 2.5, "a whole number, more than 0"),
        (Identity, "name", 3, "a string"),
        (Identity, "title", 3, "a string"),
        (Identity, "capabilities", [], "a dict"),
        (Redaction, "on", "yes", "True or False"),
        (Redaction, "keys", 3, "a list of strings"),
        (Observability, "audit", 3, "True, False or a function"),
        (Observability, "redaction", {}, "a holdfast.policies.Redaction"),
        (Observability, "opentelemetry", 1, "True or False"),
    ],
)
def test_a_field_of_a_wrong_type_is_refused_by_name_and_value(
    kind: Any, field: str, wrong: Any, expected: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        kind(**{field: wrong})
    assert str(caught.value) == f"{kind.__name__}({field}={wrong!r}): must be {expected}"


@pytest.mark.req("T8")
def test_a_pattern_of_redaction_that_is_none_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"patterns=.*must be regular expressions"):
        Redaction(patterns=["("])
