"""Every path of a graph on disk, in one place. All are relative to the graph's root."""

from __future__ import annotations

from typing import Final

SCHEMA_SOURCE: Final = "_schema.pg"
SCHEMA_IR: Final = "_schema.ir.json"
SCHEMA_STATE: Final = "__schema_state.json"
MANIFEST: Final = "__manifest"
COMMITS: Final = "_graph_commits.lance"
LEGACY_ACTORS: Final = "_graph_commit_actors.lance"
RECOVERIES: Final = "_graph_commit_recoveries.lance"
SIDECARS: Final = "__recovery"
LOCKS: Final = "__locks"
JOBS: Final = "__jobs"
BRANCH_REFS: Final = "_refs/branches"
TAG_REFS: Final = "_refs/tags"
HEAD_HINTS: Final = "_refs/heads"
KEPT_STATES: Final = "_refs/states"
RETAINED: Final = "_refs/retained.json"
INIT_CLAIM: Final = "__init.json"
PLACE: Final = "__place.json"
BACKUPS: Final = "__backups"
TOPOLOGIES: Final = "_topologies"
POSTINGS: Final = "_postings"
REQUESTS: Final = "__requests"

SCHEMAS: Final = "_schemas"
SCHEMA_INTENT: Final = "__schema_intent.json"

NODES: Final = "nodes"
EDGES: Final = "edges"

SCHEMA_FILES: Final = (SCHEMA_SOURCE, SCHEMA_IR, SCHEMA_STATE)

_FNV_OFFSET: Final = 0xCBF29CE484222325
_FNV_PRIME: Final = 0x100000001B3
_MASK: Final = 2**64 - 1


def fnv1a64(text: str) -> str:
    """The 64-bit FNV-1a hash of a text, as 16 hex digits."""
    value = _FNV_OFFSET
    for byte in text.encode():
        value = ((value ^ byte) * _FNV_PRIME) & _MASK
    return f"{value:016x}"


def table_location(table_key: str, added_by: str = "") -> str:
    """Where the table of a type lives. One that was added later is named by what added it, too, so that a type
    which was dropped and is added again gets another place."""
    kind, _, name = table_key.partition(":")
    folder = NODES if kind == "node" else EDGES
    suffix = f"-{added_by.lower()}" if added_by else ""
    return f"{folder}/{fnv1a64(name)}{suffix}"


def schema_object(digest: str) -> str:
    """The object that holds a schema which was accepted after the first one."""
    return f"{SCHEMAS}/{digest}.json"


def branch_ref(name: str) -> str:
    """The metadata object of a graph branch."""
    return f"{BRANCH_REFS}/{name}.json"


def tag_ref(name: str) -> str:
    """The object that makes a tag."""
    return f"{TAG_REFS}/{name}.json"


def head_hint(native: str | None) -> str:
    """The object that says where to start looking for a branch's newest manifest."""
    return f"{HEAD_HINTS}/{native or 'main'}.json"


def kept_state(native: str | None, version: int) -> str:
    """The object that holds a state of a branch whose own version of the manifest was cleaned away."""
    return f"{KEPT_STATES}/{native or 'main'}/{version}.json"


def cleanup_mark(number: int) -> str:
    """A mark of a cleanup. It lies where every writer looks before it commits."""
    return f"{SIDECARS}/{number:012d}.cleanup"


def job_record(job: str) -> str:
    """The object that says that there is a job; whatever the job keeps for itself lies in the folder beside it."""
    return f"{JOBS}/{job}.json"


def job_folder(job: str) -> str:
    """The folder in which a job keeps what its steps share: matches, vectors, drafts."""
    return f"{JOBS}/{job}"


def job_note(job: str, data_file: str) -> str:
    """The object that says that a data file is a job's, where its name cannot."""
    return f"{job_folder(job)}/staged/{data_file}"


def job_draft(job: str, name: str) -> str:
    """Where a data file is written that is not whole yet; nothing else lies in its folder."""
    return f"{job_folder(job)}/drafts/{name.removesuffix('.lance')}/{name}"


def job_rows(job: str, name: str) -> str:
    """Rows that the driver of a job holds, written down for its tasks."""
    return f"{job_folder(job)}/rows/{name}"


def job_table(job: str, name: str) -> str:
    """A table through which a task reads one of its job's files that no other table refers to."""
    return f"{job_folder(job)}/tables/{name}"


def topology_folder(location: str, native: str | None) -> str:
    """Where the topology of an edge table is saved, which can always be derived again."""
    return f"{TOPOLOGIES}/{location}/{native or 'main'}"


def topology_object(location: str, native: str | None, versions: tuple[int, int, int]) -> str:
    """The saved topology of an edge table and the node tables at its ends, by their versions."""
    return f"{topology_folder(location, native)}/{'-'.join(map(str, versions))}.topology"


def topology_versions(key: str) -> tuple[int, ...]:
    """The versions that a saved topology was made from; none if the object is not one."""
    name = key.rpartition("/")[2]
    numbers = name.removesuffix(".topology").split("-")
    is_one = name.endswith(".topology") and len(numbers) == 3 and all(map(str.isdecimal, numbers))
    return tuple(map(int, numbers)) if is_one else ()


def postings_folder(location: str, native: str | None) -> str:
    """Where the words of a table's texts are saved, which can always be derived again."""
    return f"{POSTINGS}/{location}/{native or 'main'}"


def postings_object(location: str, native: str | None, column: int, version: int) -> str:
    """The saved words of one column of one version of a table."""
    return f"{postings_folder(location, native)}/{column}-{version}.postings"


def postings_version(key: str) -> tuple[int, ...]:
    """The column and the version of which an object has the words; none if the object is not one."""
    name = key.rpartition("/")[2]
    numbers = name.removesuffix(".postings").split("-")
    is_one = name.endswith(".postings") and len(numbers) == 2 and all(map(str.isdecimal, numbers))
    return tuple(map(int, numbers)) if is_one else ()


def request_record(name: str) -> str:
    """The object that says which commit a write with an idempotency key makes."""
    return f"{REQUESTS}/{name}.json"


def backup_entry(backup: str) -> str:
    """The object that makes a backup: it says what was backed up."""
    return f"{BACKUPS}/{backup}.json"


def native_prefix(location: str, branch: str | None) -> str:
    """Where a table's own files lie: at its root, or in the tree of a native branch."""
    return location if branch is None else f"{location}/tree/{branch}"


def version_file(location: str, branch: str | None, version: int) -> str:
    """The file whose existence makes a version of a Lance table, in Lance's second naming scheme."""
    return f"{native_prefix(location, branch)}/_versions/{_MASK - version:020d}.manifest"


def version_of(file: str) -> int | None:
    """The version that a file of a table's `_versions` folder makes; None if it makes none."""
    digits = file.removesuffix(".manifest")
    return _MASK - int(digits) if digits != file and len(digits) == 20 and digits.isdecimal() else None


def version_place(key: str) -> tuple[str, str | None, int] | None:
    """The table, the native branch and the version that a file makes; None if it makes none."""
    folder, versions, file = key.rpartition("/_versions/")
    version = version_of(file) if versions else None
    location, tree, native = folder.partition("/tree/")
    return None if version is None else (location, native if tree else None, version)


def branch_entry(location: str, branch: str) -> str:
    """The file that lists a native branch among the branches of its table."""
    return f"{branch_entries(location)}/{branch.replace('/', '%2F')}.json"


def branch_entries(location: str) -> str:
    """The folder of the files that list a table's native branches."""
    return f"{location}/_refs/branches"
