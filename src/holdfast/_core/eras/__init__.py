"""Everything that depends on the protocol revision, behind one set of questions. Pure."""
