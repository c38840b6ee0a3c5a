"""What a server offers: skills, and files that are not text."""

from __future__ import annotations

from base64 import b64decode
from hashlib import sha256

import pytest

from holdfast._core.eras.revisions import STATELESS
from holdfast._core.server.catalog import Catalog
from holdfast._core.server.server import Server
from tests.server.wire import Client, Wire

FILES: dict[str, str | bytes] = {"SKILL.md": "Look at the tide.", "map.png": b"\x89PNG"}

pytestmark = pytest.mark.req("K2")


def offering(catalog: Catalog) -> Client:
    return Client(Wire(Server("test", catalog.handlers())), STATELESS[0])


def test_a_skill_is_listed_got_and_read() -> None:
    catalog = Catalog()
    entry = catalog.add_skill("skill://tide", FILES, {"name": "tide", "description": "Tides."})
    client = offering(catalog)
    assert client.result("skills/list")["skills"] == [entry]
    assert client.result("skills/get", {"uri": "skill://tide/SKILL.md"})["skill"] == entry
    assert [one["digest"] for one in entry["resources"]] == [
        f"sha256:{sha256(data).hexdigest()}" for data in (b"Look at the tide.", b"\x89PNG")
    ]
    (text,) = client.result("resources/read", {"uri": "skill://tide/SKILL.md"})["contents"]
    (picture,) = client.result("resources/read", {"uri": "skill://tide/map.png"})["contents"]
    assert (text["text"], b64decode(picture["blob"])) == ("Look at the tide.", b"\x89PNG")
    assert client.result("resources/list")["resources"] == []


def test_an_unknown_skill_is_an_error() -> None:
    assert "no-such" in str(offering(Catalog()).error("skills/get", {"uri": "skill://no-such"}))
