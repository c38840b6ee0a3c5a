"""OAuth for the HTTP transports: decided by pure conversations, carried out by one authorizer."""
