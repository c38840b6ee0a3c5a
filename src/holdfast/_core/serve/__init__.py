"""The server side on asyncio: in memory, over stdio and over Streamable HTTP."""
