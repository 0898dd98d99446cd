"""Dataclasses whose methods are written late: `__init__` once there are some instances, others when they are used.

The standard library compiles six functions for each dataclass as soon as its module is imported. A program that
asks one question imports some two hundred dataclasses, uses half of them, and most of those once or twice: their
first instances are filled field by field, which takes a few microseconds, and writing `__init__` takes fifty.
`dataclass` here is the standard one to type checkers and to all who use the classes; modules that a first query
imports take theirs from here.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError
from functools import cache, partial
from operator import attrgetter
from reprlib import recursive_repr
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls: type | None = None, /, **options: bool) -> Any:
        """What `dataclasses.dataclass` is; later for classes that ask for nothing unusual."""
        if cls is None and options and options.keys() <= _USUAL:
            return partial(
                _deferred, options.get("slots", False), options.get("frozen", False), options.get("eq", True)
            )
        return dataclasses.dataclass(cls, **options)


_USUAL: Final = {"frozen", "slots", "eq"}
_OWN: Final = frozenset(
    ("__init__", "__eq__", "__hash__", "__setattr__", "__delattr__", "__getstate__", "__setstate__", "__slots__")
)
_OF_THE_CLASS: Final = ("ClassVar", "typing.ClassVar")
_PSEUDO: Final = ("InitVar", "KW_ONLY", "dataclasses.")
_FIELDS: Final = "__dataclass_fields__"
_PARAMS: Final = "__dataclass_params__"
_SIGNATURE: Final = "__signature__"
_VALUES: Final = "__record_values__"
_PLAIN: Final = dataclasses._FIELD  # type: ignore[attr-defined]  # the kind that every field here has
_UNSET: Final = dataclasses._HAS_DEFAULT_FACTORY  # type: ignore[attr-defined]  # <factory> in signatures
_FEW: Final = 12
"""So many instances of a class are filled field by field."""
_lock: Final = threading.RLock()


class _Later:
    """Something about a dataclass that is known once it is described, which it is when this is first asked for."""

    def __init__(self, name: str, describe: Callable[[], None]) -> None:
        self._name, self._describe = name, describe

    def __get__(self, instance: object, owner: type) -> Any:
        self._describe()
        return getattr(owner if instance is None else instance, self._name)


def _deferred(slots: bool, frozen: bool, eq: bool, cls: type) -> type:
    """The class. Its `__init__` is written once there are some instances, everything else when it is asked for."""
    written = dict(cls.__dict__)
    annotations = {name: of for name, of in written.get("__annotations__", {}).items() if not _is_of_the_class(of)}
    if not _OWN.isdisjoint(written) or any(map(_is_pseudo, annotations.values())) or _has_standard_base(cls):
        return dataclasses.dataclass(frozen=frozen, eq=eq, slots=slots)(cls)

    instances = 0
    plan: _Plan | None = None

    def initialize() -> None:
        with _lock:
            if made.__dict__["__init__"] is __init__:
                _initialize(made, _plan_of(made), frozen)

    def describe() -> None:
        with _lock:
            initialize()
            if isinstance(made.__dict__[_FIELDS], _Later):
                _describe(made, slots, frozen, eq)

    def __init__(self: object, *args: object, **named: object) -> None:  # noqa: N807  it stands in for that
        nonlocal instances, plan
        instances += 1
        if instances <= _FEW:
            plan = plan or _plan_of(made)
            if _is_filled(self, plan, args, named, frozen):
                if plan.post:
                    self.__post_init__()  # type: ignore[attr-defined]
                return
        initialize()
        made.__init__(self, *args, **named)  # type: ignore[misc]

    later = [_FIELDS, _PARAMS, _SIGNATURE, *(["__eq__", "__hash__"] if eq else [])]
    later += [] if "__repr__" in written else ["__repr__"]
    added: dict[str, Any] = {_VALUES: {name: written.get(name, MISSING) for name in annotations}}
    added |= {"__init__": __init__} | {name: _Later(name, describe) for name in later}
    if eq and not frozen:
        added["__hash__"] = None
    if slots:
        made = _with_slots(cls, written, annotations, added | (_FROZEN if frozen else {}))
    else:
        made = _with_defaults(cls, added | (_frozen(cls, annotations) if frozen else {}))
    return made


def _with_slots(cls: type, written: dict[str, Any], annotations: dict[str, object], added: dict[str, Any]) -> type:
    """A class in the place of another, with slots for its fields."""
    inherited = {name for base in cls.__mro__[1:] for name in getattr(base, "__slots__", ())}
    left_out = {"__dict__", "__weakref__", *annotations}
    body = {name: value for name, value in written.items() if name not in left_out}
    body["__slots__"] = tuple(name for name in annotations if name not in inherited)
    made = type(cls)(cls.__name__, cls.__bases__, body | added)
    made.__qualname__ = cls.__qualname__
    return made


def _with_defaults(cls: type, added: dict[str, Any]) -> type:
    """The class itself, whose fields have no slots and whose attributes are the defaults of its fields."""
    for name, value in added[_VALUES].items():
        if isinstance(value, Field):
            if value.default is MISSING:
                delattr(cls, name)
            else:
                setattr(cls, name, value.default)
    for name, value in added.items():
        setattr(cls, name, value)
    return cls


def _frozen(cls: type, annotations: dict[str, object]) -> dict[str, Any]:
    """What keeps the fields of a class without slots as they are; a subclass may have others of its own."""

    def __setattr__(self: object, name: str, value: object) -> None:  # noqa: N807
        if type(self) is cls or name in annotations:
            _refuse_assignment(self, name, value)
        super(cls, self).__setattr__(name, value)  # type: ignore[arg-type]

    def __delattr__(self: object, name: str) -> None:  # noqa: N807
        if type(self) is cls or name in annotations:
            _refuse_deletion(self, name)
        super(cls, self).__delattr__(name)  # type: ignore[arg-type]

    return {"__setattr__": __setattr__, "__delattr__": __delattr__}


def _is_of_the_class(annotation: object) -> bool:
    """Does an annotation tell of an attribute that all instances share?"""
    return isinstance(annotation, str) and annotation.startswith(_OF_THE_CLASS)


def _is_pseudo(annotation: object) -> bool:
    """Does an annotation not make a field, or not a plain one?"""
    return not isinstance(annotation, str) or annotation.startswith(_PSEUDO)


def _has_standard_base(cls: type) -> bool:
    return any(_FIELDS in base.__dict__ and _VALUES not in base.__dict__ for base in cls.__mro__[1:])


def _describe(made: type, slots: bool, frozen: bool, eq: bool) -> None:
    """Give a class what the standard library gives to one of the same text, but for its `__init__`."""
    fields: dict[str, Field[Any]] = {}
    for base in reversed(made.__mro__):
        for name, value in base.__dict__.get(_VALUES, {}).items():
            own: Any = value if isinstance(value, Field) else dataclasses.field(default=value)
            own.name, own.type, own.kw_only, own._field_type = name, base.__annotations__[name], False, _PLAIN
            fields[name] = own
    methods: dict[str, Any] = {_PARAMS: _params(slots, frozen, eq), _FIELDS: fields}
    if eq:
        hashed = [each.name for each in fields.values() if (each.compare if each.hash is None else each.hash)]
        methods["__eq__"] = _equality([each.name for each in fields.values() if each.compare])
        methods["__hash__"] = _hashing(hashed) if frozen else None
    if isinstance(made.__dict__["__repr__"], _Later):
        methods["__repr__"] = _representation([each.name for each in fields.values() if each.repr])
    delattr(made, _SIGNATURE)  # from now on it is read off `__init__`
    for name, method in methods.items():
        setattr(made, name, method)


@cache
def _params(slots: bool, frozen: bool, eq: bool) -> object:
    """What the standard library notes about such a class."""
    sample = type("Sample", (), {"__doc__": "A class without fields."})
    params: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots)(sample).__dict__[_PARAMS]
    params.init, params.repr, params.eq, params.frozen = True, True, eq, frozen
    return params


_GIVEN, _MADE_IF_UNSET, _ALWAYS_MADE, _CONSTANT, _ABSENT = "gmacn"


class _Plan(NamedTuple):
    """What an instance of a class is made of."""

    fields: list[tuple[str, str, object, Any]]
    """By field: its name, where its value comes from, its default, and what makes it if it is not given."""
    taken: list[str]
    """The fields that can be given, …"""
    defaults: list[object]
    """… and the defaults of the last of them."""
    types: dict[str, object]
    post: bool
    """Is there something to do behind?"""


def _plan_of(made: type) -> _Plan:
    """What an instance of a class is made of, with the mistakes that the standard library finds in a class."""
    values: dict[str, Any] = {}
    types: dict[str, Any] = {}
    for base in reversed(made.__mro__):
        own = base.__dict__.get(_VALUES)
        if own:
            values |= own
            types |= base.__annotations__
    fields = [(name, *_source_of(name, value)) for name, value in values.items()]
    taken: list[str] = []
    defaults: list[object] = []
    for name, kind, default, _ in fields:
        if kind in (_GIVEN, _MADE_IF_UNSET):
            taken.append(name)
            if default is not MISSING:
                defaults.append(default)
            elif defaults:
                raise TypeError(f"field {name} without default follows one with a default in {made.__qualname__}")
    setattr(made, "__match_args__", tuple(taken))  # noqa: B010
    return _Plan(fields, taken, defaults, types, hasattr(made, "__post_init__"))


def _is_filled(
    record: object, plan: _Plan, args: tuple[object, ...], named: dict[str, object], frozen: bool
) -> bool:
    """Give an instance the values of its fields; False if they cannot be those of the arguments."""
    taken = plan.taken
    given = dict(zip(taken, args, strict=False))
    if len(args) > len(taken) or not (named.keys() <= set(taken)) or not given.keys().isdisjoint(named):
        return False
    given |= named
    assign = object.__setattr__ if frozen else setattr
    for name, kind, default, source in plan.fields:
        value = given.get(name, default)
        if kind == _GIVEN:
            if value is MISSING:
                return False
        elif kind == _CONSTANT:
            value = source
        elif kind == _ABSENT:
            continue
        elif value is _UNSET:
            value = source()
        assign(record, name, value)
    return True


def _initialize(made: type, plan: _Plan, frozen: bool) -> None:
    """Give a class its `__init__`: code that is compiled once for classes of the same shape, with its names."""
    code = _compiled("".join([kind for _, kind, _, _ in plan.fields]), frozen, plan.post)
    names = {f"a{index}": name for index, (name, *_) in enumerate(plan.fields)}
    code = code.replace(
        co_varnames=tuple([names.get(name, name) for name in code.co_varnames]),
        co_names=tuple([names.get(name, name) for name in code.co_names]),
        co_consts=tuple([names.get(const, const) for const in code.co_consts]),
    )
    known: dict[str, object] = {"assign": object.__setattr__, "UNSET": _UNSET}
    known |= {f"made{index}": source for index, (_, _, _, source) in enumerate(plan.fields)}
    init: Any = FunctionType(code, known, "__init__", tuple(plan.defaults))
    init.__qualname__ = f"{made.__qualname__}.__init__"
    init.__annotations__ = {name: plan.types[name] for name in plan.taken} | {"return": None}
    made.__init__ = init  # type: ignore[misc]


def _source_of(name: str, value: Any) -> tuple[str, object, object]:
    """Where the value of a field comes from, its default, and what makes it if it is not given."""
    if not isinstance(value, Field):
        if value.__class__.__hash__ is None:
            raise ValueError(f"mutable default {type(value)} for field {name} is not allowed: use default_factory")
        return _GIVEN, value, None
    if value.default_factory is not MISSING:
        return _MADE_IF_UNSET if value.init else _ALWAYS_MADE, _UNSET, value.default_factory
    if value.init:
        return _GIVEN, value.default, None
    return _ABSENT if value.default is MISSING else _CONSTANT, value.default, value.default


@cache
def _compiled(shape: str, frozen: bool, post: bool) -> CodeType:
    """An `__init__` of the fields `a0`, `a1` and so on."""
    values = {
        _GIVEN: "a{0}",
        _MADE_IF_UNSET: "made{0}() if a{0} is UNSET else a{0}",
        _ALWAYS_MADE: "made{0}()",
        _CONSTANT: "made{0}",
    }
    line = " assign(self, 'a{0}', {1})" if frozen else " self.a{0} = {1}"
    taken = [f"a{index}" for index, kind in enumerate(shape) if kind in (_GIVEN, _MADE_IF_UNSET)]
    lines = [line.format(index, values[kind].format(index)) for index, kind in enumerate(shape) if kind != _ABSENT]
    lines.append(" self.__post_init__()" if post else " pass")
    text = "\n".join([f"def __init__({', '.join(['self', *taken])}):", *lines])
    (code,) = (const for const in compile(text, "<record>", "exec").co_consts if isinstance(const, CodeType))
    return code


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
