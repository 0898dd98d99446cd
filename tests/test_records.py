"""Dataclasses that are written late behave as those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import field
from typing import Any, ClassVar, Generic, TypeVar

import pytest

from omnigraph import records

T = TypeVar("T")


def family(dataclass: Callable[..., Any]) -> dict[str, Any]:
    """Classes of many shapes, made by one of the two decorators."""

    @dataclass(frozen=True, slots=True)
    class Point:
        x: int
        y: int = 2
        note: str = field(default="", compare=False, repr=False)
        seen: list[int] = field(default_factory=list, hash=False)

        def moved(self) -> Any:
            return dataclasses.replace(self, x=self.x + 1)

    @dataclass(frozen=True, slots=True)
    class Named(Point):
        name: str = "p"
        y: int = 7

        def __post_init__(self) -> None:
            if self.name == "":
                raise ValueError("a name is empty")

    @dataclass(frozen=True, slots=True)
    class Empty: ...

    @dataclass(frozen=True, slots=True)
    class Single:
        value: float

    @dataclass(slots=True)
    class Open:
        value: int
        more: Any = None
        count: int = field(default=0, init=False)

    @dataclass(frozen=True, slots=True, eq=False)
    class Unequal:
        value: int

    @dataclass(frozen=True, slots=True)
    class Box(Generic[T]):
        value: T

        def __repr__(self) -> str:
            return f"<{self.value}>"

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Words(Point):
        last: int = 1

    @dataclass(frozen=True, slots=True)
    class Sentence(Words):
        mark: str = "."

    @dataclass(slots=True)
    class Made:
        given: int
        listed: list[int] = field(default_factory=list)
        counted: dict[str, int] = field(default_factory=dict, init=False)
        later: int = field(init=False, repr=False, compare=False)

        def __post_init__(self) -> None:
            self.later = self.given + len(self.listed)

    class Plain(Named):
        __slots__ = ()

    @dataclass(frozen=True)
    class Loose:
        x: int
        y: int = field(default=3, repr=False)
        seen: list[int] = field(default_factory=list, hash=False)
        kind: ClassVar[str] = "loose"

        @functools.cached_property
        def twice(self) -> int:
            return 2 * self.x

    @dataclass(frozen=True)
    class Looser(Loose):
        z: int = 4

        def __repr__(self) -> str:
            return f"<{self.x} {self.z}>"

    class Loosest(Loose):
        def __init__(self, x: int) -> None:
            super().__init__(x)
            self.own = x

    @dataclass(frozen=True, slots=True)
    class Shared:
        x: int
        kind: ClassVar[str] = "shared"
        unset: ClassVar[int]

    @dataclass(eq=False)
    class Changing:
        x: int
        y: int = 1

    kinds = [Point, Named, Empty, Single, Open, Unequal, Box, Words, Sentence, Made, Plain]
    kinds += [Loose, Looser, Loosest, Shared, Changing]
    for kind in kinds:
        kind.__qualname__ = kind.__name__
    return {kind.__name__: kind for kind in kinds}


def outcome(expression: str, kinds: dict[str, Any]) -> object:
    """What an expression gives with a family, or how it fails."""
    try:
        return eval(expression, {**kinds, "d": dataclasses, "copy": copy})
    except Exception as error:  # noqa: BLE001  failures are compared as well
        return type(error).__name__


@pytest.mark.parametrize(
    "expression",
    [
        "repr(Point(1))",
        "repr(Plain(1, name='q'))",
        "repr(Box([1]))",
        "Point(1) == Point(1, note='other')",
        "Point(1) == Point(1, seen=[3])",
        "Point(1) == Named(1, 2)",
        "Point(1) != 1",
        "hash(Point(1, seen=[1])) == hash(Point(1, seen=[2]))",
        "len({Point(1), Point(1), Point(2)})",
        "hash(Open(1))",
        "Unequal(1) == Unequal(1)",
        "len({Unequal(1), Unequal(1)})",
        "Empty() == Empty()",
        "Single(float('nan')) == Single(float('nan'))",
        "(lambda nan: Single(nan) == Single(nan))(float('nan'))",
        "Point()",
        "Point(1, z=2)",
        "Named(1, name='')",
        "Words(1, last=3).last",
        "Words(1, 2, '', [], 3)",
        "repr(Sentence(1, 2, last=4, mark='!'))",
        "Sentence(1, 2, '', [], '!').mark",
        "repr(Made(1)), Made(1, [2, 3]).later, Made(1).listed is Made(1).listed",
        "repr(Made(1, listed=[2]).counted)",
        "Made(1, [], {})",
        "Made(1, given=2)",
        "Made(listed=[1])",
        "Made(listed=[1], given=2).listed",
        "Named(1, seen=[1], name='q') == Named(x=1, name='q', seen=[1])",
        "Point(1, 2, '', [], 5)",
        "d.asdict(Named(1, seen=[4]))",
        "d.replace(Named(1), name='z').name",
        "Point(1).moved().x",
        "setattr(Point(1), 'x', 2)",
        "delattr(Point(1), 'x')",
        "setattr(Open(1), 'value', 2)",
        "Open(1).count",
        "setattr(Open(1), 'other', 2)",
        "Open(1, 2, 3)",
        "[f.name for f in d.fields(Named)]",
        "d.is_dataclass(Box), d.is_dataclass(Plain)",
        "Named.__match_args__ if Named(1) else None",
        "Point.__slots__, Named.__slots__",
        "Named.__dataclass_params__.frozen",
        "repr(copy.deepcopy(Named(1, seen=[5])))",
        "repr(Loose(1)), Loose(1) == Loose(1), Loose(1) == Loose(2), Loose(1) == Looser(1)",
        "hash(Loose(1)) == hash(Loose(1)), len({Loose(1), Loose(2), Loose(1)})",
        "Loose(2).twice, vars(Loose(2)), Loose.y, Loose.kind, Loose(1).kind, hasattr(Loose, 'seen')",
        "(lambda o: (o.twice, vars(o)))(Loose(2))",
        "setattr(Loose(1), 'x', 2)",
        "setattr(Loose(1), 'other', 2)",
        "delattr(Loose(1), 'x')",
        "repr(Looser(1, z=5)), Looser.__match_args__ if Looser(1) else None",
        "Loosest(1).own, repr(Loosest(2)), vars(Loosest(3))",
        "setattr(Loosest(1), 'own', 2)",
        "setattr(Loosest(1), 'x', 2)",
        "delattr(Loosest(1), 'own')",
        "delattr(Loosest(1), 'y')",
        "d.replace(Looser(1), x=2).x, d.asdict(Looser(1)), [f.name for f in d.fields(Looser)]",
        "repr(copy.deepcopy(Loose(1, seen=[5])))",
        "repr(Shared(1)), Shared.kind, Shared(1).kind, [f.name for f in d.fields(Shared)], Shared.__slots__",
        "Shared(1).unset",
        "Changing(1) == Changing(1), vars(Changing(1)), repr(Changing(1, 2))",
        "(lambda o: (setattr(o, 'x', 3), setattr(o, 'new', 4), vars(o)))(Changing(1))",
        "Loose.__dataclass_params__.frozen, Changing.__eq__ is object.__eq__",
        "repr((lambda o: setattr(o, 'more', o) or o)(Open(1)))",
    ],
)
def test_late_dataclasses_are_like_the_standard_ones(expression: str) -> None:
    late, standard = family(records.dataclass), family(dataclasses.dataclass)
    for instances in range(8):  # the first ones are made in another way than those that follow
        assert outcome(expression, late) == outcome(expression, standard), f"after {instances} instances"


@pytest.mark.parametrize(
    "name", ["Point", "Named", "Open", "Box", "Sentence", "Made", "Plain", "Looser", "Shared"]
)
def test_a_signature_is_known_before_the_first_instance(name: str) -> None:
    late, standard = family(records.dataclass), family(dataclasses.dataclass)
    assert inspect.signature(late[name]) == inspect.signature(standard[name])


def test_mistakes_in_a_class_are_errors_of_the_same_kind() -> None:
    @records.dataclass(frozen=True, slots=True)
    class Shared:
        seen: list[int] = []  # noqa: RUF012

    @records.dataclass(slots=True)
    class Disordered:
        x: int = 1
        y: int  # type: ignore[misc]

    with pytest.raises(ValueError, match="default_factory"):
        Shared()
    with pytest.raises(TypeError, match="without default"):
        Disordered(1, 2)


@records.dataclass(frozen=True, slots=True)
class Travelling:
    """A value that is pickled."""

    x: int
    y: tuple[int, ...] = ()


def test_late_dataclasses_are_pickled_into_processes_that_have_made_none() -> None:
    code = "import pickle, sys; print(pickle.load(sys.stdin.buffer))"
    sent = pickle.dumps(Travelling(1, (2,)))
    ran = subprocess.run([sys.executable, "-c", code], input=sent, capture_output=True, check=True)
    assert ran.stdout.decode().strip() == "Travelling(x=1, y=(2,))"
    assert pickle.loads(sent) == Travelling(1, (2,))


def test_many_threads_may_make_the_first_instance() -> None:
    for _ in range(20):
        kinds = family(records.dataclass)
        start = threading.Barrier(8)
        made: list[Any] = []

        def make(kinds: dict[str, Any] = kinds, start: threading.Barrier = start, made: list[Any] = made) -> None:
            start.wait()
            made.append(kinds["Named"](1, name="t"))

        threads = [threading.Thread(target=make) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert made == [kinds["Named"](1, name="t")] * 8
