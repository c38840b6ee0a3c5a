"""What a server is given of the environment, and that it is no credential."""

from __future__ import annotations

import pytest

from holdfast._core.transports.environment import (
    LAUNCHERS_ENVIRONMENT,
    PASSED_ENVIRONMENT,
    environment,
)
from holdfast._core.transports.launchers import uses_launcher
from tests.rows import rows

OURS = {"PATH": "/bin", "HOME": "/home/me", "TOKEN": "t", "FUNCTION": "() { :; }"}
SECRET = "hunter2-s3cret"


@pytest.mark.req("X1")
def test_only_the_basics_are_passed_by_default() -> None:
    assert environment({}, (), OURS) == {"HOME": "/home/me", "PATH": "/bin"}
    assert "SSH_AUTH_SOCK" not in environment({}, (), {"SSH_AUTH_SOCK": "x"})


@pytest.mark.req("X1", "N1")
def test_everybody_gets_the_basics_and_launchers_get_their_settings() -> None:
    basics = dict.fromkeys(PASSED_ENVIRONMENT, "x")
    settings = {name.replace("*", "CACHE"): "x" for name in LAUNCHERS_ENVIRONMENT}
    assert environment({}, (), basics | settings) == basics
    assert environment({}, (), basics | settings, launcher=True) == basics | settings


@pytest.mark.req("X1")
@rows(
    "name",
    [
        *("UV_PUBLISH_TOKEN", "UV_PUBLISH_PASSWORD", "UV_INDEX_ACME_PASSWORD"),
        *("UV_INDEX_ACME_USERNAME", "UV_GITHUB_TOKEN", "UV_S3_SECRET_ACCESS_KEY"),
        *("npm_config__authToken", "npm_config__auth", "npm_config__password"),
        *("NPM_CONFIG__AUTHTOKEN", "npm_config_//registry.example.org/:_authToken"),
        *("npm_config_//registry.example.org/:_password", "npm_config_key", "npm_config_otp"),
        *("npm_config_//registry.example.org/:username", "NPM_CONFIG_KEY", "npm_config_cert"),
        *("PIP_TOKEN", "PIPX_API_KEY", "NPM_TOKEN", "NODE_AUTH_TOKEN", "POETRY_PYPI_TOKEN_X"),
        *("POETRY_HTTP_BASIC_X_PASSWORD", "GIT_ASKPASS", "GIT_CONFIG_VALUE_0", "TWINE_PASSWORD"),
        *("AWS_SECRET_ACCESS_KEY", "DOCKER_AUTH_CONFIG", "CARGO_REGISTRY_TOKEN", "NETRC"),
    ],
)
def test_a_variable_that_is_a_credential_is_passed_to_nobody(name: str) -> None:
    for launcher in (False, True):
        assert environment({}, (), {name: SECRET}, launcher=launcher) == {}


PROXIES = [
    *("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "https_proxy", "http_proxy", "all_proxy"),
    *("PIP_PROXY", "npm_config_proxy", "npm_config_https-proxy", "NPM_CONFIG_HTTPS_PROXY"),
]


@pytest.mark.req("X1")
@rows(
    ("value", "passed"),
    [
        ("http://proxy:3128", "http://proxy:3128"),
        (f"http://me:{SECRET}@proxy:3128", "http://proxy:3128"),
        (f"http://{SECRET}@proxy:3128/", "http://proxy:3128/"),
        (f"socks5h://me:{SECRET}@proxy", "socks5h://proxy"),
        (f"me:{SECRET}@proxy:3128", "proxy:3128"),
        (f"//me:{SECRET}@proxy:3128", "//proxy:3128"),
        (f"http://me:a@{SECRET}@proxy:3128", "http://proxy:3128"),
        (f"http://me:a/{SECRET}@proxy:3128", "http://proxy:3128"),
        (f"http://me:a//{SECRET}@proxy:3128", "http://proxy:3128"),
        (f"me:a//{SECRET}@proxy:3128", "proxy:3128"),
        (f"HTTP://me:%40{SECRET}@[::1]:3128", "HTTP://[::1]:3128"),
    ],
)
def test_a_proxy_is_passed_without_user_info(value: str, passed: str) -> None:
    for name in PROXIES:
        assert environment({}, (), {name: value}, launcher=True) == {name: passed}


@pytest.mark.req("X1")
@rows(
    ("name", "value", "passed"),
    [
        ("PIP_INDEX_URL", f"https://me:{SECRET}@host/simple", "https://host/simple"),
        ("PIP_INDEX_URL", f"https://{SECRET}@host/simple", "https://host/simple"),
        (
            "PIP_EXTRA_INDEX_URL",
            f"https://a:{SECRET}@one/simple https://two/simple\nhttps://b:{SECRET}@three",
            "https://one/simple https://two/simple\nhttps://three",
        ),
        ("UV_INDEX", f"acme=https://a:{SECRET}@host/simple", "acme=https://host/simple"),
        ("UV_DEFAULT_INDEX", f"https://a:b@{SECRET}@host:8443/x", "https://host:8443/x"),
        ("npm_config_registry", f"https://me:{SECRET}@host/", "https://host/"),
        ("npm_config_registry", "https://host/@scope/", "https://host/@scope/"),
        ("npm_config_@acme:registry", f"https://me:{SECRET}@host/", "https://host/"),
        ("DOCKER_HOST", "ssh://me@host", "ssh://me@host"),
        ("DOCKER_HOST", f"ssh://me:{SECRET}@host", "ssh://host"),
        ("DOCKER_HOST", "unix:///run/docker.sock", "unix:///run/docker.sock"),
        ("DOCKER_HOST", "tcp://[::1]:2375", "tcp://[::1]:2375"),
        ("PIP_FIND_LINKS", f"git+https://{SECRET}@host/repo", "git+https://host/repo"),
        ("PIP_CACHE_DIR", "/home/me@work/cache", "/home/me@work/cache"),
        ("npm_config_init_author_name", "Ann", "Ann"),
        ("PIP_INDEX_URL", f"https://me:a/{SECRET}@host/simple", None),
        ("PIP_INDEX_URL", f"me:{SECRET}@host/simple", None),
        ("UV_INDEX_URL", f"https://host/simple?token={SECRET}", None),
        ("npm_config_ca", f"-----BEGIN PRIVATE KEY-----\n{SECRET}", None),
    ],
)
def test_addresses_are_passed_to_launchers_without_credentials(
    name: str, value: str, passed: str | None
) -> None:
    """Not left out: without its index, a package manager would ask the public one."""
    assert environment({}, (), {name: value}, launcher=True).get(name) == passed
    assert name not in environment({}, (), {name: value})


@pytest.mark.req("X1")
def test_credentials_are_passed_by_name_or_with_everything() -> None:
    ours = {"HTTPS_PROXY": f"http://me:{SECRET}@proxy", "UV_INDEX_ACME_PASSWORD": SECRET}
    assert environment({}, ours, ours) == ours
    assert environment({}, True, ours) == ours
    assert environment(ours, (), {}) == ours


@rows(
    ("command", "uses"),
    [
        ("npx -y server", True),
        ("docker exec -i box server", True),
        ("uv --version", True),
        ("env A=1 npm start", True),
        ("python server.py", False),
        ("node npx.js", False),
    ],
)
def test_a_package_manager_is_one_whatever_it_is_told_to_do(command: str, uses: bool) -> None:
    assert uses_launcher(command.split()) is uses


@pytest.mark.req("X1")
def test_more_is_passed_by_name() -> None:
    passed = environment({"EXTRA": "1"}, ["TOKEN", "UNSET"], OURS)
    assert passed == {"HOME": "/home/me", "PATH": "/bin", "TOKEN": "t", "EXTRA": "1"}


@pytest.mark.req("X1")
def test_all_is_passed_on_request_but_shell_functions() -> None:
    assert environment({"HOME": "/"}, True, OURS) == {"PATH": "/bin", "HOME": "/", "TOKEN": "t"}


@pytest.mark.req("X1")
def test_nothing_is_inherited_by_false() -> None:
    assert "TOKEN" not in environment({}, False, OURS)


@pytest.mark.req("S5")
def test_on_windows_names_have_no_case_and_programs_get_what_they_need() -> None:
    ours = {"SYSTEMROOT": "C:\\Windows", "PATH": "C:\\bin", "APPDATA": "a", "SECRET": "s"}
    ours |= {"EDITOR": "vi", "PATHEXT": ".EXE"}
    passed = environment({"Path": "D:\\bin"}, ["editor"], ours, platform="win32")
    expected = {"SYSTEMROOT": "C:\\Windows", "PATH": "D:\\bin", "APPDATA": "a"}
    assert passed == {**expected, "EDITOR": "vi", "PATHEXT": ".EXE"}
    assert "SYSTEMROOT" not in environment({}, (), ours, platform="linux")
