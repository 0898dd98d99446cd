"""Stable identities: numbers that are given once, in a fixed order, and never again."""

from __future__ import annotations

import json

import pytest
from tests.lang.schema.support import ir

from omnigraph.lang.schema.identity import (
    IR_VERSION,
    OFFLINE_DOMAIN,
    SchemaIR,
    TypeIdentity,
    first_identities,
    idle_hints,
    resolve_identities,
)
from omnigraph.lang.schema.migration import plan_migration
from omnigraph.lang.schema.resolve import compile_schema

EVERYTHING = """
interface Named { label: String @index @description("a name") }
node Zoo implements Named {
  code: String  town: String  open: Bool?
  vector: Vector(3)? @embed(code, model="m")
  level: enum(b, a)  tags: [String]?
  area: F64 @foo("x", k=1)
  @range(area, ..9.5)  @check(code, "^z")  @key(town, code)
}
node Ape @instruction("count them") {}
edge LivesIn: Ape -> Zoo @card(1..2) @bar { since: DateTime @unique(src, since) }
"""


def after(accepted: SchemaIR, text: str) -> SchemaIR:
    """The schema once the change has been applied."""
    return resolve_identities(compile_schema(text), accepted)


class TestAllocation:
    def test_types_then_properties_then_tables_each_in_a_fixed_order(self) -> None:
        text = """
        edge Eats: Bee -> Ant { b: I32  a: I32 }
        node Bee implements Named { z: I32 }
        node Ant { y: I32 }
        interface Named { n: I32 }
        """
        found = ir(text)
        ids = {f"{kind} {name}": t.id for (kind, name), t in found.identities.items()}
        assert ids == {"interface Named": 1, "node Ant": 2, "node Bee": 3, "edge Eats": 4}
        assert found.identities["interface", "Named"].properties == {"n": 5}
        assert found.identities["node", "Ant"].properties == {"y": 6}
        assert found.identities["node", "Bee"].properties == {"n": 7, "z": 8}
        assert found.identities["edge", "Eats"].properties == {"a": 9, "b": 10}
        tables = {name: t.incarnation for (_, name), t in found.identities.items()}
        assert tables == {"Named": None, "Ant": 11, "Bee": 12, "Eats": 13}
        assert found.next_identity_id == 14

    def test_one_name_in_three_namespaces_has_three_identities(self) -> None:
        found = ir("interface X {} node X {} edge X: X -> X")
        assert [t.id for t in found.identities.values()] == [1, 2, 3]

    def test_a_new_graph_starts_at_one_in_its_own_domain(self) -> None:
        assert ir("") == SchemaIR(OFFLINE_DOMAIN, 1, compile_schema("").shape, {})
        domain = "01J9Z3Q4K5M6N7P8R9S0T1V2W3"
        assert first_identities(compile_schema("node A {}"), domain).domain == domain

    def test_what_is_new_is_numbered_behind_all_that_was(self) -> None:
        first = ir("node B { x: I32 }")
        second = after(first, "node A { z: I32 } node B { x: I32  w: I32? }")
        assert first.next_identity_id == 4
        assert second.identities["node", "B"] == TypeIdentity(1, {"w": 5, "x": 2}, 3)
        assert second.identities["node", "A"].id == 4
        assert second.identities["node", "A"].properties == {"z": 6}
        assert second.identities["node", "A"].incarnation == 7
        assert second.next_identity_id == 8

    def test_a_type_dropped_and_declared_again_is_a_new_one(self) -> None:
        first = ir("node A { x: I32 }")
        again = after(after(first, ""), "node A { x: I32 }")
        assert again.shape == first.shape
        assert (again.identities["node", "A"].id, again.identities["node", "A"].incarnation) == (4, 6)

    def test_a_property_dropped_and_declared_again_is_a_new_one(self) -> None:
        first = ir("node A { x: I32? }")
        again = after(after(first, "node A {}"), "node A { x: I32? }")
        assert again.identities["node", "A"].properties == {"x": 4}
        assert again.identities["node", "A"].incarnation == first.identities["node", "A"].incarnation

    def test_a_rename_keeps_every_number(self) -> None:
        first = ir("node A { x: I32 } edge E: A -> A")
        renamed = after(
            first,
            'node B @rename_from("A") { y: I32 @rename_from("x") } edge F: B -> B @rename_from("E")',
        )
        assert renamed.identities["node", "B"].id == first.identities["node", "A"].id
        assert renamed.identities["node", "B"].incarnation == first.identities["node", "A"].incarnation
        assert renamed.identities["node", "B"].properties == {"y": first.identities["node", "A"].properties["x"]}
        assert renamed.identities["edge", "F"] == first.identities["edge", "E"]
        assert renamed.next_identity_id == first.next_identity_id


class TestStoredForm:
    def test_it_reads_back_as_what_it_was(self) -> None:
        stored = ir(EVERYTHING)
        assert SchemaIR.from_json(json.loads(stored.dumps())) == stored

    def test_it_reads_back_after_renames(self) -> None:
        text = EVERYTHING.replace("area: F64", 'size: F64 @rename_from("area")').replace(
            "@range(area", "@range(size"
        )
        changed = after(ir(EVERYTHING), text)
        assert changed.identities["node", "Zoo"].properties.keys() >= {"size"}
        assert SchemaIR.from_json(json.loads(changed.dumps())) == changed

    def test_a_stored_schema_needs_no_migration_to_itself(self) -> None:
        stored = SchemaIR.from_json(json.loads(ir(EVERYTHING).dumps()))
        assert plan_migration(stored, compile_schema(EVERYTHING)).steps == ()

    def test_references_carry_id_and_name(self) -> None:
        stored = ir(EVERYTHING).as_json()
        [edge] = stored["edges"]
        zoo = next(node for node in stored["nodes"] if node["name"] == "Zoo")
        ids = {p["name"]: p["id"] for p in zoo["properties"]}
        assert stored["ir_version"] == IR_VERSION == 2
        assert edge["to"] == {"id": zoo["id"], "name": "Zoo"}
        assert zoo["implements"] == [{"id": stored["interfaces"][0]["id"], "name": "Named"}]
        embed = next(p["embed"] for p in zoo["properties"] if p["name"] == "vector")
        assert embed == {"source": {"id": ids["code"], "name": "code"}, "model": "m"}
        key = next(c for c in zoo["constraints"] if c["kind"] == "key")
        assert key["columns"] == [{"id": ids[name], "name": name} for name in ("code", "town")]

    def test_the_text_is_the_same_for_the_same_schema(self) -> None:
        assert ir(EVERYTHING).dumps() == ir("// moved\n" + EVERYTHING).dumps()

    def test_another_version_is_refused(self) -> None:
        with pytest.raises(ValueError, match="version 1 is not 2"):
            SchemaIR.from_json(ir("").as_json() | {"ir_version": 1})

    def test_a_changed_file_is_refused(self) -> None:
        stored = ir(EVERYTHING).as_json()
        stored["nodes"][0]["name"] = "Gorilla"
        with pytest.raises(ValueError, match="does not match its own hash"):
            SchemaIR.from_json(stored)


class TestIdleHints:
    HINTED = 'node B @rename_from("A") { y: I32 @rename_from("x") }'

    def test_on_a_new_graph_all_hints_are_inert(self) -> None:
        notes = idle_hints(compile_schema(self.HINTED), None)
        assert [(n.code, n.line, n.column) for n in notes] == [
            ("inert_initialization_rename_hint", 1, 8),
            ("inert_initialization_rename_hint", 1, 35),
        ]
        assert first_identities(compile_schema(self.HINTED)).next_identity_id == 4

    def test_once_accepted_they_are_ignored(self) -> None:
        accepted = after(ir("node A { x: I32 }"), self.HINTED)
        assert [n.code for n in idle_hints(compile_schema(self.HINTED), accepted)] == [
            "ignored_exact_match_rename_hint"
        ] * 2
        assert after(accepted, self.HINTED) == accepted

    def test_hints_at_work_are_not_idle(self) -> None:
        assert idle_hints(compile_schema(self.HINTED), ir("node A { x: I32 }")) == []
