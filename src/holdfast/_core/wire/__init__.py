"""Bytes to messages and back. Pure: no clock, no loop, no descriptor."""
