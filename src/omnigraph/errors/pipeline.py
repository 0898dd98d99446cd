"""Bulk jobs, exports and streams that cannot run, or did not finish."""

from __future__ import annotations

from typing import Any

from omnigraph.errors.base import OmniError


class PipelineError(OmniError):
    """A bulk job that did not finish. Nothing of it is in the graph."""


class JavaUnavailable(PipelineError):
    """Spark needs Java, and there is none, or one that is too old."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


class SparkUnavailable(PipelineError):
    """A Spark session that cannot be started or reached."""

    def __init__(
        self,
        master: str,
        reason: str,
        remedy: str = "check the address and the cluster, or use --engine local (engine='local')",
    ) -> None:
        super().__init__(master, reason, remedy)
        self.master = master
        self.reason = reason
        self.remedy = remedy

    def __str__(self) -> str:
        return f"no Spark session at {self.master}: {self.reason}; {self.remedy}"

    def as_json(self) -> dict[str, Any]:
        return {"error": str(self), "master": self.master, "reason": self.reason}


class JobFailed(PipelineError):
    """A task of a job failed at every attempt. ``job`` is the job's id in `omnigraph jobs`."""

    def __init__(self, job: str, step: str, reason: str) -> None:
        super().__init__(job, step, reason)
        self.job = job
        self.step = step
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.step}: {self.reason}; nothing was committed, and the job can be run again (job {self.job})"

    def as_json(self) -> dict[str, Any]:
        return {"error": str(self), "job": self.job, "step": self.step, "reason": self.reason}


class JobCancelled(PipelineError):
    """A job that the caller cancelled."""

    def __init__(self, job: str) -> None:
        super().__init__(job)
        self.job = job

    def __str__(self) -> str:
        return f"the job was cancelled; nothing was committed, and the job can be run again (job {self.job})"


class SourceUnusable(PipelineError):
    """A source of a load that does not exist, or cannot be loaded."""

    def __init__(self, source: str, reason: str) -> None:
        super().__init__(source, reason)
        self.source = source
        self.reason = reason

    def __str__(self) -> str:
        return f"cannot load {self.source}: {self.reason}"

    def as_json(self) -> dict[str, Any]:
        return {"error": str(self), "source": self.source, "reason": self.reason}


class ExportRefused(PipelineError):
    """An export whose target is taken, or with a value that the format cannot write. ``what`` names either."""

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(what, reason)
        self.what = what
        self.reason = reason

    def __str__(self) -> str:
        return f"cannot export {self.what}: {self.reason}"

    def as_json(self) -> dict[str, Any]:
        return {"error": str(self), "what": self.what, "reason": self.reason}


class NotOnSpark(PipelineError):
    """An operation that only the embedded engine can do."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what, remedy)
        self.what = what
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.what} cannot run on Spark; {self.remedy}"


class StreamOutOfStep(PipelineError):
    """A micro-batch that does not follow the last one of its stream. Committing it could lose or mix up rows."""

    def __init__(self, stream: str, branch: str, batch: int, reason: str) -> None:
        super().__init__(stream, branch, batch, reason)
        self.stream = stream
        self.branch = branch
        self.batch = batch
        self.reason = reason

    def __str__(self) -> str:
        return f"batch {self.batch} of stream '{self.stream}' does not fit branch '{self.branch}': {self.reason}"

    def as_json(self) -> dict[str, Any]:
        return {"error": str(self), "stream": self.stream, "branch": self.branch, "batch": self.batch}
