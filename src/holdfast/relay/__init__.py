"""The relay: a client's server, served to a host as if there were nothing between them."""
