"""The reference server for a graph of knowledge."""

from __future__ import annotations

import json

import pytest

from tests.interop.catalogue import MEMORY
from tests.interop.home import Heard, Home, Settle

pytestmark = pytest.mark.slow_interop

UPDATED = "notifications/resources/updated"


@pytest.fixture
def home(settle: Settle) -> Home:
    return settle(MEMORY)


@pytest.mark.req("V3", "P1", "P2")
async def test_who_watches_the_graph_hears_that_it_grows(home: Home) -> None:
    heard = Heard()
    ada = {"name": "Ada", "entityType": "person", "observations": ["wrote programs"]}
    async with home.visit() as client:
        client.on_notification(heard, UPDATED)
        (graph,) = await client.list_resources()
        await client.subscribe_resource(graph.uri)
        await client.call_tool("create_entities", {"entities": [ada]})
        await heard.until(lambda heard: heard.all)
        assert heard.of(UPDATED)[0]["uri"] == graph.uri
        found = json.loads((await client.read_resource(graph.uri)).text)
        assert ada["name"] in {entity["name"] for entity in found["entities"]}


@pytest.mark.req("V3", "T2")
async def test_what_was_learnt_is_still_known_by_the_next_one(home: Home) -> None:
    relation = {"from": "node-1", "to": "node-2", "relationType": "precedes"}
    async with home.visit() as client:
        await client.call_tool("create_relations", {"relations": [relation]})
    async with home.visit() as client:
        graph = await client.call_tool("read_graph")
        assert graph.structured["relations"] == [relation]
