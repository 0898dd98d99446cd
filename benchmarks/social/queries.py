"""The questions of the social benchmark in Cypher, SQL and .gq; equal counts are ordered by name or id.

Nine are those of a public study; three, about one person, those of a newer one. The Cypher is that of the studies,
except where one plain pattern is faster than its chain of WITH (2, 6, 7) and that texts are compared as they are,
not in lower case. SQL groups follows before it joins.
"""

from __future__ import annotations

from typing import Final

from benchmarks.contest import Question
from benchmarks.engines import Model

MODEL: Final = Model(
    nodes=("Person", "City", "State", "Country", "Interest"),
    edges={
        "Follows": ("Person", "Person"),
        "LivesIn": ("Person", "City"),
        "HasInterest": ("Person", "Interest"),
        "CityIn": ("City", "State"),
        "StateIn": ("State", "Country"),
    },
    schema="""
node Person { id_: I64 @key  name: String  gender: enum(female, male)  age: I32  isMarried: Bool  birthday: Date }
node City { id_: I64 @key  city: String  state: String  country: String  population: I64 }
node State { id_: I64 @key  state: String  country: String }
node Country { id_: I64 @key  country: String }
node Interest { id_: I64 @key  interest: String }
edge Follows: Person -> Person
edge LivesIn: Person -> City
edge HasInterest: Person -> Interest
edge CityIn: City -> State
edge StateIn: State -> Country
""",
)

QUESTIONS: Final = (
    Question(
        "1 top 3 most-followed",
        {
            "cypher": """
                MATCH (follower:Person)-[:Follows]->(person:Person)
                RETURN person.id AS personid, person.name AS name, count(follower.id) AS followers
                ORDER BY followers DESC, personid LIMIT 3""",
            "sql": """
                WITH counted AS (SELECT dst, count(*) AS followers FROM Follows GROUP BY dst
                                 ORDER BY followers DESC, dst LIMIT 3)
                SELECT p.id, p.name, followers FROM counted JOIN Person p ON p.id = dst
                ORDER BY followers DESC, p.id""",
            "gq": """query q() {
                match { $follower: Person  $follower follows $person }
                return { $person.id_ as id, $person.name as name, count($follower) as followers }
                order { followers desc, id } limit 3 }""",
        },
    ),
    Question(
        "2 home of the most-followed",
        {
            "cypher": """
                MATCH (follower:Person)-[:Follows]->(person:Person)-[:LivesIn]->(city:City)
                RETURN person.id AS personid, person.name AS name, count(follower.id) AS followers,
                       city.city AS city, city.state AS state, city.country AS country
                ORDER BY followers DESC, personid LIMIT 1""",
            "sql": """
                WITH counted AS (SELECT dst, count(*) AS followers FROM Follows GROUP BY dst
                                 ORDER BY followers DESC, dst LIMIT 1)
                SELECT p.id, p.name, followers, c.city, c.state, c.country
                FROM counted JOIN Person p ON p.id = dst
                JOIN LivesIn l ON l.src = p.id JOIN City c ON c.id = l.dst""",
            "gq": """query q() {
                match { $follower: Person  $follower follows $person  $person livesIn $city }
                return { $person.id_ as id, $person.name as name, count($follower) as followers,
                         $city.city as city, $city.state as state, $city.country as country }
                order { followers desc, id } limit 1 }""",
        },
    ),
    Question(
        "3 youngest cities of a country",
        {
            "cypher": """
                MATCH (p:Person)-[:LivesIn]->(c:City)-[*1..2]->(co:Country) WHERE co.country = $country
                RETURN c.city AS city, avg(p.age) AS age ORDER BY age, city LIMIT 5""",
            "lance": """
                MATCH (p:Person)-[:LivesIn]->(c:City)-[:CityIn]->(s:State)-[:StateIn]->(co:Country)
                WHERE co.country = $country
                RETURN c.city AS city, avg(p.age) AS age ORDER BY age, city LIMIT 5""",
            "sql": """
                SELECT c.city, avg(p.age) AS age
                FROM Person p JOIN LivesIn l ON l.src = p.id JOIN City c ON c.id = l.dst
                JOIN CityIn i ON i.src = c.id JOIN StateIn s ON s.src = i.dst JOIN Country co ON co.id = s.dst
                WHERE co.country = $country GROUP BY c.city ORDER BY age, c.city LIMIT 5""",
            "gq": """query q($country: String) {
                match { $co: Country { country: $country }  $s stateIn $co  $c cityIn $s  $p livesIn $c }
                return { $c.city as city, avg($p.age) as age }
                order { age, city } limit 5 }""",
        },
        {"country": "United States"},
    ),
    Question(
        "4 ages 30-40 per country",
        {
            "cypher": """
                MATCH (p:Person)-[:LivesIn]->(c:City)-[*1..2]->(co:Country)
                WHERE p.age >= $lower AND p.age <= $upper
                RETURN co.country AS country, count(co) AS persons ORDER BY persons DESC, country LIMIT 3""",
            "lance": """
                MATCH (p:Person)-[:LivesIn]->(c:City)-[:CityIn]->(s:State)-[:StateIn]->(co:Country)
                WHERE p.age >= $lower AND p.age <= $upper
                RETURN co.country AS country, count(co) AS persons ORDER BY persons DESC, country LIMIT 3""",
            "sql": """
                SELECT co.country, count(*) AS persons
                FROM Person p JOIN LivesIn l ON l.src = p.id JOIN CityIn i ON i.src = l.dst
                JOIN StateIn s ON s.src = i.dst JOIN Country co ON co.id = s.dst
                WHERE p.age BETWEEN $lower AND $upper
                GROUP BY co.country ORDER BY persons DESC, co.country LIMIT 3""",
            "gq": """query q($lower: I32, $upper: I32) {
                match {
                  $p: Person
                  $p.age >= $lower
                  $p.age <= $upper
                  $p livesIn $c
                  $c cityIn $s
                  $s stateIn $co
                }
                return { $co.country as country, count($p) as persons }
                order { persons desc, country } limit 3 }""",
        },
        {"lower": 30, "upper": 40},
    ),
    Question(
        "5 men in a city, one interest",
        {
            "cypher": """
                MATCH (p:Person)-[:HasInterest]->(i:Interest), (p)-[:LivesIn]->(c:City)
                WHERE i.interest = $interest AND p.gender = $gender AND c.city = $city AND c.country = $country
                RETURN count(p) AS persons""",
            "sql": """
                SELECT count(*)
                FROM Person p JOIN HasInterest h ON h.src = p.id JOIN Interest i ON i.id = h.dst
                JOIN LivesIn l ON l.src = p.id JOIN City c ON c.id = l.dst
                WHERE i.interest = $interest AND p.gender = $gender AND c.city = $city AND c.country = $country""",
            "gq": """query q($gender: String, $city: String, $country: String, $interest: String) {
                match {
                  $i: Interest { interest: $interest }
                  $c: City { city: $city, country: $country }
                  $p: Person { gender: $gender }
                  $p hasInterest $i
                  $p livesIn $c
                }
                return { count($p) as persons } }""",
        },
        {"interest": "Fine Dining", "gender": "male", "country": "United Kingdom", "city": "London"},
    ),
    Question(
        "6 women per city, one interest",
        {
            "cypher": """
                MATCH (p:Person)-[:HasInterest]->(i:Interest), (p)-[:LivesIn]->(c:City)
                WHERE i.interest = $interest AND p.gender = $gender
                RETURN count(p.id) AS persons, c.city AS city, c.country AS country
                ORDER BY persons DESC, city, country LIMIT 5""",
            "sql": """
                SELECT count(*) AS persons, c.city, c.country
                FROM Person p JOIN HasInterest h ON h.src = p.id JOIN Interest i ON i.id = h.dst
                JOIN LivesIn l ON l.src = p.id JOIN City c ON c.id = l.dst
                WHERE i.interest = $interest AND p.gender = $gender
                GROUP BY c.city, c.country ORDER BY persons DESC, c.city, c.country LIMIT 5""",
            "gq": """query q($gender: String, $interest: String) {
                match {
                  $i: Interest { interest: $interest }
                  $p: Person { gender: $gender }
                  $p hasInterest $i
                  $p livesIn $c
                }
                return { count($p) as persons, $c.city as city, $c.country as country }
                order { persons desc, city, country } limit 5 }""",
        },
        {"interest": "Tennis", "gender": "female"},
    ),
    Question(
        "7 state, ages 23-30, one interest",
        {
            "cypher": """
                MATCH (p:Person)-[:HasInterest]->(i:Interest),
                      (p)-[:LivesIn]->(c:City)-[:CityIn]->(s:State)
                WHERE p.age >= $lower AND p.age <= $upper AND s.country = $country AND i.interest = $interest
                RETURN count(p.id) AS persons, s.state AS state, s.country AS country
                ORDER BY persons DESC, state LIMIT 1""",
            "sql": """
                SELECT count(*) AS persons, s.state, s.country
                FROM Person p JOIN HasInterest h ON h.src = p.id JOIN Interest i ON i.id = h.dst
                JOIN LivesIn l ON l.src = p.id JOIN CityIn ci ON ci.src = l.dst JOIN State s ON s.id = ci.dst
                WHERE p.age BETWEEN $lower AND $upper AND s.country = $country AND i.interest = $interest
                GROUP BY s.state, s.country ORDER BY persons DESC, s.state LIMIT 1""",
            "gq": """query q($country: String, $lower: I32, $upper: I32, $interest: String) {
                match {
                  $i: Interest { interest: $interest }
                  $s: State { country: $country }
                  $p hasInterest $i
                  $p.age >= $lower
                  $p.age <= $upper
                  $p livesIn $c
                  $c cityIn $s
                }
                return { count($p) as persons, $s.state as state, $s.country as country }
                order { persons desc, state } limit 1 }""",
        },
        {"country": "United States", "lower": 23, "upper": 30, "interest": "Photography"},
    ),
    Question(
        "8 two-step follow paths",
        {
            "cypher": """
                MATCH (a:Person)-[:Follows]->(b:Person)-[:Follows]->(c:Person) RETURN count(*) AS paths""",
            "sql": "SELECT count(*) FROM Follows a JOIN Follows b ON a.dst = b.src",
            "gq": """query q() {
                match { $a: Person  $a follows $b  $b follows $c }
                return { count($c) as paths } }""",
        },
    ),
    Question(
        "9 the same with age limits",
        {
            "cypher": """
                MATCH (a:Person)-[:Follows]->(b:Person)-[:Follows]->(c:Person)
                WHERE b.age < $below AND c.age > $above RETURN count(*) AS paths""",
            "sql": """
                SELECT count(*)
                FROM Follows x JOIN Person b ON b.id = x.dst
                JOIN Follows y ON y.src = b.id JOIN Person c ON c.id = y.dst
                WHERE b.age < $below AND c.age > $above""",
            "gq": """query q($below: I32, $above: I32) {
                match { $a: Person  $a follows $b  $b.age < $below  $b follows $c  $c.age > $above }
                return { count($c) as paths } }""",
        },
        {"below": 50, "above": 25},
    ),
    Question(
        "10 one person",
        {
            "cypher": "MATCH (p:Person) WHERE p.id = $id RETURN p.name AS name, p.age AS age",
            "sql": "SELECT name, age FROM Person WHERE id = $id",
            "gq": """query q($id: I64) {
                match { $p: Person { id_: $id } } return { $p.name as name, $p.age as age } }""",
        },
        {"id": 4_321},
    ),
    Question(
        "11 whom one person follows",
        {
            "cypher": """
                MATCH (p:Person)-[:Follows]->(q:Person) WHERE p.id = $id
                RETURN q.id AS id, q.name AS name ORDER BY id""",
            "sql": """
                SELECT q.id, q.name FROM Follows f JOIN Person q ON q.id = f.dst
                WHERE f.src = $id ORDER BY q.id""",
            "gq": """query q($id: I64) {
                match { $p: Person { id_: $id }  $p follows $q }
                return { $q.id_ as id, $q.name as name } order { id } }""",
        },
        {"id": 4_321},
    ),
    Question(
        "12 within two steps",
        {
            "cypher": """
                MATCH (p:Person)-[:Follows*1..2]->(q:Person) WHERE p.id = $id AND q.id <> $id
                RETURN count(DISTINCT q.id) AS persons""",
            "sql": """
                WITH near AS (SELECT dst FROM Follows WHERE src = $id)
                SELECT count(*)
                FROM (SELECT dst FROM near UNION SELECT f.dst FROM near JOIN Follows f ON f.src = near.dst)
                WHERE dst <> $id""",
            "gq": """query q($id: I64) {
                match { $p: Person { id_: $id }  $p follows{1,2} $q } return { count($q) as persons } }""",
        },
        {"id": 4_321},
    ),
)
