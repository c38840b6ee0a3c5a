"""read, prompt, complete."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import DEMO, Cli, Configure, stdio


@pytest.mark.req("F3")
def test_a_resource_is_read_as_it_is(cli: Cli) -> None:
    done = cli("read", "demo://tides", "--", *DEMO)
    assert done.out == "The tide comes in, the tide goes out,\nthe weed holds on to the stone.\n"
    found = cli("read", "demo://tides", "--json", "--", *DEMO).value
    assert found["contents"][0]["uri"] == "demo://tides"


@pytest.mark.req("F3")
def test_a_prompt_is_filled_in(cli: Cli) -> None:
    done = cli("prompt", "greeting", "name=Bo", "style=pirate", "--", *DEMO)
    assert done.out == "Greet Bo the way a pirate would.\n"
    words = ["prompt", "greeting", "name=a=b", "--json", "--", *DEMO]
    assert "a=b" in cli(*words).value["messages"][0]["content"]["text"]


@pytest.mark.req("F3")
def test_an_argument_is_completed(cli: Cli) -> None:
    greeting = ["prompt", "greeting", "name=Bo", "--suggest"]
    assert cli(*greeting, "style=p", "--", *DEMO).out == "pirate\npoem\n"
    assert cli(*greeting, "style", "--", *DEMO).out.count("\n") == 4
    found = cli(*greeting, "style=p", "--json", "--", *DEMO).value
    assert found["completion"]["values"] == ["pirate", "poem"]
    words = ["--suggest", "name=x", "--with", "a=b", "--", *DEMO]
    template = ["read", "demo://note/{name}", *words]
    assert (cli(*template).code, cli(*template).out) == (0, "")


@pytest.mark.req("F3")
def test_a_prompt_is_named_as_everywhere_else(cli: Cli, configure: Configure) -> None:
    configure(**{"my.demo": stdio(DEMO)})
    assert cli("prompt", "my.demo.greeting", "--suggest", "style=p").out == "pirate\npoem\n"
    assert cli("prompt", "my.demo", "greeting", "--suggest", "style=p").out == "pirate\npoem\n"
    assert cli("prompt", "my.demo.greeting", "name=Bo").code == 0
    assert cli("prompt", "my.demo", "greeting", "name=Bo").code == 0


@pytest.mark.req("E2")
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["read", "demo://nope"], 1, "resource not found"),
        (["read"], 2, "Missing: URI."),
        (["prompt"], 2, "Missing argument 'PROMPT'"),
        (["prompt", "nope"], 2, "There is no prompt 'nope'. There are: "),
        (["prompt", "greting"], 2, "There is no prompt 'greting'. Did you mean 'greeting'?"),
        (["prompt", "greeting", "nam=Bo"], 2, "no argument 'nam'. Did you mean 'name'?"),
        (["read", "demo://tide"], 1, "Did you mean 'demo://tides'?"),
        (["prompt", "greeting"], 1, "argument 'name' is missing"),
        (["prompt", "greeting", "name"], 2, "'name' is no argument: write name=value"),
        (["prompt", "greeting", "--nam", "Bo"], 2, "did you mean '--name'?"),
        (["prompt", "greeting", "--suggest"], 2, "Option '--suggest' requires an argument"),
        (["read", "demo://x", "--suggest", "y", "--with", "x"], 2, "'x': must be NAME=VALUE"),
        (["read", "nope"], 2, "There is no skill 'nope'. There are: tide-watch"),
    ],
)
def test_what_cannot_be_read_is_told(cli: Cli, words: list[str], code: int, said: str) -> None:
    done = cli(*words, "--", *DEMO)
    assert (done.code, done.out) == (code, "")
    assert said in done.err


@pytest.mark.req("F3")
@pytest.mark.parametrize(
    "words",
    [
        ["name=5", "style=pirate"],
        ["--name", "5", "--style=pirate"],
        ['{"name": 5, "style": "pirate"}'],
        ['{"name": "x", "style": "pirate"}', "name=5"],
        ["name:=5", "style=@style.txt"],
        ["-"],
    ],
)
def test_arguments_of_a_prompt_are_given_as_to_a_tool_and_are_texts(
    cli: Cli, words: list[str]
) -> None:
    Path("style.txt").write_text("pirate")
    stdin = '{"name": "5", "style": "pirate"}'
    done = cli("prompt", "greeting", *words, "--", *DEMO, stdin=stdin)
    assert (done.out, done.err) == ("Greet 5 the way a pirate would.\n", "")
