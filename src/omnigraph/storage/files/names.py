"""The names of data files, as versions of tables list them."""

from __future__ import annotations

from lance.fragment import DataFile


def name_of(file: DataFile) -> str:
    """The name of a data file. Lance's own property makes a class of its own for every answer, which takes longer
    than reading a small file."""
    known = vars(file).get("_path")
    return known if type(known) is str else str(file.path)
