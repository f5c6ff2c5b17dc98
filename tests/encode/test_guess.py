"""Shapes guessed from names and types: careful, and never one that does not fit."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privbench.encode.codec import compile_codec
from privbench.encode.guess import common_pattern, guess_shape, shape_of_values
from privbench.encode.text import made_up_domain
from privbench.schema.types import parse_type

NAMES = ["e_mail", "phone", "url", "guid", "ip", "full_name", "first_name", "surname", "city", "street", "company"]
NAMES += ["notes", "title", "country", "md5", "name"]


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("e_mail", "email"),
        ("EmailAddress", "email"),
        ("work_phone_2", "phone"),
        ("FAX", "phone"),
        ("homepage", "url"),
        ("user_guid", "uuid"),
        ("LastName", "last_name"),
        ("nameGiven", "first_name"),
        ("BillingCity", "city"),
        ("BillingAddress", "address"),
        ("BillingCountry", "country"),
        ("BillingPostalCode", "postcode"),
        ("State", "region"),
        ("state_code", None),
        ("mac_address", None),
        ("phone_type", None),
        ("email_verified", None),
        ("city_id", None),
        ("telegram", None),
        ("capacity", None),
        ("name", None),
        ("", None),
        ("99", None),
    ],
)
def test_the_last_word_of_a_name_says_it(name, shape) -> None:
    assert guess_shape(name, parse_type("VARCHAR(80)")) == shape


def test_types_and_tables_say_it_too() -> None:
    assert guess_shape("id", parse_type("UUID"), unique=True) == "uuid"
    assert guess_shape("email", parse_type("JSONB")) == "json"
    assert guess_shape("name", parse_type("VARCHAR"), table="Authors") == "person"
    assert guess_shape("phone", parse_type("INTEGER")) is None
    assert guess_shape("hash", parse_type("CHAR(64)")) == "hex"
    assert guess_shape("title", parse_type("VARCHAR(8)")) is None


@given(name=st.sampled_from(NAMES), length=st.integers(1, 90), unique=st.booleans(), fixed=st.booleans())
def test_a_guess_always_makes_a_domain_that_fits_its_type(name, length, unique, fixed) -> None:
    kind = parse_type(f"{'CHAR' if fixed else 'VARCHAR'}({length})")
    shape = guess_shape(name, kind, table="person", unique=unique)
    domain = made_up_domain(kind, shape=shape, unique=unique)
    assert compile_codec("t.c", kind, nullable=True, domain=domain).size >= 2


@pytest.mark.parametrize(
    ("values", "pattern"),
    [
        (["AB-12", "CD-34"], "AA-99"),
        (["INV-10", "INV-29"], "INV-99"),
        (["A1", "a2"], None),
        (["ab", "cd"], None),
        (["1", "22"], None),
        (["x1"], None),
        ([], None),
    ],
)
def test_a_pattern_is_what_all_values_have(values, pattern) -> None:
    assert common_pattern(pa.array(values, pa.string())) == pattern


def test_codes_of_states_are_no_names_of_regions() -> None:
    kind = parse_type("VARCHAR(40)")
    assert shape_of_values("region", kind, pa.array(["NY", "CA", "TX", "VA"]), unique=False) != "region"
    assert shape_of_values("region", kind, pa.array(["Ohio", "New York", "Texas"]), unique=False) == "region"
