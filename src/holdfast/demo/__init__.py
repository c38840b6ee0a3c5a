"""A server to try clients against, and a story that uses it.

`python -m holdfast.demo` (or ``holdfast demo``) runs the story: a client at work while its server
is killed. `python -m holdfast.demo.server` is the server alone, over stdio, in both eras.
"""
