"""Ways to a server. A transport carries messages and obeys; it decides nothing."""
