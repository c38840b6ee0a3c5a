"""Use several servers at once; one that cannot start fails alone."""

import asyncio

from holdfast import Servers


async def main() -> None:
    commands = {
        "demo": "python -m holdfast.demo.server",
        "second": "python -m holdfast.demo.server",
        "broken": "no-such-program",
    }
    async with Servers(commands) as servers:
        tools = await servers.list_tools()
        print(len(tools), "tools")
        for failure in tools.failures:
            print(failure.server, "failed")
        print((await servers.call_tool("second.add", {"a": 1, "b": 2})).text)


if __name__ == "__main__":
    asyncio.run(main())
