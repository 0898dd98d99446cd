"""Writing and removing the ref objects of branches and tags, on stores whose replies can get lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from omnigraph.errors import OmniError, StorageUnavailable
from omnigraph.records import dataclass
from omnigraph.storage.address import Scheme
from omnigraph.storage.objects import ObjectStore


@dataclass(frozen=True, slots=True)
class RefWriter:
    """Writes ref objects. If a reply is lost, it looks up what became of the request.

    A request to a bucket that seems to have done nothing may still arrive, so it is made once more: all of them
    are conditional, and the late one finds its condition gone. ``unknown`` makes the error for a name, an action
    and a reason, which is raised if that fails too.
    """

    objects: ObjectStore
    scheme: Scheme
    unknown: Callable[[str, str, str], OmniError]

    def write(self, name: str, key: str, content: bytes, is_written: Callable[[], bool]) -> bool:
        """Write a new ref; False if there is another one. ``is_written`` tells whether this one is there."""
        try:
            return self.objects.put_if_absent(key, content) is not None or is_written()
        except StorageUnavailable as error:
            with self._looking_up(name, "created", error):
                if is_written():
                    self.objects.put(key, content)
                    return True
                if self.scheme is not Scheme.S3:
                    raise
                return self.objects.put_if_absent(key, content) is not None or is_written()

    def remove(self, name: str, key: str) -> None:
        """Remove a ref."""
        try:
            self.objects.retire(key)
        except StorageUnavailable as error:
            with self._looking_up(name, "deleted", error):
                if self.scheme is not Scheme.S3 and self.objects.has(key):
                    raise
                self.objects.retire(key)

    @contextmanager
    def _looking_up(self, name: str, action: str, error: StorageUnavailable) -> Iterator[None]:
        """Run a block that looks up what became of a failed request."""
        try:
            yield
        except StorageUnavailable as failure:
            if failure is error and self.scheme is not Scheme.S3:
                raise
            raise self.unknown(name, action, str(error)) from error
