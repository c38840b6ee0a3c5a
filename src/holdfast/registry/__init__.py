"""What a server offers: its fingerprint, what changed in it, the lock file that holds it."""
