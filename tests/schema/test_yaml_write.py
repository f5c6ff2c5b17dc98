from hypothesis import given
from hypothesis import strategies as st

from privbench.schema.yaml_file import WIDTH, Plain, entry, inline, parse_yaml

SPECIAL = [
    "",
    " ",
    "null",
    "~",
    "True",
    "yes",
    "NO",
    "1",
    "-1.5",
    "1e3",
    "2020-01-01",
    "12:30",
    "a: b",
    "a #b",
    "- a",
    "? a",
    "&a",
    "*a",
    "!a",
    "%a",
    "@a",
    "{a}",
    "[a]",
    "a,b",
    "it's",
    'say "x"',
    "back\\slash",
    "new\nline",
    "cr\rlf\r\n",
    "tab\t",
    "nul\x00",
    "\x85\u2028\u2029\ufeff",
    "日本語",
    "😀",
    "\U000e0001",
    "é" * 600,
    "SELECT",
    "order",
    "; DROP TABLE x; --",
    "---",
    "...",
    "<bins>",
    "=",
    "<<",
    "x" * 2000,
    "\n" * 2000,
]
texts = st.one_of(st.sampled_from(SPECIAL), st.text(max_size=30))
scalars = st.one_of(
    texts, st.none(), st.booleans(), st.integers(-(10**37), 10**37), st.floats(allow_nan=False, allow_infinity=False)
)
values = st.recursive(
    scalars, lambda v: st.one_of(st.lists(v, max_size=30), st.dictionaries(texts, v, max_size=5)), max_leaves=40
)


def same(left: object, right: object) -> bool:
    return left == right and repr(left) == repr(right)  # 1, 1.0 and True are equal, but not the same


@given(st.dictionaries(texts, values, min_size=1, max_size=4))
def test_what_is_written_is_read_back(value: dict[str, Plain]) -> None:
    text = "\n".join(line for key, inner in value.items() for line in entry(key, inner))
    assert same(parse_yaml(text).plain(), value)


def test_every_special_name_survives_as_key_and_value() -> None:
    value: Plain = {name: [name, {name: name}] for name in SPECIAL}
    assert isinstance(value, dict)
    text = "\n".join(line for key, inner in value.items() for line in entry(key, inner, indent=2))
    assert same(parse_yaml(text).plain(), value)


def test_simple_words_are_not_quoted() -> None:
    assert (
        inline({"first_name": ["VARCHAR", "DECIMAL(10,2)", "a b"]}) == '{first_name: [VARCHAR, "DECIMAL(10,2)", a b]}'
    )


def test_long_lists_are_wrapped_and_long_mappings_opened() -> None:
    lines = list(entry("a", {"b": list(range(200)), "c": 1}, indent=2))
    assert lines[0] == "  a:"
    assert lines[1] == "    b: ["
    assert lines[-1] == "    c: 1"
    assert max(map(len, lines)) <= WIDTH
    assert len(lines) < 20
