"""Where engine, transport, clock and tasks meet."""
