"""A trace as a HAR archive, against the schema that others publish for the format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from holdfast.trace.format import Reading
from holdfast.view.exports import FORMS, Recording
from tests.interop.install import NotHere, install
from tests.view.hostile import hostile_trace
from tests.view.sample import bad_day

pytestmark = [pytest.mark.req("W4"), pytest.mark.hang(600)]

PIN = "har-schema@2.0.0"


@pytest.fixture(scope="module")
def published() -> jsonschema_rs.Validator:
    """The schema, its files put together; what it says of formats counts too."""
    try:
        folder = install("npm", "har", [PIN]) / "node_modules" / "har-schema" / "lib"
    except NotHere as reason:
        pytest.skip(str(reason))
    parts = {path.stem: within(json.loads(path.read_text())) for path in folder.glob("*.json")}
    schema = {
        "$schema": "http://json-schema.org/draft-06/schema#",
        "$ref": "#/definitions/har",
        "definitions": parts,
    }
    return jsonschema_rs.validator_for(schema, validate_formats=True)


def within(schema: Any) -> Any:
    """Return the schema of a file with references to the others of one document."""
    if isinstance(schema, list):
        return [within(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {key: within(value) for key, value in schema.items() if key not in ("$id", "$schema")}
    if isinstance(reference := inner.get("$ref"), str):
        inner["$ref"] = f"#/definitions/{Path(reference.rstrip('#')).stem}"
    return inner


def archive(text: str) -> Any:
    reading = Reading("run.jsonl")
    source = Recording(reading, reading.lines(text.encode().splitlines(keepends=True)))
    return json.loads(json.dumps(FORMS["har"](source)))


@pytest.mark.parametrize("make", [lambda: bad_day(30), hostile_trace], ids=["bad day", "hostile"])
def test_an_archive_fits_the_schema(published: jsonschema_rs.Validator, make: Any) -> None:
    errors = published.iter_errors(archive(make()))
    assert not [f"{error.instance_path}: {error.message[:200]}" for error in errors][:5]


@pytest.mark.parametrize(("field", "value"), [("startedDateTime", "today"), ("request", {})])
def test_the_schema_refuses_what_is_not_of_the_format(
    published: jsonschema_rs.Validator, field: str, value: Any
) -> None:
    document = archive(bad_day(5))
    document["log"]["entries"][0][field] = value
    assert not published.is_valid(document)
