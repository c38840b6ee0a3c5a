"""One tool over many rows.

outcomes    how a row ended, as a value and as a line of JSON
engine      rows to outcomes: so many calls at once, in bounded memory
rows        lines of JSON and CSV to rows
ahead       rows of what is slow to read, by a thread
resume      which rows a file of outcomes has already
"""
