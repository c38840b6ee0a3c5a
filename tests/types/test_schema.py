"""The types against the protocol's own schemas: each distinct definition of every revision."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast import types as t
from holdfast.types.base import Wire, wire_names
from tests.rows import rows
from tests.types.samples import Schemas, fields_of, samples
from tests.types.table import OURS, ROWS, SINCE, Enum, Page, Struct

DATA = Path(__file__).parent / "data"
REVISIONS: dict[str, Schemas] = {
    path.stem: json.loads(path.read_text()) for path in sorted(DATA.glob("*.json"))
}


def _expanded(part: Any, schemas: Schemas, above: frozenset[str] = frozenset()) -> Any:
    """Return a definition with its references written out, to tell whether two are the same."""
    if isinstance(part, str) and part.startswith("#"):
        name = part[1:]
        if name in above:
            return part
        return [part, _expanded(schemas[name], schemas, above | {name})]
    if isinstance(part, list):
        return [_expanded(item, schemas, above) for item in part]
    if isinstance(part, dict):
        return {key: _expanded(item, schemas, above) for key, item in part.items()}
    return part


def _distinct() -> Iterator[tuple[str, str]]:
    """Yield (revision, definition), leaving out what an earlier revision says identically."""
    seen: set[str] = set()
    for revision, schemas in REVISIONS.items():
        for name in schemas:
            content = json.dumps([name, _expanded(schemas[name], schemas)], sort_keys=True)
            if name in ROWS and content not in seen:
                seen.add(content)
                yield revision, name


CASES = list(_distinct())


def of_kind(kind: type) -> Callable[[Callable[..., Any]], Callable[[], Any]]:
    cases = [(r, n) for r, n in CASES if isinstance(ROWS[n], kind)]
    return rows("revision, name", cases)


def again(value: Any) -> Any:
    """Encode ``value`` as it would be sent, and decode it as plain JSON."""
    return json.loads(t.encode(value))


def read(row: Struct, value: Any) -> Any:
    raw = json.dumps(value).encode()
    return row.read(raw) if row.read else t.decode(raw, row.type)


def test_all_five_revisions_are_here() -> None:
    assert len(REVISIONS) == 5


def test_every_row_has_a_definition() -> None:
    assert set(ROWS) <= {name for schemas in REVISIONS.values() for name in schemas}


# Names and requirements


def nested(kind: type[Wire], schema: Any, schemas: Schemas) -> Iterator[tuple[type[Wire], Any]]:
    """Yield a type with its schema, and those of the objects written out inside it."""
    yield kind, schema
    found = fields_of(schema, schemas)
    for info in msgspec.structs.fields(kind):
        inner = found.get(info.encode_name, (False, None))[1]
        for part in structs_in(info.type):
            if isinstance(inner, dict) and "fields" in inner:
                yield from nested(part, inner, schemas)


def structs_in(kind: Any) -> list[type[Wire]]:
    if isinstance(kind, type) and issubclass(kind, Wire):
        return [kind]
    return [found for part in getattr(kind, "__args__", ()) for found in structs_in(part)]


def obligations(revision: str, name: str) -> list[tuple[type[Wire], Any]]:
    schemas, row = REVISIONS[revision], ROWS[name]
    if not isinstance(row, Struct) or "any" in (schemas[name] or ()):
        return []
    return list(nested(row.type, schemas[name], schemas))


@of_kind(Struct)
def test_every_property_has_a_field_and_requirements_agree(revision: str, name: str) -> None:
    schemas = REVISIONS[revision]
    for kind, schema in obligations(revision, name):
        fields = fields_of(schema, schemas)
        infos = {info.encode_name: info for info in msgspec.structs.fields(kind)}
        assert set(fields) <= wire_names(kind)
        must = {field for field, (required, _) in fields.items() if required}
        assert {field for field, info in infos.items() if info.required} <= must
        always = {f for f in must if not {f, f"{kind.__name__}.{f}"} & SINCE.keys()}
        for field in always & infos.keys():
            info = infos[field]
            assert info.required or info.default_factory is not msgspec.NODEFAULT, field


def test_no_type_has_a_field_that_no_revision_has() -> None:
    known: dict[type[Wire], set[str]] = {}
    for revision, name in CASES:
        for kind, schema in obligations(revision, name):
            known.setdefault(kind, set()).update(fields_of(schema, REVISIONS[revision]))
    for kind, names in known.items():
        assert wire_names(kind) - names <= {"_meta"}, kind


def test_every_type_stands_for_something() -> None:
    used = {kind for case in CASES for kind, _ in obligations(*case)}
    used |= {row.item for row in ROWS.values() if isinstance(row, Page)}
    held = {part for k in used for i in msgspec.structs.fields(k) for part in structs_in(i.type)}
    public = {getattr(t, name) for name in t.__all__}
    types = {kind for kind in public if isinstance(kind, type) and issubclass(kind, Wire)}
    assert types - used - held - set(OURS) == set()


# Reading and sending again


@of_kind(Struct)
def test_a_sample_is_read_in_one_pass_and_sent_again_unchanged(revision: str, name: str) -> None:
    row, schemas = ROWS[name], REVISIONS[revision]
    assert isinstance(row, Struct)
    for sample in samples(schemas[name], schemas):
        found = read(row, sample)
        assert again(found) == sample
        assert found.raw == sample
        if row.read is None:
            msgspec.json.decode(json.dumps(sample), type=row.type)


@of_kind(Struct)
def test_fields_and_words_from_the_future_survive(revision: str, name: str) -> None:
    row, schemas = ROWS[name], REVISIONS[revision]
    assert isinstance(row, Struct)
    parts = {key: part for key, (_, part) in fields_of(schemas[name], schemas).items()}
    named = ("#Role", "#LoggingLevel", "#TaskStatus")
    loose = [key for key, part in parts.items() if part in named or "enum" in (part or ())]
    for sample in samples(schemas[name], schemas):
        strange = {**sample, **{key: "unheard of" for key in loose if key in sample}}
        found = read(row, {**strange, "fromTheFuture": [1]})
        assert found.extra.keys() - sample.keys() == {"fromTheFuture"}
        assert again(found) == strange


@of_kind(Page)
def test_a_page_keeps_everything(revision: str, name: str) -> None:
    row, schemas = ROWS[name], REVISIONS[revision]
    assert isinstance(row, Page)
    for sample in samples(schemas[name], schemas):
        page = t.decode_page(json.dumps(sample).encode(), row.item, row.key)
        values = {
            row.key: again(page.items),
            "nextCursor": page.next_cursor,
            "ttlMs": page.ttl_ms,
            "cacheScope": page.cache_scope,
            "resultType": page.result_type,
            "_meta": page.meta,
        }
        assert {key: value for key, value in values.items() if value is not None} == sample
        assert page.faults == ()


# Words


@of_kind(Enum)
def test_the_words_of_an_enum_are_the_protocol_s(revision: str, name: str) -> None:
    row = ROWS[name]
    assert isinstance(row, Enum)
    assert set(REVISIONS[revision][name]["enum"]) == set(row.words)


# Choices


def test_an_elicitation_is_read_as_the_right_member() -> None:
    name = "ElicitRequestParams"
    for schemas in REVISIONS.values():
        for member in schemas.get(name, {"any": []})["any"]:
            row = ROWS[member[1:]]
            assert isinstance(row, Struct)
            for sample in samples(member, schemas):
                raw = json.dumps(sample).encode()
                found = t.read_elicitation(raw)
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
