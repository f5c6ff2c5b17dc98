"""A database in which many columns follow from the rows around them, and a check that they do."""

from pathlib import Path
from typing import Any

import numpy as np

from privbench.io.open import open_source

from .forging import write_shop

DDL = """CREATE TABLE shop (id INTEGER PRIMARY KEY, region VARCHAR NOT NULL, opened INTEGER, sales TINYINT NOT NULL);
CREATE TABLE sale (id INTEGER PRIMARY KEY, shop_id INTEGER REFERENCES shop (id), region VARCHAR, opened INTEGER,
  number SMALLINT, place SMALLINT NOT NULL, lines SMALLINT NOT NULL, paid BOOLEAN);
CREATE TABLE line (sale_id INTEGER NOT NULL REFERENCES sale (id), position SMALLINT NOT NULL, region VARCHAR,
  lines SMALLINT NOT NULL, hue SMALLINT NOT NULL, PRIMARY KEY (sale_id, position));
CREATE TABLE visit (shop_id INTEGER REFERENCES shop (id), region VARCHAR NOT NULL, hour SMALLINT);"""
SHOPS = 400
OWNERS = {"sale": "shop", "line": "sale", "visit": "shop"}
COMPUTED: dict[tuple[str, str], str] = {
    ("shop", "sales"): "COUNT(sale.*)",
    ("sale", "region"): "shop.region",
    ("sale", "opened"): "shop.opened",
    ("sale", "number"): "ROW_NUMBER()",
    ("sale", "place"): "ROW_NUMBER() - 1",
    ("sale", "lines"): "COUNT(line.*)",
    ("line", "position"): "ROW_NUMBER()",
    ("line", "region"): "sale.region",
    ("line", "lines"): "sale.lines",
    ("visit", "region"): "shop.region",
}


def write_source(folder: Path, shops: int = SHOPS) -> Path:
    """Shops with sales with lines; every tenth sale and visit is nobody's."""
    rng = np.random.default_rng(5)
    lists: dict[str, list[str]] = {"shop": [], "sale": [], "line": [], "visit": []}
    for shop in range(shops):
        region, opened, count = rng.choice(["north", "south", "west"]), rng.integers(1900, 2020), rng.integers(0, 6)
        lists["shop"].append(f"{shop},{region},{opened if shop % 7 else ''},{count}")
        for number in range(count):
            _add_sale(lists, rng, f"{shop},{region},{opened if shop % 7 else ''},{number + 1},{number}")
        lists["visit"].append(f"{shop},{region},{rng.integers(0, 24)}")
        if shop % 10 == 0:
            _add_sale(lists, rng, ",,,,0")
            lists["visit"].append(f",north,{rng.integers(0, 24)}")
    heads = {
        "shop": "id,region,opened,sales",
        "sale": "id,shop_id,region,opened,number,place,lines,paid",
        "line": "sale_id,position,region,lines,hue",
        "visit": "shop_id,region,hour",
    }
    return write_shop(folder, DDL, **{t: "\n".join([heads[t], *rows]) for t, rows in lists.items()})


def _add_sale(lists: dict[str, list[str]], rng: np.random.Generator, start: str) -> None:
    sale, lines = len(lists["sale"]), int(rng.integers(1, 4))
    region = start.split(",")[1]
    lists["sale"].append(f"{sale},{start},{lines},{rng.choice(['true', 'false'])}")
    for position in range(lines):
        lists["line"].append(f"{sale},{position + 1},{region},{lines},{rng.integers(0, 9)}")


def rows_of(bundle: Path) -> dict[str, list[dict[str, Any]]]:
    with open_source(bundle) as source:
        return {t.name: [row for b in source.read(t) for row in b.to_pylist()] for t in source.schema().tables}


def grouped(rows: list[dict[str, Any]], key: str) -> dict[int | None, list[dict[str, Any]]]:
    found: dict[int | None, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(row[key], []).append(row)
    return found


def check(rows: dict[str, list[dict[str, Any]]]) -> None:
    """Every computed column of every row is what it should be."""
    shops = {row["id"]: row for row in rows["shop"]}
    sales, lines = grouped(rows["sale"], "shop_id"), grouped(rows["line"], "sale_id")
    for shop in rows["shop"]:
        mine = sales.get(shop["id"], [])
        assert shop["sales"] == len(mine)
        assert sorted(s["number"] for s in mine) == list(range(1, len(mine) + 1))
        assert sorted(s["place"] for s in mine) == list(range(len(mine)))
    for sale in rows["sale"]:
        above = shops.get(sale["shop_id"], {"region": None, "opened": None})
        assert (sale["region"], sale["opened"]) == (above["region"], above["opened"])
        mine = lines.get(sale["id"], [])
        assert [line["position"] for line in mine] == list(range(1, sale["lines"] + 1))
        assert {(line["region"], line["lines"]) for line in mine} <= {(sale["region"], sale["lines"])}
    assert all((s["number"], s["place"]) == (None, 0) for s in sales.get(None, []))
    regions = {shop["region"] for shop in rows["shop"]}
    for visit in rows["visit"]:
        assert visit["region"] in (regions if visit["shop_id"] is None else {shops[visit["shop_id"]]["region"]})
