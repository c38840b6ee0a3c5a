"""The registry of MCP servers: find a server by words, and add it by its full name."""
