"""``--trace``: the messages, as they leave and arrive."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import DEMO, Cli, Configure, Seen, stdio
from tests.cli.web import Web


def messages(text: str, arrow: str) -> list[dict[str, object]]:
    """The messages that are shown to their end."""
    lines = [one for one in text.splitlines() if one.startswith(arrow) and one.endswith("}")]
    return [json.loads(one.split(maxsplit=2)[2]) for one in lines]


@pytest.mark.req("F3")
def test_each_message_is_shown_with_arrow_and_time(cli: Cli, configure: Configure) -> None:
    configure(demo=stdio(DEMO))
    for words in (["call", "demo.add"], ["call", "add"]):
        command = ["--", *DEMO] if words[1] == "add" else []
        done = cli(*words, "a=1", "b=2", "--trace", *command)
        assert done.value == {"sum": 3}
        (call,) = [one for one in messages(done.err, "→") if one["method"] == "tools/call"]
        answers = {one.get("id"): one for one in messages(done.err, "←")}
        assert "result" in answers[call["id"]]


@pytest.mark.req("F3")
@pytest.mark.parametrize("columns", [80, 120])
def test_at_a_terminal_messages_hang_below_their_arrow(seen: Seen, columns: int) -> None:
    lines = seen("call", "add", "a=1", "b=2", "--trace", "--", *DEMO, columns=columns).lines
    heads = [at for at, one in enumerate(lines) if one.startswith(("→ ", "← "))]
    assert len(heads) == 6
    for one in lines[heads[0] : heads[-1]]:
        assert one.startswith(("→ ", "← ", " " * 12))
    sent = " ".join(one.strip() for one in lines[heads[4] : heads[5]])
    assert json.loads(sent.split(maxsplit=2)[2])["method"] == "tools/call"


def test_messages_over_http_are_shown_too(cli: Cli, web: Web) -> None:
    done = cli("call", web.url, "echo", "text=hi", "--trace")
    assert done.value == {"text": "hi"}
    assert any(one.get("method") == "tools/call" for one in messages(done.err, "→"))
    assert messages(done.err, "←")


@pytest.mark.req("F3")
def test_secrets_are_not_shown(cli: Cli) -> None:
    done = cli("call", "echo", '{"text": "x", "api_key": "s3cret"}', "--trace", "--", *DEMO)
    assert "s3cret" not in done.err
