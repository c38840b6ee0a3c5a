"""Runners of the server side: on asyncio (memory, stdio), or on the standard library alone."""
