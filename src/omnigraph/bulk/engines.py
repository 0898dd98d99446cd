"""The engines that run jobs and queries."""

from __future__ import annotations

from enum import StrEnum


class Engine(StrEnum):
    """Where a job runs: in this process, on Spark, or on either, by its size."""

    AUTO = "auto"
    LOCAL = "local"
    SPARK = "spark"
