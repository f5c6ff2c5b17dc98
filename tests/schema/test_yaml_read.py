import tracemalloc
from collections.abc import Iterator

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from privbench.schema import yaml_file
from privbench.schema.yaml_file import MAX_DEPTH, YamlError, parse_yaml


@pytest.fixture(params=["CSafeLoader", "SafeLoader"], autouse=True, scope="module")
def loader(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every test runs with libyaml and without it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(yaml_file, "_loader", lambda: getattr(yaml, request.param, yaml.SafeLoader))
        yield


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("True", "True"),
        ("yes", "yes"),
        ("off", "off"),
        ("null", None),
        ("~", None),
        ("12", 12),
        ("-0.5", -0.5),
        ("1e3", 1000.0),
        ("007", "007"),
        ("0x1F", "0x1F"),
        ("1_000", "1_000"),
        ("12:30:45", "12:30:45"),
        ("2020-01-01", "2020-01-01"),
        ("2020-01-01 10:00:00", "2020-01-01 10:00:00"),
        (".inf", ".inf"),
        ("'12'", "12"),
        ('"true"', "true"),
        ("12345678901234567890123456789012345678", 12345678901234567890123456789012345678),
    ],
)
def test_scalars(text: str, value: object) -> None:
    found = parse_yaml(f"a: {text}").plain()
    assert found == {"a": value}
    assert type(found["a"]) is type(value)


def test_keys_are_always_strings() -> None:
    assert parse_yaml("{null: 1, true: 2, 1: 3, 2020-01-01: 4}").plain() == {
        "null": 1,
        "true": 2,
        "1": 3,
        "2020-01-01": 4,
    }


def test_lines_are_those_of_keys_and_items() -> None:
    root = parse_yaml("a:\n  b:\n    - 1\n    - c: 2\n\nd: 3\n")
    places = [(), ("a",), ("a", "b"), ("a", "b", 1), ("a", "b", 1, "c"), ("d",), ("a", "missing"), ("a", "b", 9)]
    assert [root.line_at(place) for place in places] == [1, 1, 2, 4, 4, 6, 1, 2]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a: 1\nb: 2\na: 3", 3, "'a' is there twice; first on line 1"),
        ("a: &x [1]\nb: *x", 1, "anchors and aliases"),
        ("a: 1\nb: *x", 2, "anchors and aliases"),
        ("a: 1\nb: !!python/object/apply:os.system [ls]", 2, "the tag tag:yaml.org,2002:python/object/apply:os.system"),
        ("a: !x 1", 1, "the tag !x"),
        ("!!python/name:os.system : 1", 1, "the tag"),
        ("a: 1\n[x]: 2", 2, "where a name belongs"),
        ("a: 1\n---\nb: 2", 2, "a second document"),
        ("", 1, "the file is empty"),
        ("# only a comment", 1, "the file is empty"),
        ("a: [1, 2\nb: 3", 2, "not valid YAML"),
        ("a: 'x", 1, "not valid YAML"),
        ("a: 1\n\tb: 2", 2, "not valid YAML"),
        ("a: 1\nb: \x00", 2, "not allowed"),
        ("a: " + "9" * 50, 1, "too long"),
        ("a: 1e999", 1, "too large"),
    ],
)
def test_mistakes_have_their_line(text: str, line: int, message: str) -> None:
    with pytest.raises(YamlError, match=message) as caught:
        parse_yaml(text)
    assert caught.value.line == line


def test_nesting_is_bounded() -> None:
    deepest = MAX_DEPTH
    assert parse_yaml("[" * deepest + "]" * deepest).line == 1
    for opening in ("[", "{a: ", "- ", "? "):
        with pytest.raises(YamlError):
            parse_yaml(opening * 100_000)


def test_the_number_of_values_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_file, "MAX_NODES", 10)
    assert parse_yaml("[1,2,3,4,5,6,7,8,9]").line == 1
    with pytest.raises(YamlError, match="too large"):
        parse_yaml("[1,2,3,4,5,6,7,8,9,10]")


def test_a_laugh_bomb_stays_small() -> None:
    bomb = "a: &a [x,x]\n" + "".join(f"b{i}: &b{i} [*{'a' if not i else f'b{i - 1}'}, *a]\n" for i in range(50))
    tracemalloc.start()
    try:
        with pytest.raises(YamlError):
            parse_yaml(bomb)  # written out, it would take for ever
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


@given(st.text(alphabet=st.sampled_from("ab:[]{}-,?!&*#|>'\"%@` \n\t01.\\"), max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse_yaml(text).plain()
    except YamlError as error:
        line = error.line
    else:
        line = 1
    assert 1 <= line <= text.count("\n") + 2
