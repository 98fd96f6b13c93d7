"""JSON that every parser reads back, and that says what it could not say."""

from __future__ import annotations

import json

import numpy as np
import pytest

from coordbench.data.strictjson import StrictJSONError, decode, encode, pretty, scrub

NAN, INF = float("nan"), float("inf")


def test_numbers_without_a_word_become_null_with_the_reason_beside_them() -> None:
    said = json.loads(encode({"welch_p": NAN, "hedges_g": INF, "low": -INF, "label": "BaNaNa"}))
    assert said == {
        "welch_p": None,
        "hedges_g": None,
        "low": None,
        "label": "BaNaNa",
        "reasons": {
            "welch_p": "not a number",
            "hedges_g": "infinite",
            "low": "minus infinite",
        },
    }


def test_each_object_explains_its_own_and_its_lists_numbers() -> None:
    said = json.loads(encode({"runs": [1.0, NAN, {"p": INF}], "reasons": "of mine"}))
    assert said["runs"] == [1.0, None, {"p": None, "reasons": {"p": "infinite"}}]
    assert said["reasons"] == "of mine"
    assert said["reasons_for_null"] == {"runs[1]": "not a number"}


def test_numbers_of_numpy_are_numbers() -> None:
    value = {"g": np.float64("nan"), "n": np.int64(3), "rates": np.array([0.5, np.inf])}
    said = json.loads(encode(value))
    assert said["n"] == 3
    assert said["rates"] == [0.5, None]
    assert set(said["reasons"]) == {"g", "rates[1]"}


def test_what_has_no_json_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="object"):
        encode({"x": object()})


@pytest.mark.parametrize(
    "text",
    ['{"p": NaN}', '{"p": Infinity}', '{"p": -Infinity}', "{} {}", "", "{'a': 1}", "[1,]"],
)
def test_what_is_no_strict_json_is_refused(text: str) -> None:
    with pytest.raises(StrictJSONError):
        decode(text)


@pytest.mark.parametrize("data", [b"\xff", b'"\xff"', b"[" * 5000])
def test_bytes_that_are_no_json_are_refused(data: bytes) -> None:
    with pytest.raises(StrictJSONError):
        decode(data)


def test_text_of_any_kind_stays_one_line() -> None:
    text = "line\u2028separator \x85 and \ud83d lone \n surrogate"
    data = encode({text: text})
    assert b"\n" not in data
    assert json.loads(data) == {scrub(text): scrub(text)}
    assert "\u2028" in scrub(text)
    assert pretty({"a": NAN}).endswith(b"}\n")
