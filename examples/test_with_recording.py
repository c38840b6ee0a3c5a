"""A test that records its server once and replays it ever after.

Run: pytest examples/test_with_recording.py --mcp-record recordings, then --mcp-replay recordings.
"""

from holdfast.testing import ClientFactory


async def test_a_sum(mcp_client: ClientFactory) -> None:
    client = mcp_client("python -m holdfast.demo.server")
    result = await client.call_tool("add", {"a": 2, "b": 3})
    assert result.structured == {"sum": 5}
