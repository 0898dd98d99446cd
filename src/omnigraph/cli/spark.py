"""The options of commands that can run on Spark: where to run."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class EngineName(StrEnum):
    """Who does the work."""

    AUTO = "auto"
    LOCAL = "local"
    SPARK = "spark"


Engine = Annotated[EngineName, typer.Option("--engine", help="auto decides by size: this process, or Spark.")]
Master = Annotated[
    str | None,
    typer.Option("--master", help="A Spark master, as spark://host:port. Default: local[*].", show_default=False),
]
Remote = Annotated[
    str | None, typer.Option("--remote", help="A Spark Connect address: sc://host:port.", show_default=False)
]
