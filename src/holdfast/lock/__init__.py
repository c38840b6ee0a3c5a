"""A server's tools: their fingerprint, what changed in them, and the lock file.

fingerprint   a registry in a few digits
changes       two registries compared, as a caller sees it
lockfile      reading and writing the lock file
guard         `Lock`: refuse a server that differs from it
commands      command lines that lead to a server
"""
