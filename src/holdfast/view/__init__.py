"""A page from a trace of the wire: one file that opens from disk, or live on loopback."""
