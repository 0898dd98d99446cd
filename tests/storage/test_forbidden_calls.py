"""Nothing but `storage/tables.py` can move a table: whatever else tries is found in its source.

`storage/next_version.py` commits as well, to a copy in a scratch folder.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.storage.committing_calls import committing_calls

import omnigraph

SOURCES = Path(omnigraph.__file__).parent
MODULES = sorted(SOURCES.rglob("*.py"))
THE_ONE = SOURCES / "storage" / "tables.py"
SCRATCH = SOURCES / "storage" / "next_version.py"


def test_only_one_module_moves_tables() -> None:
    found = {
        str(module.relative_to(SOURCES)): calls
        for module in MODULES
        if module not in (THE_ONE, SCRATCH)
        and (calls := committing_calls(module.read_text(), in_storage=THE_ONE.parent in module.parents))
    }
    assert found == {}


def test_that_module_is_seen_to_do_it() -> None:
    found = {what.split(": ")[1] for what in committing_calls(THE_ONE.read_text(), in_storage=True)}
    assert found >= {"commit", "create_branch", "branches.delete"}


@pytest.mark.parametrize(
    "code",
    [
        "import lance\nlance.write_dataset(rows, uri)",
        "import lance as quiet\nquiet.write_dataset(rows, uri)",
        "from lance import write_dataset as w\nw(rows, uri)",
        "from lance.dataset import write_dataset",
        "from lance import *",
        "import lance\nwrite = lance.write_dataset\nwrite(rows, uri)",
        "import lance\ngetattr(lance, 'write_dataset')(rows, uri)",
        "import importlib\nimportlib.import_module('lance').dataset(uri)",
        "__import__('lance.fragment')",
        "from lance import LanceDataset\nLanceDataset.commit(uri, transaction)",
        "from lance import LanceDataset as D\nD.commit(uri, transaction)",
        "from lance import LanceDataset\nK = LanceDataset\nK.commit_batch(uri, [])",
        "import lance\nlance.LanceDataset.commit(uri, transaction)",
        "import lance\ncommit = lance.LanceDataset.commit",
        "import lance\nlance.dataset(uri).delete('true')",
        "import lance\ntable = lance.dataset(uri)\ntable.update({'a': '1'})",
        "import lance\nif (table := lance.dataset(uri)):\n    table.insert(rows)",
        "import lance\nfirst, second = lance.dataset(a), 1\nfirst.restore()",
        "def f(table: LanceDataset) -> None:\n    table.merge(rows, 'id')",
        "def f(table: 'lance.LanceDataset | None') -> None:\n    table.restore()",
        "table: LanceDataset = find()\ntable.drop_columns(['a'])",
        "def f(self, d: LanceDataset):\n    self._d = d\ndef g(self):\n    self._d.delete('x')",
        "def find(uri) -> LanceDataset: ...\nfind(uri).delete('true')",
        "self._tables.open(ref).delete('true')",
        "other = tables.open(ref)\nother.create_index('v', 'IVF_PQ')",
        "old = tables.open(ref).checkout_version(3)\nold.restore()",
        "handle.merge_insert('id').when_matched_update_all().execute(rows)",
        "handle.add_columns({'a': '1'})",
        "handle.create_branch('dev')",
        "handle.branches.delete('dev')",
        "handle.branches.create('dev')",
        "handle.tags.create('v1', 3)",
        "handle.optimize.compact_files()",
        "o = handle.optimize\no.optimize_indices()",
        "anything.cleanup_old_versions()",
        "anything.update_config({'a': 'b'})",
        "anything.create_scalar_index('id', 'BTREE')",
        "anything.shallow_clone(uri)",
        "f = anything.truncate_table",
        "from lance.optimize import Compaction\nCompaction.commit(table, results)",
        "from lance import LanceOperation\nLanceOperation.Append([])",
        "from lance import Transaction",
        "from lance.fragment import write_fragments as wf",
        "import lance.optimize",
        "for piece in handle.get_fragments():\n    piece.delete('true')",
        "with tables.open(ref) as table:\n    table.delete('true')",
        "(handle if ready else other).delete('true')",
        "getattr(handle, 'delete')('true')",
    ],
)
def test_what_is_caught(code: str) -> None:
    assert committing_calls(code, in_storage=False)


@pytest.mark.parametrize(
    "code",
    [
        "import lance\nlance.dataset(uri, version=3).scanner().to_table()",
        "import lance\nlance.blob_array([b'x'])",
        "from lance import LanceDataset\ndef read(table: LanceDataset) -> int:\n    return table.count_rows()",
        "from lance.query import MatchQuery",
        "handle.scanner(columns=['id']).to_table().drop_columns(['id'])",
        "handle.branches.list()",
        "handle.delta(compared_against=1).get_inserted_rows()",
        "tables.restore(ref, 3)",
        "tables.commit_staged(staged)",
        "self._tables.drop_branch(location, name)",
        "with locks.commit('main') as lock:\n    lock.verify()",
        "objects.delete('key')",
        "found = {}\nfound.update(other)\nitems.insert(0, 1)",
        "graph.merge('a', into='b')\ngraph.create_branch('x')\ngraph.optimize()",
        "with path.open() as file:\n    file.write('x')",
        "cursor.execute('select 1')",
    ],
)
def test_what_passes(code: str) -> None:
    assert committing_calls(code, in_storage=False) == []


def test_storage_may_stage_but_not_commit() -> None:
    staging = "from lance import LanceOperation, Transaction\nfrom lance.fragment import write_fragments"
    assert committing_calls(staging, in_storage=True) == []
    assert committing_calls("from lance import write_dataset", in_storage=True) == ["1: imports write_dataset"]
    assert committing_calls("handle.delete('true')", in_storage=True) == ["1: delete"]
