"""Hide secrets in whatever is logged, recorded, exported or shown.

    known       the secrets that this process holds, found exactly, however they are wrapped
    needles     the search for them: escapes undone, base64 at every alignment
    skeletons   letters and digits alone: a value with something between its characters
    given       which of the values that a user gives are secrets
    names       which names are those of secrets
    forms       credentials that are known by their form: keys, URLs, schemes, issuers' prefixes
    text        the values of secret names in text
    redactor    all of it, for texts and JSON values, by one policy

Nothing is imported here: transports import `known`, which is small; the rest loads when the first
error, log line or record is shown.
"""
