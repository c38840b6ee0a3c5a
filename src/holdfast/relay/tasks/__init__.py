"""The tasks of hosts, within an era and between two."""
