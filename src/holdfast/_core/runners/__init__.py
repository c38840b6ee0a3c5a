"""Where the server side runs: on asyncio (memory, stdio), or on the standard library alone."""
