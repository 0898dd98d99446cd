"""The nine patterns of the subgraph benchmark by hand in NumPy: products of degrees, and triangles listed once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
from benchmarks.contest import Row
from benchmarks.floor import Answering, Ints, Tables

_HASHES: Final = 1 << 22


def answering(tables: Tables) -> dict[str, Answering]:
    """The arrays are built here; the answers only read them."""
    network = Network(tables)
    patterns: dict[str, Callable[[], int]] = {
        "1": network.chain,
        "2": network.cycle,
        "3": network.triangles_within_a_country,
        "4": network.star,
        "5": network.two_tags,
        "6": network.two_steps,
        "7": network.triangles,
        "8": network.two_tags_but_not_the_same,
        "9": network.two_steps_to_strangers,
    }
    return {number: _answer(count) for number, count in patterns.items()}


def _answer(count: Callable[[], int]) -> Answering:
    def answer(_: object) -> Sequence[Row]:
        return [(count(),)]

    return answer


class Network:
    """The graph as arrays. Nodes with one neighbour of a type have it in an array of their own."""

    def __init__(self, tables: Tables) -> None:
        self.persons, posts, comments = (tables.size(label) for label in ("Person", "Post", "Comment"))
        self.knows = tables.forward("Knows", self.persons)
        self.interests = tables.forward("HasInterest", self.persons)
        self.city, self.country = tables.single("IsLocatedIn"), tables.single("IsPartOf")
        self.members = tables.forward("HasMember", tables.size("Forum"))
        self.forum_posts = tables.forward("ContainerOf", tables.size("Forum"))
        self.author, self.writer = tables.single("PostCreator"), tables.single("CommentCreator")
        self.parent = tables.single("ReplyOf")
        self.replies = tables.backward("ReplyOf", posts)
        self.post_tags, self.comment_tags = (
            tables.forward("PostTag", posts),
            tables.forward("CommentTag", comments),
        )
        self.likes = tables.backward("Likes", posts)
        self.tags = tables.size("Tag")
        self.known = self.knows.sources * self.persons + self.knows.ends
        self.tagged = self.comment_tags.sources * self.tags + self.comment_tags.ends

    def chain(self) -> int:
        replies = np.bincount(self.parent, self.comment_tags.degrees, minlength=len(self.author))
        below = np.concatenate([[0], np.cumsum(replies[self.forum_posts.ends])])
        return int(self.members.degrees @ np.diff(below[self.forum_posts.starts]))

    def cycle(self) -> int:
        pairs = np.sort(self.writer * self.persons + self.author[self.parent])
        return int(_contains(self.known, pairs).sum())

    def triangles_within_a_country(self) -> int:
        country = self.country[self.city]
        src, dst = self.knows.sources, self.knows.ends
        near = country[src] == country[dst]
        return 6 * len(_triangles(src[near], dst[near], self.persons)[0])

    def star(self) -> int:
        return int((self.post_tags.degrees * self.likes.degrees * self.replies.degrees).sum())

    def two_tags(self) -> int:
        return self._pairs_of_tags() - len(self._shared_tags())

    def two_steps(self) -> int:
        return int((self.knows.degrees - 1)[self.knows.sources] @ self.interests.degrees[self.knows.ends])

    def triangles(self) -> int:
        return 6 * len(_triangles(self.knows.sources, self.knows.ends, self.persons)[0])

    def two_tags_but_not_the_same(self) -> int:
        return self._pairs_of_tags() - int(self.comment_tags.degrees[self._shared_tags()].sum())

    def two_steps_to_strangers(self) -> int:
        corners = _triangles(self.knows.sources, self.knows.ends, self.persons)
        return self.two_steps() - 2 * sum(int(self.interests.degrees[corner].sum()) for corner in corners)

    def _pairs_of_tags(self) -> int:
        """A tag of a comment with a tag of its post."""
        return int(self.post_tags.degrees[self.parent] @ self.comment_tags.degrees)

    def _shared_tags(self) -> Ints:
        """The comments that share a tag with their post, once for each such tag."""
        comment, at = _spread(self.post_tags.starts[self.parent], self.post_tags.degrees[self.parent])
        return comment[_contains(self.tagged, comment * self.tags + self.post_tags.ends[at])]


def _spread(starts: Ints, counts: Ints) -> tuple[Ints, Ints]:
    """For each i the numbers from ``starts[i]`` on, ``counts[i]`` of them, beside i."""
    owner = np.repeat(np.arange(len(counts)), counts)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    return owner, starts[owner] + within


def _contains(ascending: Ints, wanted: Ints) -> npt.NDArray[np.bool_]:
    """Which of the wanted numbers there are. A table of hashes rules most of the others out."""
    table = np.zeros(_HASHES, np.bool_)
    table[ascending & (_HASHES - 1)] = True
    found: npt.NDArray[np.bool_] = table[wanted & (_HASHES - 1)]
    maybe = np.flatnonzero(found)
    candidates = wanted[maybe]
    at = np.searchsorted(ascending, candidates)
    found[maybe] = ascending[np.minimum(at, len(ascending) - 1)] == candidates
    return found


def _triangles(src: Ints, dst: Ints, nodes: int) -> tuple[Ints, Ints, Ints]:
    """The corners of each triangle, once, in a graph whose edges are given in both directions.

    Edges are pointed towards the larger degree, so that few pairs of neighbours have to be tried.
    """
    order = np.argsort(np.bincount(src, minlength=nodes), kind="stable")
    rank = np.empty(nodes, np.int64)
    rank[order] = np.arange(nodes)
    src, dst = rank[src], rank[dst]
    edges = np.sort((src * nodes + dst)[src < dst])
    low, high = edges // nodes, edges % nodes
    ends = np.cumsum(np.bincount(low, minlength=nodes))[low]
    first, second = _spread(np.arange(1, len(edges) + 1), ends - np.arange(len(edges)) - 1)
    found = _contains(edges, high[first] * nodes + high[second])
    one, two = first[found], second[found]
    return order[low[one]], order[high[one]], order[high[two]]
