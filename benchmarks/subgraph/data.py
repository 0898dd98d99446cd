"""A network of persons, forums, posts and comments with tags, in the style of LDBC's LSQB, as Arrow tables.

Knowing is mutual and stored in both directions. No two edges of a type join the same two nodes, so that engines
which count edges agree with engines which count neighbours. Degrees are skewed: few have many.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]

COUNTRIES: Final = 50
CITIES: Final = 600
TAG_CLASSES: Final = 40
TAGS: Final = 1_500
NEARBY: Final = 40
"""How far apart, in the order of cities, persons are who know each other because they are near."""


def generate(persons: int, seed: int) -> dict[str, pa.Table]:
    """Every table of the graph: nodes have an ``id``, edges ``src`` and ``dst``."""
    rng = np.random.default_rng(seed)
    forums, posts, comments = persons // 20, persons * 3, persons * 8
    home = np.sort(_skewed(rng, CITIES, persons, 0.5))
    knows_from, knows_to = _knows(rng, persons)

    author = _skewed(rng, persons, posts, 0.5)
    fame = rng.permutation(posts)
    parent = fame[_skewed(rng, posts, comments, 0.5)]
    writer = _writers(rng, author[parent], knows_from, knows_to, persons)
    post_tags = _pairs(_each(posts, 2), _skewed(rng, TAGS, posts * 2, 0.6), TAGS)
    members = _pairs(_skewed(rng, forums, persons * 2, 0.6), rng.integers(0, persons, persons * 2), persons)
    likes = _pairs(rng.integers(0, persons, persons * 12), fame[_skewed(rng, posts, persons * 12, 0.5)], posts)
    interests = _pairs(_each(persons, 3), _skewed(rng, TAGS, persons * 3, 0.6), TAGS)
    sizes = {
        "Person": persons,
        "City": CITIES,
        "Country": COUNTRIES,
        "Forum": forums,
        "Post": posts,
        "Comment": comments,
        "Tag": TAGS,
        "TagClass": TAG_CLASSES,
    }
    return {
        **{label: pa.table({"id": np.arange(1, size + 1)}) for label, size in sizes.items()},
        "Knows": _edges(knows_from, knows_to),
        "IsLocatedIn": _edges(np.arange(persons), home),
        "IsPartOf": _edges(np.arange(CITIES), np.arange(CITIES) * COUNTRIES // CITIES),
        "HasMember": _edges(*members),
        "ContainerOf": _edges(_skewed(rng, forums, posts, 0.6), np.arange(posts)),
        "PostCreator": _edges(np.arange(posts), author),
        "CommentCreator": _edges(np.arange(comments), writer),
        "ReplyOf": _edges(np.arange(comments), parent),
        "PostTag": _edges(*post_tags),
        "CommentTag": _edges(*_comment_tags(rng, parent, *post_tags, posts)),
        "HasType": _edges(np.arange(TAGS), rng.integers(0, TAG_CLASSES, TAGS)),
        "HasInterest": _edges(*interests),
        "Likes": _edges(*likes),
    }


def _edges(src: Ints, dst: Ints) -> pa.Table:
    """Edges ordered by source and target; ids count from one."""
    order = np.lexsort((dst, src))
    return pa.table({"src": src[order].astype(np.int64) + 1, "dst": dst[order].astype(np.int64) + 1})


def _skewed(rng: np.random.Generator, among: int, count: int, power: float) -> Ints:
    """Numbers below ``among``, of which the small ones are frequent as in a power law."""
    weights = (np.arange(among) + 5.0) ** -power
    reach = np.cumsum(weights) / weights.sum()
    return np.minimum(np.searchsorted(reach, rng.random(count)), among - 1).astype(np.int64)


def _each(count: int, times: int) -> Ints:
    return np.repeat(np.arange(count), times)


def _pairs(left: Ints, right: Ints, width: int) -> tuple[Ints, Ints]:
    """Each pair once."""
    both = np.unique(left * width + right)
    return both // width, both % width


def _knows(rng: np.random.Generator, persons: int) -> tuple[Ints, Ints]:
    """Neighbours, who know each other's neighbours, and a power law of acquaintances all over the world."""
    near = rng.integers(0, persons, persons * 6)
    beside = (near + rng.integers(1, NEARBY, len(near))) % persons
    world = rng.permutation(persons)
    far, away = world[_skewed(rng, persons, persons * 4, 0.4)], world[_skewed(rng, persons, persons * 4, 0.4)]
    one, other = np.concatenate([near, far]), np.concatenate([beside, away])
    one, other = one[one != other], other[one != other]
    return _pairs(np.concatenate([one, other]), np.concatenate([other, one]), persons)


def _writers(rng: np.random.Generator, authors: Ints, src: Ints, dst: Ints, persons: int) -> Ints:
    """Every other comment is by someone who knows the author of the post."""
    degrees = np.bincount(src, minlength=persons)
    starts = np.concatenate([[0], np.cumsum(degrees)])
    pick = starts[authors] + (rng.random(len(authors)) * degrees[authors]).astype(np.int64)
    friends = dst[np.minimum(pick, len(dst) - 1)]
    known = (rng.random(len(authors)) < 0.5) & (degrees[authors] > 0)
    return np.where(known, friends, rng.integers(0, persons, len(authors)))


def _comment_tags(rng: np.random.Generator, parents: Ints, post: Ints, tag: Ints, posts: int) -> tuple[Ints, Ints]:
    """Four of ten comments repeat a tag of their post; each has one tag of its own choice."""
    degrees = np.bincount(post, minlength=posts)
    starts = np.concatenate([[0], np.cumsum(degrees)])
    repeated = tag[starts[parents] + (rng.random(len(parents)) * degrees[parents]).astype(np.int64)]
    repeats = np.flatnonzero(rng.random(len(parents)) < 0.4)
    comments = np.concatenate([repeats, np.arange(len(parents))])
    return _pairs(comments, np.concatenate([repeated[repeats], _skewed(rng, TAGS, len(parents), 0.6)]), TAGS)
