"""Watching calls: the audit log, OpenTelemetry."""
