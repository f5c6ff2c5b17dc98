"""Hashes of rows: different rows have different ones, also where they were made to be alike."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from privbench.encode.hashing import hash_rows


def test_letters_that_change_places_far_apart_are_seen() -> None:
    """Sums of words by place: no four places may have weights that cancel."""

    def text(letters: str) -> str:
        return "".join(letter.ljust(64, "x") for letter in letters)

    texts = pa.array([text(letters) for letters in ("abba", "baab", "abab", "baba", "aabb", "bbaa")])
    assert len(set(hash_rows([texts]).tolist())) == len(texts)


@given(st.lists(st.text(max_size=200), max_size=8))
def test_a_text_has_the_same_hash_whatever_stands_beside_it(texts: list[str]) -> None:
    together = hash_rows([pa.array(texts, pa.string())]).tolist()
    assert together == [hash_rows([pa.array([text], pa.string())])[0] for text in texts]
