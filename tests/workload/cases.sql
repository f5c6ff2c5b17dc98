-- Two lines each: a statement, then how it is written again, or after "--" why it is outside the class.
SELECT COUNT(*) FROM t
SELECT COUNT(*) FROM "t"
select count(*) as n from t as x where x.a = 5;
SELECT COUNT(*) FROM "t" AS "x" WHERE "x"."a" = 5
SELECT COUNT(*) FROM t WHERE a >= -2.5 AND 10 > a
SELECT COUNT(*) FROM "t" WHERE "t"."a" >= -2.5 AND "t"."a" < 10
SELECT COUNT(*) FROM t WHERE ((a BETWEEN 1 AND 2) AND (b IN ('x', 'it''s')))
SELECT COUNT(*) FROM "t" WHERE "t"."a" BETWEEN 1 AND 2 AND "t"."b" IN ('x', 'it''s')
SELECT COUNT(*) FROM t WHERE d >= DATE '2020-01-31' AND d < CAST('2021-01-01' AS date)
SELECT COUNT(*) FROM "t" WHERE "t"."d" >= '2020-01-31' AND "t"."d" < '2021-01-01'
SELECT COUNT(*) FROM t WHERE a IS NULL AND b IS NOT NULL AND NOT c IS NULL
SELECT COUNT(*) FROM "t" WHERE "t"."a" IS NULL AND NOT "t"."b" IS NULL AND NOT "t"."c" IS NULL
SELECT COUNT(*) FROM t WHERE a LIKE 'ab%' AND b LIKE 'c' AND c = TRUE
SELECT COUNT(*) FROM "t" WHERE "t"."a" LIKE 'ab%' AND "t"."b" = 'c' AND "t"."c" = TRUE
SELECT COUNT(*) FROM t WHERE a LIKE '10#%%' ESCAPE '#'
SELECT COUNT(*) FROM "t" WHERE "t"."a" LIKE '10!%%' ESCAPE '!'
SELECT COUNT(*) FROM title t, movie_keyword mk WHERE t.id=mk.movie_id AND mk.keyword_id=117
SELECT COUNT(*) FROM "title" AS "t", "movie_keyword" AS "mk" WHERE "t"."id" = "mk"."movie_id" AND "mk"."keyword_id" = 117
SELECT COUNT(*) FROM a JOIN b ON a.x = b.y AND b.z > 1 INNER JOIN c ON c.x = a.x WHERE a.x <= 3
SELECT COUNT(*) FROM "a", "b", "c" WHERE "a"."x" = "b"."y" AND "c"."x" = "a"."x" AND "b"."z" > 1 AND "a"."x" <= 3
SELECT COUNT(*) FROM t WHERE a > 1 AND a > 2
SELECT COUNT(*) FROM "t" WHERE "t"."a" > 1 AND "t"."a" > 2
SELECT COUNT(*) FROM t WHERE a = 0.12345678901234567890
SELECT COUNT(*) FROM "t" WHERE "t"."a" = '0.12345678901234567890'
SELECT COUNT(*) FROM t WHERE a = 1 OR b = 2
-- uses OR
SELECT COUNT(*) FROM t WHERE a <> 1
-- uses <>
SELECT COUNT(*) FROM t WHERE a LIKE '%b%'
-- has a LIKE whose pattern is not a prefix
SELECT COUNT(*) FROM t WHERE a = b
-- a join compares two columns of the same table
SELECT COUNT(*) FROM t WHERE a < (SELECT MAX(a) FROM t)
-- compares with a subquery
SELECT COUNT(*) FROM t WHERE a = NULL
-- compares with no plain literal
SELECT COUNT(*) FROM t WHERE lower(a) = 'x'
-- compares something that is not a column
SELECT SUM(a) FROM t
-- selects something other than COUNT(*)
SELECT a, COUNT(*) FROM t GROUP BY a
-- has a GROUP BY
SELECT COUNT(*) FROM a LEFT JOIN b ON a.x = b.x
-- has a LEFT JOIN
SELECT COUNT(*) FROM a, b WHERE x = 1
-- does not say which table the column x is of
SELECT COUNT(*) FROM (SELECT * FROM t) AS s
-- selects from something that is not a table
WITH w AS (SELECT 1) SELECT COUNT(*) FROM w
-- has a WITH clause
DELETE FROM t
-- is not a plain SELECT but DELETE
SELECT COUNT(*) FROM t, t
-- a query needs a table, and no two of the same name
SELECT COUNT(*) FROM t LIMIT 3
-- has a LIMIT
