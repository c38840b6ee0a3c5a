"""The call log: calls written down, read back, sent again, served and compared.

log          two lines a call: what was asked, what came of it
  lines · results · sinks · sidecars
entries      a log read back
replay       the calls of a log, or of a stored sequence, sent again
mock         a log as a server
  matching
compare      what differs between two logs
"""
