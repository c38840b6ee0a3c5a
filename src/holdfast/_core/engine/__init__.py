"""The pure core: calls, reports and time go in; commands and outcomes come out."""
