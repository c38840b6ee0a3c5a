"""Every value that a user gives is a secret, but for those that are certainly none."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from holdfast import Bearer, Http, Stdio, config
from holdfast._core.redact.given import (
    inherited,
    is_ordinary_word,
    of_arguments,
    of_auth,
    of_command,
    of_headers,
    of_url,
    of_variables,
)
from holdfast._core.redact.known import KNOWN
from holdfast._core.text import HIDDEN
from holdfast.auth import ClientCredentials, WorkloadIdentity

RANDOM = "8f3a1b9c7d2e4f6071a2b3c4"


@pytest.mark.req("T8")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("API_KEY", "hunter2abc"),
        ("LICENSE", "hunter2abc"),
        ("X", "opensesame"),
        ("MODE", "blue-7"),
        ("PASSWORD", "/not/a/path"),
        ("PWD", "hunter2abc"),
        ("SOME_ID", RANDOM),
        ("NUMBER", "90210771"),
        ("API_KEY", "weather"),
    ],
)
def test_a_variable_that_is_given_is_a_secret(name: str, value: str) -> None:
    assert value in set(of_variables({name: value}))


@pytest.mark.req("T8")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PATH", "/usr/local/bin:/usr/bin"),
        ("LANG", "en_US.UTF-8"),
        ("LC_ALL", "de_DE.UTF-8"),
        ("DATA_DIR", "/home/me/data"),
        ("SEARCH", "/usr/lib:/opt/lib"),
        ("RELATIVE", "./some/folder"),
        ("WINDOWS", "C:\\Users\\me"),
        ("PWD", "/home/me/project"),
        ("VERSION", "3.12.1"),
        ("VERSION", "v2.0.0rc1"),
        ("BIND", "127.0.0.1:8080"),
        ("BIND", "localhost:3000"),
        ("BASE_URL", "https://api.example.com/v1/items"),
        ("LOCALE", "pt_BR"),
        ("HTTP_PORT", "443000"),
        ("DB_HOST", "db.internal.example"),
        ("AWS_REGION", "eu-west-1"),
        ("FEATURES", "search,upload"),
        ("TOOLSETS", "issues,repos,workflows"),
        ("SERVICE", "weather"),
        ("BACKEND", "redis"),
    ],
)
def test_an_ordinary_setting_is_not_a_secret(name: str, value: str) -> None:
    assert set(of_variables({name: value})) == set()


@pytest.mark.parametrize("word", ["production", "localhost", "Python", "server"])
def test_an_ordinary_word_is_shown_whatever_its_name(word: str) -> None:
    assert is_ordinary_word(word)
    transport = Stdio(["run"], env={"PASSWORD": word, "MODE": word, "OTHER": "hunter2abc"})
    assert KNOWN.hide(f"{word} hunter2abc") == f"{word} {HIDDEN}"
    del transport


@pytest.mark.req("T8")
def test_parts_of_a_value_are_secrets_too() -> None:
    variables = {
        "DATABASE_URL": "postgres://me:hunter%2F2abc@db.example/app?sslmode=on",
        "STORAGE": "AccountName=x;AccountKey=aGVsbG8gd29ybGQ=;Suffix=y",
        "CONFIG": '{"servers": [{"apiKey": "json-secret"}], "n": 1}',
        "WEBHOOK": f"https://hooks.example.com/s/{RANDOM}/x",
    }
    secrets = set(of_variables(variables))
    assert {"hunter/2abc", "aGVsbG8gd29ybGQ=", "json-secret", RANDOM} <= secrets


@pytest.mark.req("T8")
def test_variables_that_are_inherited_by_name_are_given() -> None:
    environment = {"API_KEY": "hunter2abc", "PLAIN": "blue-7-x", "OTHER_TOKEN": "other-token"}
    assert inherited(["PLAIN"], environment) == {"PLAIN": "blue-7-x"}
    assert inherited(True, environment).keys() == {"API_KEY", "OTHER_TOKEN"}
    assert inherited(False, environment) == {}


@pytest.mark.req("T8")
def test_headers_hold_tokens_passwords_and_cookies() -> None:
    basic = base64.b64encode(b"me:open sesame").decode()
    headers = {
        "Authorization": f"Basic {basic}",
        "Cookie": "sid=cookie-value; theme=dark-mode",
        "X-Thing": "some-value",
        "Accept": "application/json",
        "User-Agent": "my-program/1.0",
        "Proxy-Authorization": 'Digest username="me", response="6629fae49393a053"',
    }
    secrets = set(of_headers(headers))
    assert {basic, "open sesame", "cookie-value", "some-value", "6629fae49393a053"} <= secrets
    assert secrets.isdisjoint({"application/json", "my-program/1.0"})
    assert set(of_headers({"Authorization": "Bearer tok-123456"})) == {"tok-123456"}
    assert set(of_headers({"Authorization": "raw-token"})) == {"raw-token"}


@pytest.mark.req("T8")
@pytest.mark.parametrize(
    ("url", "secret"),
    [
        ("https://me:hunter2abc@host.example/mcp", "hunter2abc"),
        (f"https://{RANDOM}@host.example/mcp", RANDOM),
        ("https://host.example/mcp?api_key=hunter2abc", "hunter2abc"),
        ("https://host.example/mcp?key=hunter2abc&x=1", "hunter2abc"),
        (f"https://host.example/mcp?profile={RANDOM}", RANDOM),
        ("https://host.example/mcp?profile=my-Team-41ac", "my-Team-41ac"),
        (f"https://host.example/s/{RANDOM}/mcp", RANDOM),
        ("https://host.example/3f2504e0-4f89-11d3-9a0c-0305e82c3301/mcp", "3f2504e0"),
        ("https://host.example/mcp#access_token=hunter2abc", "hunter2abc"),
    ],
)
def test_a_url_holds_secrets(url: str, secret: str) -> None:
    assert any(value.startswith(secret) for value in of_url(url))
    shown = repr(Http(url))
    assert secret not in shown
    assert shown.startswith("Http('https://host.example/")


@pytest.mark.req("T8")
def test_the_ordinary_parts_of_a_url_are_shown() -> None:
    assert repr(Http("https://host.example/v1/mcp?page=2")) == (
        "Http('https://host.example/v1/mcp?page=2')"
    )
    assert list(of_url("https://host.example/my-server-2024-01-02/mcp")) == []
    assert list(of_url("https://host.example/mcp?region=eu-west-1&features=docs&v=2024.10.1")) == []
    assert list(of_url("https://[bad/")) == []


@pytest.mark.req("T8")
@pytest.mark.parametrize(
    "words",
    [
        ["run", "--api-key", "hunter2abc"],
        ["run", "--api-key=hunter2abc"],
        ["docker", "run", "-e", "API_KEY=hunter2abc", "image"],
        ["npx", "remote", "--header", "Authorization: Bearer hunter2abc"],
        ["db", "postgres://me:hunter2abc@host/db"],
    ],
)
def test_a_command_holds_secrets(words: list[str]) -> None:
    assert "hunter2abc" in set(of_command(words))
    transport = Stdio(words)
    assert "hunter2abc" not in repr(transport)
    assert words[0] in repr(transport)
    assert KNOWN.hide("it is hunter2abc") == f"it is {HIDDEN}"


def test_the_ordinary_words_of_a_command_are_shown() -> None:
    words = ["uvx", "some-server", "--port", "8080", "--verbose", "--mode=fast-one"]
    assert list(of_command(words)) == []
    assert repr(Stdio(words)) == "Stdio('uvx some-server --port 8080 --verbose --mode=fast-one')"


@pytest.mark.req("T8")
def test_credentials_are_secrets() -> None:
    assert list(of_auth(Bearer("tok-123456"))) == ["tok-123456"]
    service = ClientCredentials(client_id="me", client_secret="hunter2abc")
    assert list(of_auth(service)) == ["hunter2abc"]
    assert list(of_auth(WorkloadIdentity(client_id="me", token="/run/token"))) == []
    transport = Http("https://host.example", auth=service)
    assert KNOWN.hide("hunter2abc") == HIDDEN
    del transport


@pytest.mark.req("T8")
def test_arguments_are_secret_by_their_name_or_their_schema() -> None:
    arguments = {
        "user": "me-myself",
        "password": "hunter2abc",
        "word": "by-schema",
        "list": [{"token": {"raw": "nested-one"}}, {"pin": 918273}],
    }
    assert set(of_arguments(arguments, frozenset({"word", "pin"}))) == {
        *("hunter2abc", "by-schema", "nested-one", "918273"),
    }
    assert list(of_arguments({"tokens": 4_096_000, "token": [1234567]}, frozenset())) == []
    assert "me-myself" in set(of_arguments(arguments, None))
    deep: object = {"password": "deep-secret"}
    for _ in range(100_000):
        deep = [deep]
    assert list(of_arguments(deep, frozenset())) == ["deep-secret"]


@pytest.mark.req("T8")
def test_a_variable_in_the_command_of_a_configuration_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_THING", "hunter2abc")
    monkeypatch.setenv("SOME_MODE", "production")
    words = ["${SOME_THING}", "--mode=${SOME_MODE}", "${input:pin}", "${OTHER:-blue-7-x}"]
    inputs = [{"id": "pin", "type": "promptString", "password": True}]
    file = tmp_path / "mcp.json"
    file.write_text(
        json.dumps({"inputs": inputs, "servers": {"x": {"command": "run", "args": words}}})
    )
    client = config.load(file)["x"].connect(prompt=lambda config_input: "90210771")
    assert repr(client.transport) == f"Stdio('run {HIDDEN} --mode=production {HIDDEN} {HIDDEN}')"
    assert KNOWN.hide("no hunter2abc, 90210771") == f"no {HIDDEN}, {HIDDEN}"
