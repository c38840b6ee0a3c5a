"""JSON Schema: validation, its cost, faults in words, types, comparison. Pure."""
