"""tools/audit.py with services that are functions: what is clean, vulnerable, or not known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tools import audit as tool
from tools.audit import audit, installed, main

HOLE = {"id": "PYSEC-1", "fix_versions": ["2.0"], "aliases": [], "description": "bad"}


class Services:
    """What each service knows: vulnerabilities by package; one that is missing is down."""

    def __init__(self, **known: dict[str, list[dict[str, Any]]]) -> None:
        self.known = known
        self.asked: list[tuple[str, list[str]]] = []

    def __call__(self, service: str, pins: Mapping[str, str]) -> dict[str, Any] | None:
        self.asked.append((service, list(pins)))
        if service not in self.known:
            return None
        return {"dependencies": [self._entry(service, *pin) for pin in pins.items()]}

    def _entry(self, service: str, name: str, version: str) -> dict[str, Any]:
        if name not in self.known[service]:
            return {"name": name, "skip_reason": "not found"}
        return {"name": name, "version": version, "vulns": self.known[service][name]}


def test_all_clean() -> None:
    verdict = audit({"a": "1", "b": "2"}, Services(pypi={"a": [], "b": []}))
    assert (verdict.status, verdict.audited) == (0, 2)


def test_a_vulnerability_is_told_with_its_cure() -> None:
    verdict = audit({"a": "1", "b": "2"}, Services(pypi={"a": [], "b": [HOLE]}))
    assert verdict.status == 1
    assert tool.told(verdict).splitlines() == [
        "vulnerable: b 2: PYSEC-1 (fixed in: 2.0)",
        "2 audited, 1 vulnerable",
    ]


def test_the_second_service_is_asked_about_what_the_first_does_not_know() -> None:
    services = Services(pypi={"a": []}, osv={"b": []})
    assert audit({"a": "1", "b": "2"}, services).status == 0
    assert services.asked == [("pypi", ["a", "b"]), ("osv", ["b"])]


def test_nobody_is_asked_twice_for_what_is_known() -> None:
    services = Services(pypi={"a": []})
    audit({"a": "1"}, services)
    assert services.asked == [("pypi", ["a"])]


@pytest.mark.parametrize("services", [Services(), Services(pypi={}, osv={}), Services(pypi={})])
def test_what_nobody_knows_is_not_clean(services: Services) -> None:
    verdict = audit({"a": "1"}, services)
    assert (verdict.status, verdict.unknown) == (2, {"a": "1"})
    assert "NOT AUDITED: neither pypi nor osv answered for a 1" in tool.told(verdict)


def test_unreachable_services_fail_unless_that_is_allowed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([], Services()) == 2
    assert main(["--if-reachable"], Services()) == 0
    assert capsys.readouterr().out.count("NOT AUDITED") == 2


def test_a_vulnerability_fails_also_where_others_are_not_known() -> None:
    services = Services(pypi={name: [HOLE] for name in list(installed())[:1]})
    assert main(["--if-reachable"], services) == 1


def test_what_is_audited_is_what_an_installation_brings_along() -> None:
    pins = installed()
    assert {"aiohttp", "click", "jsonschema-rs", "msgspec", "yarl"} <= pins.keys()
    assert {"opentelemetry-api", "pyyaml", "uvloop"} <= pins.keys()
    assert not {"holdfast", "pytest", "mypy", "pip"} & pins.keys()


def test_extras_are_left_out_on_demand() -> None:
    assert not {"opentelemetry-api", "pyyaml", "uvloop"} & installed(extras=()).keys()
