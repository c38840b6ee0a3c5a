"""The straight line of one call, from the verb to the wire and back."""
