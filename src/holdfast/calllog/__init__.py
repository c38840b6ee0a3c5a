"""Calls on tape: written down, read back, played again, served, compared.

calllog      two lines a call: what was asked, what came of it
  lines · results · sinks · sidecars
entries      a log read back
replay · sequence · references · rename
             the calls sent again, or a stored sequence of them sent
mock         a log as a server
  matching
compare      what differs between two logs
"""
