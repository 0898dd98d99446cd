"""The doctor: nothing to say about a healthy graph, and about each kind of damage exactly what was done."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import lance
import pytest
from tests.cli.command import omnigraph as command
from tests.maintenance.patients import (
    KNOWS,
    PERSON,
    codes,
    dataset,
    examined,
    flip,
    folder,
    forged,
    healthy,
    only,
    person,
    pin,
    publish,
    put,
    rows_for,
    slip_in,
)
from tests.sampling import sampled
from tests.stores import Store, local_store, present

import omnigraph
from omnigraph import AsyncGraph, DoctorProgress, Graph
from omnigraph.errors import BranchNotFound, GraphNotFound, InvalidArgument, ObjectDamaged, StorageUnavailable
from omnigraph.maintenance import doctor
from omnigraph.maintenance.doctor.codes import CODES
from omnigraph.maintenance.doctor.doctor import CHECKS
from omnigraph.maintenance.doctor.examination import Examination
from omnigraph.maintenance.doctor.rules import TABLE_RULES, check_rules
from omnigraph.maintenance.index_plan import NO_LAG
from omnigraph.manifest.repository import Repository
from omnigraph.recovery.audit import AuditLog, Recovery
from omnigraph.recovery.jobs import JobRecord, announce
from omnigraph.storage import layout
from omnigraph.storage.locks import Locks


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = local_store(tmp_path_factory.mktemp("doctor"))
    healthy(store)
    return store


@pytest.fixture
def patient(template: Store, tmp_path: Path) -> Graph:
    """A copy of the healthy graph, at the same place after the original was set aside."""
    return _copied(template, tmp_path)


def _copied(template: Store, tmp_path: Path) -> Graph:
    """Native branches name the place they were made at, so the original is saved and brought back."""
    saved = Path(template.uri + ".saved")
    if saved.exists():
        shutil.rmtree(template.uri)
        shutil.copytree(saved, template.uri)
    else:
        shutil.copytree(template.uri, saved)
    return omnigraph.open(template.uri, read_only=False)


def store_of(graph: Graph) -> Store:
    return Store(graph.address)


def test_a_healthy_graph(store: Store) -> None:
    graph = healthy(store)
    report = graph.doctor()
    assert report.findings == ()
    assert (report.is_healthy, report.checks, report.branches) == (
        True,
        tuple(CHECKS),
        ("main", "dev", "nested"),
    )
    assert graph.doctor(quick=True).findings == ()


def test_one_that_is_only_read_one_branch_and_some_checks(patient: Graph) -> None:
    reader = omnigraph.open(patient.address, read_only=True)
    seen: list[DoctorProgress] = []
    report = reader.doctor(branch="dev", checks=["files", "rules"], listener=seen.append)
    assert (report.branches, report.checks, report.findings) == (("dev",), ("files", "rules"), ())
    assert {progress.check for progress in seen} == {"files", "rules"}
    assert set(CHECKS) - set(reader.doctor(quick=True).checks) == {"rules", "orphans"}
    with pytest.raises(InvalidArgument, match="did you mean 'files'"):
        reader.doctor(checks=["fils"])
    with pytest.raises(BranchNotFound):
        reader.doctor(branch="nope")


def test_where_there_is_no_graph(tmp_path: Path) -> None:
    with pytest.raises(GraphNotFound):
        omnigraph.doctor(tmp_path / "nothing")


def test_from_an_event_loop(patient: Graph) -> None:
    async def examine() -> bool:
        async with await AsyncGraph.open(patient.address, read_only=True) as graph:
            return (await graph.doctor(quick=True)).is_healthy

    assert asyncio.run(examine())


def test_the_command(patient: Graph) -> None:
    healthy_ = command("doctor", patient.address)
    assert (healthy_.code, healthy_.out) == (0, "healthy: 3 branches, 5 tables, 13 checks\n")
    (folder(patient) / "data").rename(folder(patient) / "away")
    damaged = command("doctor", patient.address, "--quick", "--json")
    assert damaged.code == 1
    assert {f["code"] for f in damaged.json["findings"]} == {"file_missing"}
    assert damaged.json["healthy"] is False
    shown = command("doctor", patient.address, "--check", "files")
    assert shown.code == 1
    assert "error file_missing main node:Person: " in shown.out
    assert "remedy: restore it from a backup" in shown.out


@pytest.mark.parametrize("quick", [True, False])
def test_files_that_are_missing_or_cut_short(patient: Graph, quick: bool) -> None:
    (file,) = dataset(patient, KNOWS).get_fragments()[0].data_files()
    data = folder(patient, KNOWS) / "data" / file.path
    content = data.read_bytes()
    data.write_bytes(content[:-5])
    found = only(examined(store_of(patient), quick=quick, checks=["files"]), "file_size")
    assert (found.table_key, found.file) == (KNOWS, str(data.relative_to(patient.address)))
    data.unlink()
    assert only(examined(store_of(patient), quick=quick, checks=["files"]), "file_missing").table_key == KNOWS


@pytest.mark.parametrize("kind", ["data", "_deletions"])
def test_a_changed_byte_in_a_file(patient: Graph, kind: str) -> None:
    used = [path for path in (folder(patient) / kind).iterdir() if path.is_file()]
    for path in used:
        flip(path)
    assert examined(store_of(patient), quick=True, checks=["files"]).is_healthy
    report = examined(store_of(patient), checks=["files", "rules"])
    assert codes(report) == {"file_damaged"}
    assert {finding.table_key for finding in report.findings} == {PERSON}


def test_a_changed_byte_in_an_index(patient: Graph) -> None:
    for path in (folder(patient) / "_indices").rglob("*.lance"):
        flip(path, 5)
    report = examined(store_of(patient), checks=["files"])
    assert codes(report) == {"index_damaged"}
    assert "omnigraph index" in report.findings[0].remedy


def test_a_version_that_is_missing_or_damaged(patient: Graph) -> None:
    path = patient._repository.tables.version_path(pin(patient).ref)
    content = path.read_bytes()
    flip(path, 40)
    assert "version_damaged" in codes(examined(store_of(patient), quick=True))
    path.write_bytes(content)
    path.unlink()
    report = examined(store_of(patient), quick=True)
    assert codes(report) == {"version_missing"}
    assert report.findings[0].table_key == PERSON


def test_a_table_that_is_gone(patient: Graph) -> None:
    shutil.rmtree(folder(patient, "node:City"))
    assert "version_damaged" in codes(examined(store_of(patient)))


def test_a_manifest_that_cannot_be_read(patient: Graph) -> None:
    """A graph that cannot be opened is examined all the same."""
    newest = patient.snapshot("dev").manifest_version
    native = patient._repository.branches.find("dev").native
    path = Path(patient.address, layout.version_file(layout.MANIFEST, native, newest))
    path.write_bytes(path.read_bytes()[:-8])
    found = only(examined(store_of(patient), quick=True), "manifest_unreadable")
    assert found.branch == "dev"
    main = Path(patient.address, layout.version_file(layout.MANIFEST, None, patient.snapshot().manifest_version))
    main.write_bytes(main.read_bytes()[:-8])
    with pytest.raises(ObjectDamaged):
        omnigraph.open(patient.address, read_only=True)
    assert "manifest_unreadable" in codes(examined(store_of(patient), quick=True))


def test_a_graph_of_a_newer_release(patient: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnigraph.manifest.publisher.EVOLVED_SCHEMA_VERSION", 4)
    assert "newer_release" in codes(examined(store_of(patient), quick=True))


@pytest.mark.parametrize(
    ("key", "code", "severity"),
    [
        (layout.SCHEMA_IR, "schema_damaged", "error"),
        (layout.SCHEMA_SOURCE, "schema_damaged", "error"),
        (layout.SCHEMA_STATE, "schema_damaged", "error"),
        (layout.branch_ref("nested"), "ref_damaged", "error"),
        (layout.tag_ref("first"), "tag_damaged", "error"),
        (layout.head_hint(None), "hint_damaged", "warning"),
        (layout.SCHEMA_INTENT, "intent_damaged", "error"),
        (layout.PLACE, "place_damaged", "error"),
        (f"{layout.JOBS}/j.json", "job_damaged", "warning"),
        (f"{layout.SIDECARS}/01JX.json", "sidecar_damaged", "error"),
    ],
)
def test_a_damaged_control_object(patient: Graph, key: str, code: str, severity: str) -> None:
    put(store_of(patient), key, b"{")
    found = only(examined(store_of(patient), quick=True), code)
    assert (found.severity.value, found.file) == (severity, key)


def test_a_schema_that_is_not_the_one_it_is_named_by(patient: Graph) -> None:
    (key,) = patient._repository.objects.list(layout.SCHEMAS)
    put(store_of(patient), key, {"source": "", "ir": {}})
    report = examined(store_of(patient), quick=True)
    assert codes(report) == {"schema_damaged"}


def test_forged_refs(patient: Graph) -> None:
    objects, key = patient._repository.objects, layout.branch_ref("nested")
    ref = present(objects, key).content
    objects.put(key, forged(key, ref, native="nested.gone"))
    assert codes(examined(store_of(patient), quick=True, checks=["control"])) == {"ref_dangling"}
    objects.put(key, forged(key, ref, parent="nobody"))
    assert codes(examined(store_of(patient), quick=True)) == {"ref_foreign"}
    objects.put(key, forged(key, ref, fork_version=10_000))
    assert codes(examined(store_of(patient), quick=True)) == {"ref_foreign"}
    objects.put(key, forged(key, ref, fork_commit="01JXGONE"))
    assert "parent_missing" in codes(examined(store_of(patient), quick=True))


def test_a_tag_whose_commit_is_gone(patient: Graph) -> None:
    objects, key = patient._repository.objects, layout.tag_ref("first")
    tag = present(objects, key).content
    objects.put(key, forged(key, tag, graph_commit_id="01JXGONE"))
    assert only(examined(store_of(patient), quick=True), "tag_dangling").branch == "main"


def test_a_hint_that_leads_nowhere(patient: Graph) -> None:
    objects, key = patient._repository.objects, layout.head_hint(None)
    objects.put(key, forged(key, present(objects, key).content, version=999))
    assert only(examined(store_of(patient), quick=True), "hint_stale").file == key
    assert [cure.code for cure in omnigraph.open(patient.address).repair().cures] == ["hint_stale"]
    omnigraph.open(patient.address).repair(confirm=True)
    assert examined(store_of(patient), quick=True).findings == ()


def test_an_unfinished_creation_and_a_pending_change_of_all_branches(patient: Graph) -> None:
    put(store_of(patient), layout.INIT_CLAIM, {"actor": None})
    assert only(examined(store_of(patient), quick=True), "creation_unfinished").severity.value == "note"
    Path(patient.address, layout.INIT_CLAIM).unlink()
    intent = {"source": "", "fill": {}, "allow_data_loss": False, "actor": None, "message": None}
    put(store_of(patient), layout.SCHEMA_INTENT, {**intent, "branches": ["main", "dev"]})
    assert "main, dev" in only(examined(store_of(patient), quick=True), "intent_pending").message


def test_a_copy_that_was_not_finished(patient: Graph) -> None:
    objects = patient._repository.objects
    objects.put(layout.PLACE, forged(layout.PLACE, present(objects, layout.PLACE).content, state="updating"))
    assert "updating" in only(examined(store_of(patient), quick=True), "place_unfinished").message


def test_a_table_that_lance_has_moved(patient: Graph) -> None:
    handle = dataset(patient)
    lance.write_dataset(handle.to_table(limit=1), handle, mode="append")
    found = only(examined(store_of(patient), quick=True), "table_drift")
    assert (found.branch, found.table_key) == ("main", PERSON)
    assert "--force" in found.remedy


def test_a_table_that_lance_has_compacted(patient: Graph) -> None:
    patient.load([person("one more")], mode="append")
    dataset(patient).optimize.compact_files()
    found = only(examined(store_of(patient), quick=True), "table_drift")
    assert "--force" not in found.remedy
    assert patient.repair(confirm=True).manifest_version is not None
    assert examined(store_of(patient)).findings == ()


def test_a_wrong_number_of_rows(patient: Graph) -> None:
    state = patient._repository.manifest.latest(None)
    wrong = replace(state.tables[PERSON], row_count=7)
    publish(patient, replace(state, version=state.version + 1, tables={**state.tables, PERSON: wrong}))
    found = only(examined(store_of(patient), quick=True), "row_count")
    assert "the graph says 7" in found.message
    (repaired,) = [t for t in patient.repair(confirm=True).tables if t.action != "no_op"]
    assert (repaired.table_key, repaired.action, repaired.row_count) == (PERSON, "healed", 13)
    assert examined(store_of(patient)).findings == ()


def test_other_columns_than_those_of_the_schema(patient: Graph) -> None:
    dataset(patient, KNOWS).drop_columns(["since"])
    patient.repair(confirm=True, force=True)
    assert "since" in only(examined(store_of(patient), quick=True), "columns").message


def test_rows_that_break_rules(patient: Graph) -> None:
    slip_in(
        patient,
        PERSON,
        {"id": "p1", "name": "p1"},
        {"id": "old", "name": "old", "age": 200},
        {"id": "odd", "name": "odd", "mail": "no mail"},
        {"id": "sad", "name": "sad", "mood": "sad"},
        {"id": "wrong", "name": "right", "mail": "2@x.org"},
    )
    slip_in(patient, KNOWS, *({"id": f"e{n}", "src": "p1", "dst": "p2"} for n in range(4)))
    slip_in(patient, KNOWS, {"id": "lost", "src": "p2", "dst": "nobody"})
    report = examined(store_of(patient), checks=["rules"])
    found = {finding.code: finding for finding in report.findings}
    assert {code: finding.table_key for code, finding in found.items()} == {
        "value_rule": PERSON,
        "key_mismatch": PERSON,
        "duplicate_id": PERSON,
        "duplicate_value": PERSON,
        "cardinality": KNOWS,
        "dangling_edge": KNOWS,
    }
    assert found["value_rule"].count == 3
    assert found["dangling_edge"].message == "dst 'nobody' not found in Person (edge Knows 'lost')"
    assert examined(store_of(patient), checks=["rules"], branch="dev").findings == ()


@pytest.mark.parametrize("rows", sampled([2, 1, 5], 1))
def test_rules_are_checked_in_pieces(patient: Graph, rows: int) -> None:
    """However small the pieces are, they find the same."""
    slip_in(patient, PERSON, {"id": "p1", "name": "p1"}, {"id": "wrong", "name": "right", "mail": "2@x.org"})
    slip_in(patient, KNOWS, *({"id": f"e{n}", "src": "p1", "dst": f"p{n}"} for n in range(9)))

    def found(rows_per_piece: int) -> dict[tuple[str, str | None], int]:
        exam = Examination(Repository.at(store_of(patient).address, read_only=True), only_branch="main")
        assert list(exam.begin()) == []
        return {(f.code, f.table_key): f.count for f in check_rules(exam, rows_per_piece)}

    assert found(rows) == found(1_000_000)
    assert found(rows)["dangling_edge", KNOWS] == 1


def test_indexes_that_are_missing_or_lag_behind(patient: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnigraph.maintenance.doctor.indexes.LARGE", 0)
    monkeypatch.setattr("omnigraph.maintenance.doctor.indexes.DEFAULT_LAG", NO_LAG)
    dataset(patient, KNOWS).drop_index("src_btree")
    patient.repair(confirm=True, force=True)
    report = examined(store_of(patient), checks=["indexes"], branch="main")
    assert codes(report) == {"index_missing", "index_lagging"}
    missing = [finding for finding in report.findings if finding.code == "index_missing"]
    assert ["edge:Knows has no BTREE index on src" in finding.message for finding in missing].count(True) == 1


def test_an_index_that_gives_wrong_answers(patient: Graph) -> None:
    """Its files are those of an older version of the table, and so is what it answers."""
    dataset(patient).delete("true")
    handle = dataset(patient)
    rows = [{"id": f"q{n}", "name": f"q{n}", "bio": f"hates {n}"} for n in range(5)]
    lance.write_dataset(rows_for(handle, *rows), handle, mode="append")
    dataset(patient).create_scalar_index("id", "BTREE", name="id_btree", replace=True)
    patient.repair(confirm=True, force=True)
    assert examined(store_of(patient), checks=["indexes"], branch="main").findings == ()
    _swap_index(patient, "id_btree", "name_btree")
    report = examined(store_of(patient), checks=["indexes"], branch="main")
    assert codes(report) == {"index_wrong"}


def test_many_small_files_and_many_deleted_rows(patient: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnigraph.maintenance.doctor.versions.SMALL_FILES", 1)
    monkeypatch.setattr("omnigraph.maintenance.doctor.versions.DELETED_ROWS", 1)
    monkeypatch.setattr("omnigraph.maintenance.doctor.versions.DELETED_SHARE", 0.05)
    patient.mutate('query q() { delete Person where name = "p2" }')
    report = examined(store_of(patient), checks=["fragments"], branch="main")
    assert codes(report) == {"small_files", "deleted_rows"}


def test_a_history_that_is_cut(patient: Graph) -> None:
    state = patient._repository.manifest.latest(None)
    publish(patient, replace(state, version=state.version + 1, commits=(*state.commits[:-2], state.commits[-1])))
    found = only(examined(store_of(patient), quick=True), "parent_missing")
    assert state.commits[-2].graph_commit_id in found.message


def test_a_head_of_another_branch(patient: Graph) -> None:
    state = patient._repository.manifest.latest(None)
    assert state.head is not None
    foreign = replace(state.head, branch="elsewhere", manifest_version=10_000)
    publish(patient, replace(state, version=state.version + 1, commits=(*state.commits[:-1], foreign)))
    assert only(examined(store_of(patient), quick=True), "head_foreign").branch == "main"


def test_a_directory_that_was_moved(patient: Graph, tmp_path: Path) -> None:
    moved = shutil.copytree(patient.address, tmp_path / "moved")
    report = omnigraph.doctor(moved, quick=True)
    assert codes(report) == {"moved_directory"}
    assert {finding.branch for finding in report.findings} == {"dev", "nested"}


def test_a_job_that_was_killed(patient: Graph) -> None:
    now = patient.commits()[0].created_at
    record = JobRecord("01JOB", "load", "main", None, (pin(patient).location,), None, now)
    announce(patient._repository.objects, record)
    assert only(examined(store_of(patient)), "job_killed").branch == "main"
    with patient._repository.locks.job("01JOB"):
        assert codes(examined(store_of(patient), checks=["jobs"])) == {"job_running"}
    patient.clean_jobs()
    assert examined(store_of(patient), quick=True).findings == ()


def test_locks_that_are_held(patient: Graph) -> None:
    with patient._repository.locks.commit("dev"):
        report = examined(store_of(patient), quick=True)
    assert codes(report) == {"lock_held"}
    assert "the commit lock of branch 'dev'" in " ".join(finding.message for finding in report.findings)


def _swap_index(graph: Graph, one: str, other: str) -> None:
    """Put the files of one index in the place of another's."""
    segments = {index.name: str(index.segments[0].uuid) for index in dataset(graph).describe_indices()}
    own = folder(graph) / "_indices"
    shutil.rmtree(own / segments[one])
    shutil.copytree(own / segments[other], own / segments[one])


def test_a_history_that_cannot_be_read(patient: Graph) -> None:
    patient._repository.manifest.archive.append(patient.commits())
    assert examined(store_of(patient), quick=True).findings == ()
    for path in Path(patient.address, layout.COMMITS, "data").iterdir():
        path.unlink()
    assert only(examined(store_of(patient), quick=True), "archive_damaged").file == layout.COMMITS


def test_a_record_of_recoveries_that_is_wrong_or_cannot_be_read(patient: Graph) -> None:
    now = patient.commits()[0].created_at
    audit = AuditLog(patient._repository.tables)
    audit.record(Recovery("01OP", "RolledBack", "load", None, "main", "01GONE", {}, now))
    assert "01GONE" in only(examined(store_of(patient), quick=True), "audit_commit_missing").message
    for path in Path(patient.address, layout.RECOVERIES, "data").iterdir():
        path.unlink()
    assert only(examined(store_of(patient), quick=True), "audit_damaged").file == layout.RECOVERIES


def test_notes_of_a_job_without_a_record(patient: Graph) -> None:
    put(store_of(patient), layout.job_note("01JOB", "nodes/x/data/y.lance"), b"")
    assert only(examined(store_of(patient), quick=True), "job_leftover").file == layout.job_folder("01JOB")
    patient.clean_jobs()
    assert examined(store_of(patient), quick=True).findings == ()


def test_files_that_nothing_refers_to(patient: Graph) -> None:
    """Young ones may be a writer's that is about to commit."""
    stray = folder(patient) / "data" / "stray.lance"
    stray.write_bytes(b"nothing")
    assert examined(store_of(patient)).findings == ()
    os.utime(stray, (0, 0))
    found = only(examined(store_of(patient)), "orphaned_files")
    assert (found.file, found.count, found.severity.value) == (pin(patient).location, 1, "note")
    assert "7 bytes" in found.message


def test_rows_that_cannot_be_read(patient: Graph) -> None:
    for path in (folder(patient) / "data").iterdir():
        flip(path)
    report = examined(store_of(patient), checks=["rules"], branch="main")
    assert codes(report) == {"table_unreadable"}


def test_a_check_that_cannot_be_completed(patient: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other checks still run."""
    put(store_of(patient), layout.head_hint(None), b"{")
    with monkeypatch.context() as patch:
        patch.setattr(Locks, "holders", _fail)
        report = examined(store_of(patient), quick=True)
    assert codes(report) == {"check_failed", "hint_damaged"}


def _fail(*_: object, **__: object) -> None:
    raise StorageUnavailable("the store", "it is away")


def test_every_code_is_known_and_planted_here() -> None:
    """The list of codes, the sources that find them and the tests that plant them name the same."""
    known = {code for found in CODES.values() for code in found}
    sources = "".join(path.read_text() for path in Path(doctor.__file__ or "").parent.glob("*.py"))
    here = [*Path(__file__).parent.glob("test_doctor*.py"), *Path(__file__).parent.glob("test_repair*.py")]
    tests = "".join(path.read_text() for path in here)
    emitted = set(re.findall(r'(?:Finding|found|_Problem)\(\s*"([a-z_]+)"', sources)) | {*TABLE_RULES}
    emitted |= {"dangling_edge", "index_damaged", "newer_release", "sidecar_damaged"}
    assert emitted == known
    assert {code for code in known if f'"{code}"' not in tests} == set()
    assert set(CODES) == {"every check", *CHECKS}
