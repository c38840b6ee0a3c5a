"""A secret is known as long as something holds it, and for a while after; logs are without it."""

from __future__ import annotations

import gc
import logging
import pickle
import threading
from collections.abc import Iterator

import pytest

from holdfast._core.redact import known
from holdfast._core.redact.known import KNOWN, KnownSecrets
from holdfast._core.redact.redactor import Redactor
from holdfast._core.redact.skeletons import NeedleTable
from holdfast._core.text import HIDDEN
from holdfast.errors import GrantError, HoldfastError, RpcError, TransportError
from holdfast.policies import Redaction

SECRET = "hunter2abc"


def names_of(register: KnownSecrets, *texts: str) -> list[bool]:
    return [register.hide(text) == HIDDEN for text in texts]


@pytest.mark.req("T8")
def test_a_secret_is_known_while_its_owner_lives_and_after() -> None:
    register = KnownSecrets()
    assert register.hide(SECRET) == SECRET
    holder = register.held(lambda: [SECRET])
    assert register.hide(SECRET) == HIDDEN
    del holder
    gc.collect()
    assert register.hide(SECRET) == HIDDEN


@pytest.mark.req("T8")
def test_an_owner_that_is_gone_before_the_first_search_is_remembered() -> None:
    register = KnownSecrets()
    register.held(lambda: [SECRET])
    gc.collect()
    assert register.hide(SECRET) == HIDDEN


def test_secrets_of_owners_that_are_gone_are_forgotten_after_many_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(known, "PAST", 10)
    register = KnownSecrets()
    kept = register.held(lambda: ["kept-by-owner"])
    for number in range(100):
        register.held(lambda number=number: [f"secret-{number}"])  # type: ignore[misc]
    gc.collect()
    assert names_of(register, "secret-99", "secret-95", "secret-5", "kept-by-owner") == [
        *(True, True, False),
        True,
    ]
    register.note("noted-secret")
    assert register.hide("noted-secret") == HIDDEN
    del kept


def test_nothing_is_read_before_the_first_search() -> None:
    register, reads = KnownSecrets(), []

    def read() -> list[str]:
        reads.append(1)
        return [SECRET]

    holder = register.held(read)
    assert reads == []
    assert names_of(register, SECRET, SECRET) == [True, True]
    assert reads == [1]
    del holder


def test_what_waits_to_be_read_is_bounded() -> None:
    register = KnownSecrets()
    holders = [register.held(lambda: [SECRET]) for _ in range(1000)]
    assert len(register._arrived) <= known.MOST_WAITING
    assert len(holders) == 1000


def test_a_finalizer_that_shows_something_does_not_block_the_register() -> None:
    register = KnownSecrets()
    shown: list[str] = []

    class Unclosed:
        def __del__(self) -> None:
            shown.append(register.hide(SECRET))

    def read() -> Iterator[str]:
        # The collector may run while values are read, with the lock held by this thread.
        cycle = [Unclosed()]
        del cycle
        yield SECRET

    holder = register.held(read)
    thread = threading.Thread(target=register.hide, args=(SECRET,), daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()
    assert shown
    assert register.hide(SECRET) == HIDDEN
    del holder


def test_threads_can_hold_and_search_at_once() -> None:
    register, failures = KnownSecrets(), []

    def work(name: str) -> None:
        for number in range(200):
            secret = f"{name}-secret-{number}"
            holder = register.held(lambda secret=secret: [secret])  # type: ignore[misc]
            if register.hide(f"it is {secret}.") != f"it is {HIDDEN}.":
                failures.append(secret)
            del holder

    threads = [threading.Thread(target=work, args=(f"thread{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


@pytest.mark.req("T8")
def test_a_search_waits_for_a_secret_that_another_thread_reads() -> None:
    register, shown = KnownSecrets(), []
    search = threading.Thread(target=lambda: shown.append(register.hide(SECRET)), daemon=True)

    def read() -> list[str]:
        search.start()
        search.join(0.2)  # it ends only if it does not wait
        return [SECRET]

    holder = register.held(read)
    assert register.hide(SECRET) == HIDDEN
    search.join(10)
    assert shown == [HIDDEN]
    del holder


@pytest.mark.req("T8")
def test_a_needle_that_is_added_while_they_are_listed_is_found() -> None:
    table = NeedleTable()
    table.add("first-needle")

    class Counts(dict[str, int]):
        """Another thread has its turn as soon as the needles were listed."""

        def __iter__(self) -> Iterator[str]:
            listed = list(super().__iter__())
            if "second-needle" not in self:
                table.add("second-needle")
            return iter(listed)

    table._counts = Counts(table._counts)
    table.is_in("")
    assert table.is_in("the second-needle")


@pytest.mark.req("T8")
def test_an_error_hides_a_secret_in_everything_that_is_read_of_it() -> None:
    text = f"the value {SECRET} is wrong"
    errors = [
        RpcError(text, data={"a": [text]}, server_message=text),
        TransportError(text, stderr_tail=text),
        GrantError(text, description=text),
    ]
    before = [error.message for error in errors]
    KNOWN.note(SECRET)
    assert before == [text] * 3
    for error in errors:
        copy = pickle.loads(pickle.dumps(error))
        fields = (error.message, error.args, error.data, str(error), repr(error), error.redacted)
        rest = [getattr(error, name, "") for name in ("server_message", "stderr_tail")]
        rest.append(getattr(error, "description", ""))
        assert SECRET not in repr((fields, rest, copy.__dict__, error.again(text).args))
        assert copy.message == error.message == f"the value {HIDDEN} is wrong"


def test_a_field_without_a_secret_is_the_object_that_was_given() -> None:
    data: dict[str, object] = {}
    KNOWN.note(SECRET)
    assert RpcError("x", data=data).data is data
    data["a"] = [1, 2]
    assert RpcError("x", data=data).data is data
    assert HoldfastError("x").data is None


@pytest.mark.req("T8")
def test_a_log_record_hides_secrets_also_in_its_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    holder = KNOWN.held(lambda: [SECRET])
    for name in ("holdfast", "holdfast.audit"):
        log = logging.getLogger(name)
        log.warning("the value %s", SECRET)
        log.warning("%d values", 2)
        try:
            raise ValueError(SECRET)
        except ValueError:
            log.exception("failed")
    formatted = [logging.Formatter().format(record) for record in caplog.records]
    assert SECRET not in str(formatted)
    assert [text.partition("\n")[0] for text in formatted] == [
        *(f"the value {HIDDEN}", "2 values", "failed"),
        *(f"the value {HIDDEN}", "2 values", "failed"),
    ]
    del holder


@pytest.mark.req("T8", "L8")
def test_a_secret_that_cannot_be_read_now_is_neither_shown_nor_forgotten(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Without descriptors the modules that read it cannot be loaded."""
    failures = [OSError(24, "Too many open files") for _ in range(3)]

    def read() -> list[str]:
        if failures:
            raise failures.pop()
        return [SECRET]

    holder = KNOWN.held(read)
    unread = "(not shown: it cannot be searched for secrets: Too many open files)"
    error = TransportError(f"it said {SECRET}")
    assert error.message == unread
    logging.getLogger("holdfast").warning("it said %s", SECRET)
    assert caplog.messages == [unread]
    assert not failures
    assert error.message == f"it said {HIDDEN}"
    del holder


@pytest.mark.req("T8")
def test_a_redactor_has_the_secrets_that_it_is_given() -> None:
    register = KnownSecrets()
    register.note(SECRET)
    redactor = Redactor(Redaction(), known=register)
    assert redactor.text(f"x {SECRET}") == f"x {HIDDEN}"
    assert redactor.value({"a": [SECRET], SECRET: 1}) == {"a": [HIDDEN], HIDDEN: 1}
    assert redactor.name(f"tool {SECRET}") == f"tool {HIDDEN}"
    assert not redactor.is_plain(b'{"a":"hunter2abc"}')
    assert redactor.is_plain(b'{"a":"b"}')
    assert Redactor(Redaction(on=False), known=register).text(SECRET) == SECRET


@pytest.mark.req("T8")
def test_a_text_is_searched_before_it_is_cut() -> None:
    register = KnownSecrets()
    secret = "x9" * 20_000
    register.note(secret)
    redactor = Redactor(Redaction(), known=register)
    assert redactor.beginning(f"it is {secret} and more", 30) == f"it is {HIDDEN} and more"
    text = "x " * 10 + "token=" + "hunter2" * 20
    for most in range(20, 40):
        assert "hunter" not in redactor.beginning(text, most)
