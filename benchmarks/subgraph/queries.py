"""The nine patterns of the subgraph benchmark, counted, in Cypher, SQL and .gq.

They are LSQB's, with posts in place of messages and a plain triangle in place of the optional pattern. Knowing is
stored in both directions and walked along its direction, so that everybody counts a triangle six times. Of several
ways to say a pattern each peer gets the fastest: in Cypher a triangle's third edge leaves the first corner, in SQL
a negation is an outer join. lance-graph cannot come back to a variable and closes cycles by comparing ids.
"""

from __future__ import annotations

from typing import Final

from benchmarks.contest import Question
from benchmarks.engines import Model

_NODES: Final = ("Person", "City", "Country", "Forum", "Post", "Comment", "Tag", "TagClass")
_EDGES: Final = {
    "Knows": ("Person", "Person"),
    "IsLocatedIn": ("Person", "City"),
    "IsPartOf": ("City", "Country"),
    "HasMember": ("Forum", "Person"),
    "ContainerOf": ("Forum", "Post"),
    "PostCreator": ("Post", "Person"),
    "CommentCreator": ("Comment", "Person"),
    "ReplyOf": ("Comment", "Post"),
    "PostTag": ("Post", "Tag"),
    "CommentTag": ("Comment", "Tag"),
    "HasType": ("Tag", "TagClass"),
    "HasInterest": ("Person", "Tag"),
    "Likes": ("Person", "Post"),
}

MODEL: Final = Model(
    nodes=_NODES,
    edges=_EDGES,
    schema="\n".join(
        [
            *(f"node {label} {{ id_: I64 @key }}" for label in _NODES),
            *(f"edge {label}: {source} -> {target}" for label, (source, target) in _EDGES.items()),
        ]
    ),
)

_NO_NEGATION: Final = "its Cypher has neither NOT of a pattern nor OPTIONAL MATCH"

QUESTIONS: Final = (
    Question(
        "1 chain of eight nodes",
        {
            "cypher": """
                MATCH (:Country)<-[:IsPartOf]-(:City)<-[:IsLocatedIn]-(:Person)<-[:HasMember]-(:Forum)
                      -[:ContainerOf]->(:Post)<-[:ReplyOf]-(:Comment)-[:CommentTag]->(:Tag)-[:HasType]->(:TagClass)
                RETURN count(*) AS count""",
            "sql": """
                SELECT count(*)
                FROM IsPartOf p JOIN IsLocatedIn l ON l.dst = p.src JOIN HasMember m ON m.dst = l.src
                JOIN ContainerOf o ON o.src = m.src JOIN ReplyOf r ON r.dst = o.dst
                JOIN CommentTag t ON t.src = r.src JOIN HasType h ON h.src = t.dst""",
            "gq": """query q() {
                match {
                  $country: Country
                  $city isPartOf $country
                  $person isLocatedIn $city
                  $forum hasMember $person
                  $forum containerOf $post
                  $comment replyOf $post
                  $comment commentTag $tag
                  $tag hasType $class
                }
                return { count($class) as count } }""",
        },
    ),
    Question(
        "2 cycle with comment and post",
        {
            "cypher": """
                MATCH (p1:Person)-[:Knows]->(p2:Person),
                      (p1)<-[:CommentCreator]-(c:Comment)-[:ReplyOf]->(m:Post)-[:PostCreator]->(p2)
                RETURN count(*) AS count""",
            "lance": """
                MATCH (p1:Person)<-[:CommentCreator]-(c:Comment)-[:ReplyOf]->(m:Post)
                      -[:PostCreator]->(p2:Person)-[:Knows]->(p3:Person)
                WHERE p3.id = p1.id RETURN count(*) AS count""",
            "sql": """
                SELECT count(*)
                FROM Knows k JOIN CommentCreator c ON c.dst = k.src JOIN ReplyOf r ON r.src = c.src
                JOIN PostCreator p ON p.src = r.dst AND p.dst = k.dst""",
            "gq": """query q() {
                match {
                  $p1: Person
                  $p1 knows $p2
                  $comment commentCreator $p1
                  $comment replyOf $post
                  $post postCreator $p2
                }
                return { count($post) as count } }""",
        },
    ),
    Question(
        "3 triangle within a country",
        {
            "cypher": """
                MATCH (country:Country)
                MATCH (p1:Person)-[:IsLocatedIn]->(c1:City)-[:IsPartOf]->(country)
                MATCH (p2:Person)-[:IsLocatedIn]->(c2:City)-[:IsPartOf]->(country)
                MATCH (p3:Person)-[:IsLocatedIn]->(c3:City)-[:IsPartOf]->(country)
                MATCH (p1)-[:Knows]->(p2)-[:Knows]->(p3), (p1)-[:Knows]->(p3)
                RETURN count(*) AS count""",
            "lance": """
                MATCH (p1:Person)-[:Knows]->(p2:Person)-[:Knows]->(p3:Person)-[:Knows]->(p4:Person),
                      (p1)-[:IsLocatedIn]->(c1:City)-[:IsPartOf]->(k1:Country),
                      (p2)-[:IsLocatedIn]->(c2:City)-[:IsPartOf]->(k2:Country),
                      (p3)-[:IsLocatedIn]->(c3:City)-[:IsPartOf]->(k3:Country)
                WHERE p4.id = p1.id AND k1.id = k2.id AND k2.id = k3.id RETURN count(*) AS count""",
            "sql": """
                WITH lives AS (SELECT l.src AS person, p.dst AS country
                               FROM IsLocatedIn l JOIN IsPartOf p ON p.src = l.dst)
                SELECT count(*)
                FROM Knows k1 JOIN Knows k2 ON k2.src = k1.dst JOIN Knows k3 ON k3.src = k2.dst AND k3.dst = k1.src
                JOIN lives l1 ON l1.person = k1.src
                JOIN lives l2 ON l2.person = k2.src AND l2.country = l1.country
                JOIN lives l3 ON l3.person = k3.src AND l3.country = l1.country""",
            "gq": """query q() {
                match {
                  $country: Country
                  $c1 isPartOf $country
                  $c2 isPartOf $country
                  $c3 isPartOf $country
                  $p1 isLocatedIn $c1
                  $p2 isLocatedIn $c2
                  $p3 isLocatedIn $c3
                  $p1 knows $p2
                  $p2 knows $p3
                  $p3 knows $p1
                }
                return { count($p1) as count } }""",
        },
    ),
    Question(
        "4 star around a post",
        {
            "cypher": """
                MATCH (:Tag)<-[:PostTag]-(m:Post)-[:PostCreator]->(:Person),
                      (m)<-[:Likes]-(:Person), (m)<-[:ReplyOf]-(:Comment)
                RETURN count(*) AS count""",
            "sql": """
                SELECT count(*)
                FROM PostTag t JOIN PostCreator c ON c.src = t.src JOIN Likes l ON l.dst = t.src
                JOIN ReplyOf r ON r.dst = t.src""",
            "gq": """query q() {
                match {
                  $post: Post
                  $post postTag $tag
                  $post postCreator $creator
                  $liker likes $post
                  $comment replyOf $post
                }
                return { count($comment) as count } }""",
        },
    ),
    Question(
        "5 two tags, post and comment",
        {
            "cypher": """
                MATCH (t1:Tag)<-[:PostTag]-(:Post)<-[:ReplyOf]-(:Comment)-[:CommentTag]->(t2:Tag)
                WHERE t1.id <> t2.id RETURN count(*) AS count""",
            "sql": """
                SELECT count(*)
                FROM PostTag t1 JOIN ReplyOf r ON r.dst = t1.src JOIN CommentTag t2 ON t2.src = r.src
                WHERE t1.dst <> t2.dst""",
            "gq": """query q() {
                match {
                  $comment: Comment
                  $comment replyOf $post
                  $post postTag $t1
                  $comment commentTag $t2
                  $t1.id_ != $t2.id_
                }
                return { count($t2) as count } }""",
        },
    ),
    Question(
        "6 two steps, then an interest",
        {
            "cypher": """
                MATCH (p1:Person)-[:Knows]->(:Person)-[:Knows]->(p3:Person)-[:HasInterest]->(:Tag)
                WHERE p1.id <> p3.id RETURN count(*) AS count""",
            "sql": """
                SELECT count(*)
                FROM Knows k1 JOIN Knows k2 ON k2.src = k1.dst JOIN HasInterest i ON i.src = k2.dst
                WHERE k1.src <> k2.dst""",
            "gq": """query q() {
                match {
                  $p1: Person
                  $p1 knows $p2
                  $p2 knows $p3
                  $p3 hasInterest $tag
                  $p1.id_ != $p3.id_
                }
                return { count($tag) as count } }""",
        },
    ),
    Question(
        "7 triangle",
        {
            "cypher": """
                MATCH (p1:Person)-[:Knows]->(p2:Person)-[:Knows]->(p3:Person), (p1)-[:Knows]->(p3)
                RETURN count(*) AS count""",
            "lance": """
                MATCH (p1:Person)-[:Knows]->(p2:Person)-[:Knows]->(p3:Person)-[:Knows]->(p4:Person)
                WHERE p4.id = p1.id RETURN count(*) AS count""",
            "sql": """
                SELECT count(*)
                FROM Knows k1 JOIN Knows k2 ON k2.src = k1.dst
                JOIN Knows k3 ON k3.src = k2.dst AND k3.dst = k1.src""",
            "gq": """query q() {
                match { $p1: Person  $p1 knows $p2  $p2 knows $p3  $p3 knows $p1 }
                return { count($p1) as count } }""",
        },
    ),
    Question(
        "8 two tags, not the post's own",
        {
            "cypher": """
                MATCH (t1:Tag)<-[:PostTag]-(:Post)<-[:ReplyOf]-(c:Comment)-[:CommentTag]->(t2:Tag)
                WHERE t1.id <> t2.id AND NOT (c)-[:CommentTag]->(t1) RETURN count(*) AS count""",
            "sql": """
                SELECT count(*)
                FROM PostTag t1 JOIN ReplyOf r ON r.dst = t1.src JOIN CommentTag t2 ON t2.src = r.src
                LEFT JOIN CommentTag x ON x.src = r.src AND x.dst = t1.dst
                WHERE t1.dst <> t2.dst AND x.src IS NULL""",
            "gq": """query q() {
                match {
                  $comment: Comment
                  $comment replyOf $post
                  $post postTag $t1
                  $comment commentTag $t2
                  $t1.id_ != $t2.id_
                  not { $comment commentTag $t1 }
                }
                return { count($t2) as count } }""",
        },
        refused={"lance": _NO_NEGATION},
    ),
    Question(
        "9 two steps to a stranger",
        {
            "cypher": """
                MATCH (p1:Person)-[:Knows]->(:Person)-[:Knows]->(p3:Person)-[:HasInterest]->(:Tag)
                WHERE p1.id <> p3.id AND NOT (p1)-[:Knows]->(p3) RETURN count(*) AS count""",
            "sql": """
                SELECT count(*)
                FROM Knows k1 JOIN Knows k2 ON k2.src = k1.dst JOIN HasInterest i ON i.src = k2.dst
                LEFT JOIN Knows x ON x.src = k1.src AND x.dst = k2.dst
                WHERE k1.src <> k2.dst AND x.src IS NULL""",
            "gq": """query q() {
                match {
                  $p1: Person
                  $p1 knows $p2
                  $p2 knows $p3
                  $p3 hasInterest $tag
                  $p1.id_ != $p3.id_
                  not { $p1 knows $p3 }
                }
                return { count($tag) as count } }""",
        },
        refused={"lance": _NO_NEGATION},
    ),
)
