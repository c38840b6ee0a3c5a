"""``holdfast doctor``: every symptom has its finding, and its advice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import errors
from holdfast.cli.output import Output
from holdfast.cli.target import ServerTarget
from holdfast.cli.verbs import doctor
from holdfast.cli.verbs.doctor import advice, missing_variable
from holdfast.events import ProtocolViolation
from tests.cli.conftest import DEMO, Cli, Configure, Open, Seen, stdio
from tests.cli.rig import puppet
from tests.cli.web import Web
from tests.rows import rows


def examined(cli: Cli, *words: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """The exit code, and the findings by their steps."""
    done = cli("doctor", "--json", *words)
    findings = {one["step"]: one for one in done.value["findings"]}
    assert done.value["healthy"] is (done.code == 0)
    assert all(one["verdict"] != "bad" for one in findings.values()) is (done.code == 0)
    if done.code:
        assert done.error["kind"] == "doctor"
    return done.code, findings


@pytest.mark.req("F3")
def test_a_healthy_server_is_well(cli: Cli) -> None:
    code, found = examined(cli, "--env", "MY_TOKEN=s3cret", "--", *DEMO)
    assert code == 0
    assert {one["verdict"] for one in found.values()} == {"ok", "note"}
    assert found["command"]["text"].endswith(f"is {DEMO[0]}")
    assert "MY_TOKEN=[redacted]" in found["environment"]["text"]
    assert "HOME=" in found["environment"]["text"]
    assert "s3cret" not in str(found)
    assert "answered after" in found["start"]["text"]
    assert found["greeting"]["text"] == "holdfast-demo 1.0.0, protocol 2026-07-28"
    offered = "completions, extensions, logging, prompts, resources, tasks, tools"
    assert found["capabilities"]["text"] == offered
    assert found["tools"]["text"] == "12 listed"
    assert found["output"]["verdict"] == "ok"
    assert found["ending"]["text"] == "ended by itself at the end of its input"
    assert found["stateless"]["text"] == "speaks 2026-07-28"
    assert found["handshake"]["text"] == "speaks 2025-11-25"


def test_a_server_of_one_era_is_well_too(cli: Cli) -> None:
    code, found = examined(cli, "--", *puppet())
    assert code == 0
    assert found["stateless"]["verdict"] == "note"
    assert found["stateless"]["text"] == "does not speak 2026-07-28"
    assert found["handshake"]["text"] == "speaks 2025-11-25"
    code, found = examined(cli, "--", *DEMO, "--eras", "stateless")
    assert (code, found["handshake"]["text"]) == (0, "does not speak 2025-11-25")


def test_a_server_without_tools_is_well_too(cli: Cli) -> None:
    code, found = examined(cli, "--", *puppet(tools=None))
    assert code == 0
    assert found["capabilities"]["text"] == "none declared"
    assert found["tools"]["text"] == "it has no tools"


@pytest.mark.req("F3", "E2")
def test_a_command_that_is_not_there(cli: Cli) -> None:
    code, found = examined(cli, "--", "no-such-command")
    assert code == 3
    assert "command not found: 'no-such-command'" in found["failure"]["text"]
    assert "check the spelling" in found["failure"]["advice"]
    assert "command" not in found


@pytest.mark.req("F3", "E2")
def test_a_missing_variable(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    command = puppet(stderr="Error: SOME_API_KEY is required", exit=1)
    code, found = examined(cli, "--", *command)
    assert code == 3
    assert "SOME_API_KEY is required" in found["failure"]["text"]
    assert "--env SOME_API_KEY=…" in found["failure"]["advice"]
    monkeypatch.setenv("SOME_API_KEY", "x")
    _, found = examined(cli, "--", *command)
    assert "is set here and not passed on: --env SOME_API_KEY" in found["failure"]["advice"]


def test_a_variable_that_the_configuration_misses(cli: Cli, configure: Configure) -> None:
    configure(x=stdio(["x"], env={"A": "${UNSET_ONE}"}))
    code, found = examined(cli, "x")
    assert code == 2
    assert "UNSET_ONE" in found["failure"]["text"]


@pytest.mark.req("F3")
def test_words_on_stdout_that_are_no_messages(cli: Cli) -> None:
    code, found = examined(cli, "--", *puppet(banner="Server is running!"))
    assert code == 0
    assert found["output"]["verdict"] == "warn"
    assert "Server is running!" in found["output"]["text"]
    assert "send its logs to stderr" in found["output"]["advice"]


def test_words_on_stdout_are_told_of_a_server_that_never_answers(cli: Cli) -> None:
    command = ["sh", "-c", "echo usage: this; while read line; do :; done"]
    code, found = examined(cli, "--timeout", "1", "--", *command)
    assert code == 4
    assert "usage: this" in found["output"]["text"]
    assert "did not answer the handshake within 1 s" in found["failure"]["text"]


@pytest.mark.req("F3")
def test_a_slow_start(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "SLOW_START", 0.0)
    code, found = examined(cli, "--", *puppet())
    assert code == 0
    assert found["start"]["verdict"] == "warn"
    assert "which is slow" in found["start"]["text"]
    assert "let it load less" in found["start"]["advice"]
    assert found["transport"]["text"].startswith("stdio")


def examination() -> doctor.Examination:
    return doctor.Examination(ServerTarget(Output("json")))


def test_advice_about_a_slow_start_fits_the_command() -> None:
    def advice(*command: str) -> str:
        found = examination()
        found._introduced(holdfast.connect(command), 9.0)
        return next(one["advice"] for one in found.findings if one["step"] == "start")

    assert "install it beforehand" in advice("npx", "-y", "thing")
    assert "install" not in advice("/usr/bin/thing")


@pytest.mark.req("F3")
def test_a_schema_that_cannot_be_used(cli: Cli) -> None:
    bad = {"name": "bad", "description": "x", "inputSchema": {"type": "object", "properties": 5}}
    done = cli("doctor", "--json", "--", *puppet(tools=[bad, {**bad, "name": "worse"}]))
    schemas = [one for one in done.value["findings"] if one["step"] == "schemas"]
    assert done.code == 3
    assert [one["text"].partition(":")[0] for one in schemas] == ["bad", "worse"]
    assert all("the input schema cannot be used" in one["text"] for one in schemas)
    bare = {"name": "bare", "inputSchema": {"type": "object"}}
    code, found = examined(cli, "--", *puppet(tools=[bare]))
    assert (code, found["schemas"]["verdict"]) == (0, "warn")


@pytest.mark.req("F3")
def test_the_end_of_stderr_is_shown(cli: Cli) -> None:
    lines = "\n".join(f"line {number}" for number in range(30))
    _, found = examined(cli, "--", *puppet(stderr=lines))
    assert found["stderr"]["text"].startswith("30 line(s); the last of them:\nline 20\n")


@pytest.mark.req("F3")
@pytest.mark.parametrize(
    ("deaf", "text"),
    [(["eof"], "needed SIGTERM after its input ended"), (["eof", "SIGTERM"], "had to be killed")],
)
def test_a_server_that_does_not_end_by_itself(
    cli: Cli, configure: Configure, deaf: list[str], text: str
) -> None:
    configure(x=stdio(puppet(deaf=deaf), holdfast={"grace": 0.05}))
    code, found = examined(cli, "x")
    assert code == 0
    assert found["ending"]["verdict"] == "warn"
    assert text in found["ending"]["text"]


@pytest.mark.req("F3")
def test_a_url(cli: Cli, web: Web) -> None:
    code, found = examined(cli, "--url", f"{web.url}?token=s3cret")
    assert code == 0
    assert found["address"]["text"] == f"{web.url}?token=[redacted]"
    assert found["greeting"]["text"].startswith("web 1, protocol ")
    assert found["transport"]["text"] == "Streamable HTTP"
    web.refuse = 401
    code, found = examined(cli, "--url", web.url)
    assert code == 5
    assert "--header 'Authorization: Bearer …'" in found["failure"]["advice"]
    code, found = examined(cli, "--url", "http://127.0.0.1:1/mcp")
    assert (code, "nothing listens there" in found["failure"]["advice"]) == (3, True)
    assert found["transport"]["text"] == "HTTP"


def test_secrets_among_the_arguments_are_not_shown(cli: Cli) -> None:
    command = [*puppet(), "--token", "s3cret", "--api-key=s3cret"]
    done = cli("doctor", "--", *command)
    assert "--api-key=[redacted]" in done.out
    assert "s3cret" not in done.out


# How it looks


def test_a_program_gets_plain_lines(cli: Cli) -> None:
    done = cli("doctor", "--", *puppet(banner="hi"))
    lines = done.out.splitlines()
    assert lines[:2] == ["It works, with 1 thing worth a look.", ""]
    assert lines[2].startswith("· transport    stdio")
    assert lines[3].startswith("✓ command      python -I -S ")
    assert "! output       what it should not send:" in lines
    assert "               → a stdio server must write only messages to stdout: " in done.out
    first, advice = cli("doctor", "--", "no-such-command").out.splitlines()[:2]
    assert first == "It does not work: no-such-command: command not found: 'no-such-command'"
    assert advice.startswith("→ check the spelling")


@pytest.mark.req("N3")
def test_the_environment_is_folded_to_the_names_that_differ(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AAA_MINE_ALONE", "x")
    words = ["doctor", "--env", "ITS_TOKEN=s3cret", "--env", "LANG=xx", "--", *puppet()]
    folded = cli(*words).out
    assert "set for it: ITS_TOKEN\n" in folded
    assert "different: LANG\n" in folded
    assert "AAA_MINE_ALONE" in folded.partition("not passed on: ")[2]
    assert "HOME=" not in folded
    shown = cli(words[0], "-v", *words[1:]).out
    assert "ITS_TOKEN=[redacted]" in shown
    assert "HOME=" in shown
    assert "s3cret" not in folded + shown
    assert cli("doctor").code == 2, "for all servers there is status"


@pytest.mark.req("F3")
def test_it_fits_a_narrow_window(seen: Seen) -> None:
    screen = seen("doctor", "--", *puppet(banner="hi", stderr="x" * 100), columns=40)
    assert all(len(line) <= 40 for line in screen.lines)
    assert "green" in screen.colours
    at = screen.lines.index("! output       what it should not send:")
    assert screen.lines[at + 1 : at + 3] == [
        "               not JSON: hi",
        "               → a stdio server must",
    ]


def test_it_can_be_interrupted(terminal: Open, tmp_path: Path) -> None:
    one = terminal("doctor", "--", "sh", "-c", "while read line; do :; done")
    one.expect("environment")
    one.send("\x03")
    assert one.end() == 130


@pytest.mark.req("F3")
def test_an_answer_to_our_own_question_is_not_blamed(cli: Cli) -> None:
    answer = '{"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": "what?"}}'
    code, found = examined(cli, "--", *puppet(banner=answer, stderr="unknown method"))
    assert (code, found["output"]["verdict"]) == (0, "ok")
    assert "no fault" in found["stderr"]["advice"]


def test_words_on_http_have_no_advice_about_stdout() -> None:
    violation = ProtocolViolation(client="x", reason="not JSON", detail="hi", count=1)
    for target, is_told in (["x"], True), ("http://127.0.0.1:1", False):
        found = examination()
        found._violations.append(violation)
        found._pollution(holdfast.connect(target))
        assert ("stdout" in found.findings[0]["advice"]) is is_told


@pytest.mark.req("N3", "F3")
def test_findings_hang_below_their_step(seen: Seen) -> None:
    said = "cannot reach the daemon that should be listening at unix:///var/run/thing.sock"
    lines = seen("doctor", "--", *puppet(exit=3, stderr=said)).lines
    margin = " " * 15
    start = next(n for n, line in enumerate(lines) if line.lstrip().startswith(said[:20]))
    assert lines[start : start + 2] == [
        f"{margin}    cannot reach the daemon that should be listening at",
        f"{margin}      unix:///var/run/thing.sock",
    ]


# What to do about a failure


@rows(
    ("text", "variable"),
    [
        ("KeyError: 'GITHUB_TOKEN'", "GITHUB_TOKEN"),
        ("Error: BRAVE_API_KEY environment variable is required", "BRAVE_API_KEY"),
        ("Please set SLACK_BOT_TOKEN and SLACK_TEAM_ID", "SLACK_BOT_TOKEN"),
        ("missing required variable: DATABASE_URL", "DATABASE_URL"),
        ("TOKEN not set", "TOKEN"),
        ("the index was not set", None),
        ("KeyError: 'name'", None),
        ("", None),
    ],
)
def test_a_missing_variable_is_found_in_what_the_server_says(
    text: str, variable: str | None
) -> None:
    assert missing_variable(text) == variable


@rows(
    ("error", "words"),
    [
        (errors.TransportError("command not found: 'x'"), "check the spelling"),
        (errors.TransportError("x: Permission denied"), "chmod +x"),
        (errors.TransportError("cannot start 'x': it is not executable"), "chmod +x"),
        (errors.TransportError("cannot start 'x': it is a directory"), "the program in it"),
        (errors.TransportError("it answered with HTTP status 404: Not Found"), "/mcp"),
        (errors.TransportError("x answered with text/html, not JSON: <html>"), "another path"),
        (errors.TransportError("x gave no answer in its response"), "another path"),
        (errors.TransportError("x answered with HTTP status 502: Bad"), "see its log"),
        (errors.RpcError("it answered initialize: method not found", code=-32601), "speak MCP"),
        (errors.TransportError("x", stderr_tail="No module named 'y'"), "not installed"),
        (errors.TransportError("x", stderr_tail="Error: Cannot find module 'y'"), "npm install"),
        (errors.TransportError("x", stderr_tail="listen EADDRINUSE"), "another process"),
        (
            errors.TransportError("x", stderr_tail="npm error 404 Not Found - GET y"),
            "npm could not",
        ),
        (errors.TransportError("Connection refused"), "nothing listens there"),
        (errors.TransportError("x", stderr_tail="A_KEY is required"), "--env A_KEY=…"),
        (errors.TransportError("x", stderr_tail="HERE_TOKEN not set"), "--env HERE_TOKEN"),
        (errors.TransportError("exited", exit_code=1), "start the command by hand"),
        (errors.HandshakeTimeout("no answer"), "--timeout"),
        (errors.AuthError("401"), "--header 'Authorization"),
        (errors.ValidationError("command not found"), ""),
        (errors.TrustError("not trusted"), ""),
        (errors.ProtocolError("nonsense"), ""),
    ],
)
def test_an_error_comes_with_what_to_try(error: errors.HoldfastError, words: str) -> None:
    found = advice(error, {"HERE_TOKEN": "x"})
    assert words in found
    assert bool(words) == bool(found)
