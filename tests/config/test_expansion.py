"""Variables in strings."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.config import ConfigEnvironment, EntrySource, ServerEntry
from holdfast.config.entry import ConfigInput, ExpansionError, InputPrompt, Variable, pieces
from holdfast.config.resolution import Resolution
from tests.rows import rows

ENVIRON = {"A": "one", "EMPTY": "", "NESTED": "${A}"}


def expander(
    *inputs: ConfigInput, environ: dict[str, str] | None = None, prompt: InputPrompt | None = None
) -> Resolution:
    around = ConfigEnvironment(start="/", environ=environ or ENVIRON, home="/home/me")
    place = EntrySource(
        file="/f", scope="user", dialect="", workspace="/w/proj", environment=around
    )
    by_id = {asked.id: asked for asked in inputs}
    return Resolution(ServerEntry(name="one", source=place, inputs=by_id), prompt)


def fault(text: str, *inputs: ConfigInput, environ: dict[str, str] | None = None) -> str:
    with pytest.raises(ExpansionError) as caught:
        expander(*inputs, environ=environ).expand(text)
    return str(caught.value)


@pytest.mark.req("F3")
@rows(
    ("text", "expanded"),
    [
        ("plain $A $ {A} 100%", "plain $A $ {A} 100%"),
        ("${A}", "one"),
        ("-${env:A}-${A}-", "-one-one-"),
        ("${A:-two}", "one"),
        ("${B:-two}", "two"),
        ("${env:B:-two}", "two"),
        ("${EMPTY:-two}", "two"),
        ("[${EMPTY}]", "[]"),
        ("${B:-}", ""),
        ("${B:-a:-b}", "a:-b"),
        ("${B:-https://x/y}", "https://x/y"),
        ("$${A}", "${A}"),
        ("${NESTED}", "${A}"),
        ("${workspaceFolder}/x", "/w/proj/x"),
        ("${workspaceFolder:-x}", "/w/proj"),
        ("${workspaceFolderBasename}", "proj"),
        ("${userHome}${/}x${pathSeparator}", "/home/me/x/"),
        ("${HOME}", "/home/me"),
        ("${CLAUDE_PROJECT_DIR:-.}", "."),
        ("${CLAUDE_PROJECT_DIR}", "/w/proj"),
    ],
)
def test_expansion(text: str, expanded: str) -> None:
    assert expander().expand(text) == expanded


def test_the_environment_s_own_home_wins() -> None:
    assert expander(environ={"HOME": "/other"}).expand("${HOME}") == "/other"


@pytest.mark.req("E2")
@rows(
    ("text", "message"),
    [
        ("${B}", "the environment variable B is not set (set it, or give a default: ${B:-…})"),
        ("${", "'${' is never closed; write '$${' for a plain '${'"),
        ("${A", "'${' is never closed; write '$${' for a plain '${'"),
        ("${B:-${A}}", "'${B:-${A}': variables cannot be nested"),
        ("${}", "'${}' is not a known variable"),
        ("${a b}", "'${a b}' is not a known variable"),
        ("${config:x}", "'${config:x}' is not a known variable"),
        ("${command:x}", "'${command:x}' is not a known variable"),
        ("${input:}", "'${input:}' is not a known variable"),
        ("${\x1b}", "'${\\x1b}' is not a known variable"),
    ],
)
def test_what_cannot_be_expanded_is_told(text: str, message: str) -> None:
    assert fault(text).startswith(message)


def test_an_input_comes_from_its_variable_first() -> None:
    asked = ConfigInput(id="api-key.2", password=True, default="d")
    assert asked.variable == "HOLDFAST_INPUT_API_KEY_2"
    environ = {"HOLDFAST_INPUT_API_KEY_2": "given"}
    found = expander(asked, environ=environ, prompt=lambda _: pytest.fail("asked"))
    assert found.expand("${input:api-key.2}") == "given"


def test_an_input_is_asked_for_once() -> None:
    asked: list[ConfigInput] = []

    def prompt(wanted: ConfigInput) -> str:
        asked.append(wanted)
        return "typed"

    secret = ConfigInput(id="key", description="The key", password=True)
    found = expander(secret, prompt=prompt)
    assert found.expand("${input:key}-${input:key}") == "typed-typed"
    assert found.expand("${input:key}") == "typed"
    assert asked == [secret]


def test_without_an_answer_the_default_counts() -> None:
    asked = ConfigInput(id="key", default="usual")
    assert expander(asked, prompt=lambda _: None).expand("${input:key}") == "usual"
    assert expander(asked).expand("${input:key}") == "usual"


@pytest.mark.req("E2")
def test_an_input_without_a_value_names_its_variable() -> None:
    wanted = "the input 'key' has no value: set HOLDFAST_INPUT_KEY"
    assert fault("${input:key}", ConfigInput(id="key")) == wanted
    assert "no input of this id is described" in fault("${input:key}")
    command = ConfigInput(id="key", type="command", default="x")
    assert fault("${input:key}", command) == wanted


def test_an_input_must_be_one_of_its_options() -> None:
    asked = ConfigInput(id="region", options=("eu", "us"))
    environ = {"HOLDFAST_INPUT_REGION": "mars"}
    assert fault("${input:region}", asked, environ=environ) == (
        "the input 'region' must be one of: eu, us"
    )


def test_variables_are_found_in_order() -> None:
    text = "${A}${input:x}${B:-c}$${D}${workspaceFolder}"
    found = [one for one in pieces(text) if isinstance(one, Variable)]
    assert [(one.name, one.kind, one.default) for one in found] == [
        ("A", "environment", None),
        ("x", "input", None),
        ("B", "environment", "c"),
        ("workspaceFolder", "place", None),
    ]


@settings(max_examples=80)
@given(st.text(alphabet="${}:-Ab env/\x00é", max_size=20), st.text(alphabet="${}A:-b", max_size=8))
def test_expansion_ends_and_looks_at_nothing_twice(text: str, value: str) -> None:
    found = expander(environ={"A": value, "b": value, "Ab": value})
    try:
        expanded = found.expand(text)
    except ExpansionError:
        return
    plain = expander(environ={"A": "!", "b": "!", "Ab": "!"})
    if value:
        assert expanded.count(value) >= plain.expand(text).count("!")
