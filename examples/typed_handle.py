"""Call tools as typed methods. First, once and after every change of the server:

holdfast codegen -o demo_tools.py -- python -m holdfast.demo.server
"""

import asyncio

import demo_tools  # type: ignore[import-not-found]


async def main() -> None:
    async with demo_tools.connect() as mcp:
        print(await mcp.add(a=1, b=2))
        print(await mcp.echo(text="hello"))


if __name__ == "__main__":
    asyncio.run(main())
