"""Skills are listed with the resources, and read with every byte verified."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.shop import Shop

pytestmark = pytest.mark.req("K2")


@pytest.fixture
def shop() -> Iterator[Shop]:
    with Shop() as found:
        yield found


def test_skills_are_listed_without_reading_them(cli: Cli, shop: Shop) -> None:
    done = cli("resources", "--url", shop.url)
    assert "skill://refunds/SKILL.md" in done.out
    found = cli("resources", "--url", shop.url, "--json").value
    assert found["skills"][0]["frontmatter"]["name"] == "refunds"
    assert not [one for one in shop.peer.received if one.method == "resources/read"]


def test_a_skill_is_read_by_name_or_uri(cli: Cli, shop: Shop) -> None:
    assert "# Refunds" in cli("read", "refunds", "--url", shop.url).out
    uri = "skill://refunds/SKILL.md"
    assert cli("read", uri, "--file", "guide.md", "--url", shop.url).out == "Be kind.\n"
    assert cli("read", "skill://refunds/guide.md", "--url", shop.url).out == "Be kind.\n"
    found = cli("read", uri, "--json", "--url", shop.url).value
    assert (found["uri"], found["size"]) == (uri, 61)


def test_what_is_wrong_is_said(cli: Cli, shop: Shop) -> None:
    done = cli("read", "refund", "--url", shop.url)
    assert (done.code, "Did you mean 'refunds'?" in done.err) == (2, True)
    again = "---\nname: refunds\ndescription: x\n---\n"
    shop.peer.skill("skill://other/refunds", {"SKILL.md": again})
    done = cli("read", "refunds", "--url", shop.url)
    assert "skill://refunds/SKILL.md, skill://other/refunds/SKILL.md" in done.err
    shop.peer.resource("skill://refunds/guide.md", "Send money.\n")
    done = cli("read", "skill://refunds/SKILL.md", "--file", "guide.md", "--url", shop.url)
    assert (done.code, "has 12 bytes, not 9" in done.err) == (6, True)
    done = cli("read", "skill://refunds/guide.md", "--url", shop.url)
    assert (done.code, "has 12 bytes, not 9" in done.err) == (6, True), "verified by its URI, too"


def test_skills_are_locked_and_checked(cli: Cli, shop: Shop, tmp_path: Path) -> None:
    lock = ("--lock", str(tmp_path / "a.lock"), "--url", shop.url, "--as", "shop")
    assert "1 tool and 1 skill of shop" in cli("lock", *lock).err
    assert cli("check", *lock).out == "shop: as locked\n"
    shop.peer.skill("skill://refunds", {"SKILL.md": "---\nname: refunds\ndescription: x\n---\n"})
    done = cli("check", *lock)
    assert done.code == 6
    assert "skill" in done.out
    assert "frontmatter.description: changed" in done.out.replace('"', "")
