"""A trace of the wire: every message and event of a client, as lines of JSON in a file."""
