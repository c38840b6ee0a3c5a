"""The page about real servers says what the tests check."""

from __future__ import annotations

from tests.interop.catalogue import SERVERS
from tests.interop.page import CHAPTERS, HERE, PAGE, names_in, page, sentence

NOT_ABOUT_SERVERS = {
    "test_agents.py",
    "test_har.py",
    "test_hosts.py",
    "test_install.py",
    "test_authorization.py",
    "test_login_servers.py",
    "test_oidc_provider.py",
    "test_page.py",
}


def test_the_page_is_fresh() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m tests.interop.page"


def test_every_oddity_has_its_test() -> None:
    modules = (HERE / name for name, _ in CHAPTERS)
    known = {f"test_{name}" for module in modules for name in names_in(module)}
    assert not {odd.proof for server in SERVERS for odd in server.oddities} - known


def test_every_module_of_tests_is_on_the_page() -> None:
    modules = {path.name for path in HERE.glob("test_*.py")} - NOT_ABOUT_SERVERS
    assert modules == {name for name, _ in CHAPTERS}


def test_every_server_is_pinned_to_the_version_on_the_page() -> None:
    for server in SERVERS:
        at = "==" if server.source == "pypi" else "@"
        assert f"{server.package}{at}{server.version}" == server.pins[0]
        exact = [pin.rpartition(at)[2] for pin in server.pins]
        assert all(version[0].isdigit() for version in exact)


def test_a_name_becomes_a_sentence() -> None:
    assert sentence("the_server_s_model_is_the_client_s") == "The server's model is the client's."
