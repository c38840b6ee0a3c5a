"""The types against the protocol's own schemas, definition by definition, in every revision."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast import types as t
from holdfast.types.base import Wire, decoder, wire_names
from tests.types.samples import Schemas, fields_of, samples
from tests.types.table import (
    OURS,
    ROWS,
    SINCE,
    WORDS,
    Asks,
    Code,
    Enum,
    Fails,
    Page,
    Plain,
    Struct,
    Union,
)

DATA = Path(__file__).parent / "data"
REVISIONS: dict[str, Schemas] = {
    path.stem: json.loads(path.read_text()) for path in sorted(DATA.glob("*.json"))
}
CASES = [(revision, name) for revision, found in REVISIONS.items() for name in found]

each_definition = pytest.mark.parametrize(("revision", "name"), CASES)


def of_kind(*kinds: type) -> pytest.MarkDecorator:
    cases = [(r, n) for r, n in CASES if isinstance(ROWS.get(n), kinds)]
    return pytest.mark.parametrize(("revision", "name"), cases)


def again(value: Any) -> Any:
    """What we would send for ``value``, as JSON."""
    return json.loads(t.encode(value))


def test_all_five_revisions_are_here() -> None:
    assert len(REVISIONS) == 5


def test_every_definition_has_a_row_and_every_row_a_definition() -> None:
    assert {name for _, name in CASES} == set(ROWS)


# Names and requirements


def obligations() -> Iterator[tuple[str, type[Wire], Any, Schemas]]:
    """Each type with each schema that it has to hold."""
    for revision, name in CASES:
        schemas, row = REVISIONS[revision], ROWS[name]
        if isinstance(row, Struct) and "any" not in (schemas[name] or ()):
            yield f"{revision} {name}", row.type, schemas[name], schemas
        elif isinstance(row, Asks) and row.read is None:
            params = fields_of(schemas[name], schemas).get("params")
            if params is not None:
                yield f"{revision} {name}.params", row.params, params[1], schemas
        elif isinstance(row, Fails) and row.data is not None:
            error = fields_of(schemas[name], schemas)["error"][1]
            data = fields_of(error, schemas)["data"][1]
            yield f"{revision} {name}.data", row.data, data, schemas


def nested(
    where: str, kind: type[Wire], schema: Any, schemas: Schemas
) -> Iterator[tuple[str, type[Wire], Any, Schemas]]:
    """The same for objects written out inside others."""
    yield where, kind, schema, schemas
    found = fields_of(schema, schemas)
    for info in msgspec.structs.fields(kind):
        inner = found.get(info.encode_name, (False, None))[1]
        for part in structs_in(info.type):
            if isinstance(inner, dict) and "fields" in inner:
                yield from nested(f"{where}.{info.encode_name}", part, inner, schemas)


def structs_in(kind: Any) -> list[type[Wire]]:
    if isinstance(kind, type) and issubclass(kind, Wire):
        return [kind]
    return [found for part in getattr(kind, "__args__", ()) for found in structs_in(part)]


OBLIGATIONS = [found for case in obligations() for found in nested(*case)]
each_obligation = pytest.mark.parametrize(
    ("kind", "schema", "schemas"),
    [case[1:] for case in OBLIGATIONS],
    ids=[case[0] for case in OBLIGATIONS],
)


@each_obligation
def test_every_property_has_a_field(kind: type[Wire], schema: Any, schemas: Schemas) -> None:
    assert set(fields_of(schema, schemas)) <= wire_names(kind)


@each_obligation
def test_what_may_be_absent_is_not_required(
    kind: type[Wire], schema: Any, schemas: Schemas
) -> None:
    must = {name for name, (required, _) in fields_of(schema, schemas).items() if required}
    required = {info.encode_name for info in msgspec.structs.fields(kind) if info.required}
    assert required <= must


@each_obligation
def test_what_is_required_is_always_sent(kind: type[Wire], schema: Any, schemas: Schemas) -> None:
    infos = {info.encode_name: info for info in msgspec.structs.fields(kind)}
    for name, (required, _) in fields_of(schema, schemas).items():
        if not required or name not in infos or {name, f"{kind.__name__}.{name}"} & SINCE.keys():
            continue
        info = infos[name]
        assert info.required or info.default_factory is not msgspec.NODEFAULT, name


def test_no_type_has_a_field_that_no_revision_has() -> None:
    known: dict[type[Wire], set[str]] = {}
    for _, kind, schema, schemas in OBLIGATIONS:
        known.setdefault(kind, set()).update(fields_of(schema, schemas))
    # Parameters that only newer revisions name, and `_meta`, which their bases have.
    for kind, names in known.items():
        assert wire_names(kind) - names <= {"_meta"}, kind


def test_every_type_stands_for_something() -> None:
    used = {kind for _, kind, _, _ in OBLIGATIONS}
    used |= {row.params for row in ROWS.values() if isinstance(row, Asks)}
    held = {part for k in used for i in msgspec.structs.fields(k) for part in structs_in(i.type)}
    public = {getattr(t, name) for name in t.__all__}
    types = {kind for kind in public if isinstance(kind, type) and issubclass(kind, Wire)}
    assert types - used - held - set(OURS) == set()


# Reading and sending again


@of_kind(Struct)
def test_what_is_read_can_be_sent_again_unchanged(revision: str, name: str) -> None:
    row, schemas = ROWS[name], REVISIONS[revision]
    assert isinstance(row, Struct)
    for sample in samples(schemas[name], schemas):
        raw = json.dumps(sample).encode()
        found = row.read(raw) if row.read else t.decode(raw, row.type)
        assert again(found) == sample
        assert found.raw == sample


@of_kind(Struct)
def test_what_fits_is_read_in_one_pass(revision: str, name: str) -> None:
    row, schemas = ROWS[name], REVISIONS[revision]
    assert isinstance(row, Struct)
    for sample in samples(schemas[name], schemas):
        if row.read is None:
            decoder(row.type).decode(json.dumps(sample).encode())


@of_kind(Struct)
def test_fields_from_the_future_survive_beside_the_known_ones(revision: str, name: str) -> None:
    row, schemas = ROWS[name], REVISIONS[revision]
    assert isinstance(row, Struct)
    for sample in samples(schemas[name], schemas):
        raw = json.dumps({**sample, "fromTheFuture": [1]}).encode()
        found = row.read(raw) if row.read else t.decode(raw, row.type)
        assert found.extra.keys() - sample.keys() == {"fromTheFuture"}
        assert again(found) == sample


@of_kind(Asks)
def test_a_request_has_its_method_and_its_parameters(revision: str, name: str) -> None:
    row, schemas = ROWS[name], REVISIONS[revision]
    assert isinstance(row, Asks)
    assert fields_of(schemas[name], schemas)["method"][1] == {"const": row.method}
    for sample in samples(schemas[name], schemas):
        if "params" not in sample:
            continue
        raw = json.dumps(sample["params"]).encode()
        found = row.read(raw) if row.read else t.decode(raw, row.params)
        # An older revision's parameters without fields of their own may hold anything.
        assert {**found.extra, **again(found)} == sample["params"]


@of_kind(Asks)
def test_a_request_is_sent_as_a_message(revision: str, name: str) -> None:
    schemas = REVISIONS[revision]
    for sample in samples(schemas[name], schemas):
        news = name.endswith("Notification")
        whole = {"jsonrpc": "2.0", **({} if news else {"id": 7}), **sample}
        kind: type[Wire] = t.Notification if news else t.Request
        assert again(t.decode(json.dumps(whole).encode(), kind)) == whole


@of_kind(Page)
def test_a_page_keeps_everything(revision: str, name: str) -> None:
    row, schemas = ROWS[name], REVISIONS[revision]
    assert isinstance(row, Page)
    for sample in samples(schemas[name], schemas):
        page = t.decode_page(json.dumps(sample).encode(), row.item, row.key)
        told = {
            row.key: again(page.items),
            "nextCursor": page.next_cursor,
            "ttlMs": page.ttl_ms,
            "cacheScope": page.cache_scope,
            "resultType": page.result_type,
            "_meta": page.meta,
        }
        assert {key: value for key, value in told.items() if value is not None} == sample
        assert page.faults == ()


@of_kind(Fails)
def test_an_error_response_has_its_code_and_data(revision: str, name: str) -> None:
    row, schemas = ROWS[name], REVISIONS[revision]
    assert isinstance(row, Fails)
    for sample in samples(schemas[name], schemas):
        found = t.decode(json.dumps(sample).encode(), t.ErrorResponse)
        assert again(found) == sample
        assert found.error.code == row.code
        if row.data is not None:
            data = json.dumps(found.error.data).encode()
            assert again(t.decode(data, row.data)) == found.error.data


@of_kind(Code)
def test_an_error_object_has_its_code(revision: str, name: str) -> None:
    row, schemas = ROWS[name], REVISIONS[revision]
    assert isinstance(row, Code)
    for sample in samples(schemas[name], schemas):
        found = t.decode(json.dumps(sample).encode(), t.RpcErrorObject)
        assert again(found) == sample
        assert found.code == row.code


# Words


@of_kind(Enum)
def test_the_words_are_the_protocol_s(revision: str, name: str) -> None:
    row = ROWS[name]
    assert isinstance(row, Enum)
    assert set(REVISIONS[revision][name]["enum"]) == set(row.words)


@each_definition
def test_the_words_listed_in_place_are_the_protocol_s(revision: str, name: str) -> None:
    for field, words in enums(REVISIONS[revision][name], name):
        if field != name:
            assert set(words) == set(WORDS[field]), field


def enums(schema: Any, field: str) -> Iterator[tuple[str, list[str]]]:
    if isinstance(schema, list):
        yield from enums(schema[0], field)
    elif isinstance(schema, dict):
        if "enum" in schema and isinstance(schema["enum"], list):
            yield field, schema["enum"]
        for part in (*schema.get("any", ()), *schema.get("all", ())):
            yield from enums(part, field)
        for name, part in schema.get("fields", {}).items():
            yield from enums(part, name.rstrip("?"))


@of_kind(Struct)
def test_words_from_the_future_are_read_as_they_come(revision: str, name: str) -> None:
    row, schemas = ROWS[name], REVISIONS[revision]
    assert isinstance(row, Struct)
    words = {key: part for key, (_, part) in fields_of(schemas[name], schemas).items()}
    named = ("#Role", "#LoggingLevel", "#TaskStatus")
    loose = [key for key, part in words.items() if part in named or "enum" in (part or ())]
    for sample in samples(schemas[name], schemas):
        strange = {**sample, **{key: "unheard of" for key in loose if key in sample}}
        raw = json.dumps(strange).encode()
        assert again(t.decode(raw, row.type) if row.read is None else row.read(raw)) == strange


# Choices


@of_kind(Union)
def test_every_member_of_a_choice_has_a_row_of_its_own(revision: str, name: str) -> None:
    schema = REVISIONS[revision][name]
    members = schema.get("any", []) if isinstance(schema, dict) else [schema]
    for member in members:
        assert not isinstance(ROWS[member[1:]], Plain) or member == "#GetTaskPayloadResult"


@pytest.mark.parametrize("name", ["PrimitiveSchemaDefinition", "ElicitRequestParams"])
def test_a_choice_without_a_tag_is_read_as_the_right_member(name: str) -> None:
    for schemas in REVISIONS.values():
        for member in schemas.get(name, {"any": []})["any"]:
            row = ROWS[member[1:]]
            assert isinstance(row, Struct)
            for sample in samples(member, schemas):
                raw = json.dumps(sample).encode()
                found = (
                    t.read_field(sample)
                    if name.startswith("Primitive")
                    else t.read_elicitation(raw)
                )
                assert type(found) is row.type
                assert again(found) == sample


@pytest.mark.parametrize(
    ("name", "kind"),
    [("ContentBlock", t.ToolResult), ("SamplingMessageContentBlock", t.SamplingMessage)],
)
def test_a_content_is_read_as_the_right_member(name: str, kind: type[Wire]) -> None:
    for schemas in REVISIONS.values():
        for member in schemas.get(name, {"any": []})["any"]:
            row = ROWS[member[1:]]
            assert isinstance(row, Struct)
            for sample in samples(member, schemas):
                raw = json.dumps({"role": "user", "content": [sample]}).encode()
                found: Any = t.decode(raw, kind)
                assert type(found.content[0]) is row.type
