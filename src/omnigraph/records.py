"""Dataclasses whose methods are written when the first instance is made.

The standard library compiles six functions for each dataclass as soon as its module is imported. A program that
asks one question imports some three hundred dataclasses and uses a third of them: most of that time is wasted.
`dataclass` here is the standard one to type checkers and to all who use the classes; modules that a first query
imports take theirs from here.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from functools import partial
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls: type | None = None, /, **options: bool) -> Any:
        """What `dataclasses.dataclass` is; later for classes with slots that ask for nothing unusual."""
        if cls is None and options.get("slots") and options.keys() <= _USUAL:
            return partial(_deferred, options.get("frozen", False), options.get("eq", True))
        return dataclasses.dataclass(cls, **options)


_USUAL: Final = {"frozen", "slots", "eq"}
_OWN: Final = frozenset(
    ("__init__", "__eq__", "__hash__", "__setattr__", "__delattr__", "__getstate__", "__setstate__", "__slots__")
)
_PSEUDO: Final = ("ClassVar", "typing.ClassVar", "InitVar", "KW_ONLY", "dataclasses.")
_FIELDS: Final = "__dataclass_fields__"
_PARAMS: Final = "__dataclass_params__"
_SIGNATURE: Final = "__signature__"
_lock: Final = threading.RLock()


class _Later:
    """Something about a dataclass that is known once it is written, which it is when this is first asked for."""

    def __init__(self, name: str, finish: Callable[[], None]) -> None:
        self._name, self._finish = name, finish

    def __get__(self, instance: object, owner: type) -> Any:
        self._finish()
        return getattr(owner, self._name)


def _deferred(frozen: bool, eq: bool, cls: type) -> type:
    """The class with slots, and with an `__init__` that writes the rest when it is first called."""
    written = dict(cls.__dict__)
    annotations: dict[str, object] = written.get("__annotations__", {})
    if not _OWN.isdisjoint(written) or any(map(_is_pseudo, annotations.values())):
        return dataclasses.dataclass(frozen=frozen, eq=eq, slots=True)(cls)
    for name in ("__dict__", "__weakref__"):
        written.pop(name, None)
    inherited = {name for base in cls.__mro__[1:] for name in getattr(base, "__slots__", ())}
    body = {name: value for name, value in written.items() if name not in annotations}
    body["__slots__"] = tuple(name for name in annotations if name not in inherited)
    finished = False

    def finish() -> None:
        nonlocal finished
        with _lock:
            if not finished:
                _finish(made, written, frozen, eq)
                finished = True

    def __init__(self: object, *args: object, **named: object) -> None:  # noqa: N807  it stands in for that
        finish()
        made.__init__(self, *args, **named)  # type: ignore[misc]

    body |= {"__init__": __init__} | {name: _Later(name, finish) for name in (_FIELDS, _PARAMS, _SIGNATURE)}
    if frozen:
        body |= _FROZEN
    made = type(cls)(cls.__name__, cls.__bases__, body)
    made.__qualname__ = cls.__qualname__
    return made


def _is_pseudo(annotation: object) -> bool:
    """Does an annotation not make a field, or not a plain one?"""
    return not isinstance(annotation, str) or annotation.startswith(_PSEUDO)


def _finish(made: type, written: dict[str, Any], frozen: bool, eq: bool) -> None:
    """Give a class what the standard library gives to one of the same text."""
    text = type(made)(made.__name__, made.__bases__, {**written, "__doc__": made.__name__})
    standard: type = dataclasses.dataclass(frozen=frozen, repr=False, eq=False, slots=True)(text)
    fields = dataclasses.fields(standard)
    methods = {name: standard.__dict__[name] for name in (_PARAMS, "__match_args__")}
    if eq:
        hashed = [each.name for each in fields if (each.compare if each.hash is None else each.hash)]
        methods["__eq__"] = _equality([each.name for each in fields if each.compare])
        methods["__hash__"] = _hashing(hashed) if frozen else None
    if "__repr__" not in written:
        methods["__repr__"] = _representation([each.name for each in fields if each.repr])
    for name, method in methods.items():
        setattr(made, name, method)
    delattr(made, _SIGNATURE)  # from now on it is read off `__init__`
    for name in (_FIELDS, "__init__"):
        setattr(made, name, standard.__dict__[name])


def _equality(names: list[str]) -> Callable[[object, object], bool]:
    values = _values_of(names)

    def __eq__(self: object, other: object) -> bool:  # noqa: N807
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return __eq__


def _hashing(names: list[str]) -> Callable[[object], int]:
    values = _values_of(names)

    def __hash__(self: object) -> int:  # noqa: N807
        return hash(values(self))

    return __hash__


def _representation(names: list[str]) -> Callable[[object], str]:
    @recursive_repr()
    def __repr__(self: object) -> str:  # noqa: N807
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{self.__class__.__qualname__}({values})"

    return __repr__


def _values_of(names: list[str]) -> Callable[[object], object]:
    """Reads the values of some fields, as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda record: tuple(getattr(record, name) for name in names)


def _refuse_assignment(_self: object, name: str, _: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(_self: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[object]:
    return [getattr(self, each.name) for each in dataclasses.fields(self)]


def _set_state(self: Any, state: list[object]) -> None:
    for each, value in zip(dataclasses.fields(self), state, strict=False):
        object.__setattr__(self, each.name, value)


_FROZEN: Final = {
    "__setattr__": _refuse_assignment,
    "__delattr__": _refuse_deletion,
    "__getstate__": _state,
    "__setstate__": _set_state,
}
