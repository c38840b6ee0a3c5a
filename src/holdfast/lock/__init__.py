"""What a server offers: its fingerprint, what changed in it, the lock file that holds it.

fingerprint   a registry in a few digits
changes       two registries compared, as a caller sees it; made of
    hints         annotations
    schemas       input and output schemas, two versions of one
        shapes        a schema in one form, however it was written
        kinds         keywords as plain data, and the kinds of values
        constraints   what is asked of a single value
        alternatives  which of several became which
        findings      what was found, and how bad it is
lockfile      the file
lock          holding a server to it
"""
