"""Call one tool of one server. Run: python examples/call_a_tool.py"""

import asyncio

import holdfast


async def main() -> None:
    async with holdfast.connect("python -m holdfast.demo.server") as client:
        for tool in await client.list_tools():
            print(tool.name)
        result = await client.call_tool("add", {"a": 2, "b": 3})
        print(result.structured)


if __name__ == "__main__":
    asyncio.run(main())
