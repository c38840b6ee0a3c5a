"""The ledger: each key runs at most once, over crashes, processes and machines.

record      one record, its states and what may follow each             pure
rules       what a call with a key may do, given the record             pure
owner       who works on records in this process, and whether it lives
ledger      Ledger: claim, sent, settle, get, forget
"""
