"""What can go wrong around a Spark job."""

from __future__ import annotations

from typing import Any

from omnigraph.errors.base import OmniError


class PipelineError(OmniError):
    """A job could not be run to its end. Nothing of it is in the graph."""


class JavaUnavailable(PipelineError):
    """Spark needs a Java that is not there."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


class SparkUnavailable(PipelineError):
    """No Spark session could be had."""

    def __init__(self, master: str, reason: str) -> None:
        super().__init__(master, reason)
        self.master = master
        self.reason = reason

    def __str__(self) -> str:
        return f"no Spark session at {self.master}: {self.reason}"

    def as_json(self) -> dict[str, Any]:
        return {"error": str(self), "master": self.master, "reason": self.reason}


class JobFailed(PipelineError):
    """A task failed, more often than Spark tries again. ``job`` names the job in the list of jobs."""

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
    """The caller stopped a job."""

    def __init__(self, job: str) -> None:
        super().__init__(job)
        self.job = job

    def __str__(self) -> str:
        return f"the job was cancelled; nothing was committed (job {self.job})"


class SourceUnusable(PipelineError):
    """Something that was to be loaded is not there, or is nothing that can be loaded."""

    def __init__(self, source: str, reason: str) -> None:
        super().__init__(source, reason)
        self.source = source
        self.reason = reason

    def __str__(self) -> str:
        return f"cannot load {self.source}: {self.reason}"

    def as_json(self) -> dict[str, Any]:
        return {"error": str(self), "source": self.source, "reason": self.reason}


class ExportRefused(PipelineError):
    """An export that cannot be written: the place is taken, or a value has no form there. ``what`` says which."""

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(what, reason)
        self.what = what
        self.reason = reason

    def __str__(self) -> str:
        return f"cannot export {self.what}: {self.reason}"

    def as_json(self) -> dict[str, Any]:
        return {"error": str(self), "what": self.what, "reason": self.reason}


class NotOnSpark(PipelineError):
    """Something that only the embedded engine does."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what, remedy)
        self.what = what
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.what} cannot run on Spark; {self.remedy}"


class StreamOutOfStep(PipelineError):
    """A micro-batch that cannot be the next one of its stream: rows would be lost, or taken for others."""

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
