"""Load tests: recorded calls, so many at once for so long, and how they went.

stats       durations and failures, by tool and over time; bounded
run         calls again and again until the time is over
report      the result as text, and as JSON
page        the result as one page with a plot
"""
