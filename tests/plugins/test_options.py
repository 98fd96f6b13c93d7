from __future__ import annotations

from enum import Enum
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordbench.data.errors import UsageError
from coordbench.plugins.names import parse_name
from coordbench.plugins.options import decode_options, describe_options, normalised


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Options(msgspec.Struct, frozen=True):
    temperature: Annotated[float, msgspec.Meta(ge=0)] = 1.0
    top_p: float | None = None
    tries: int = 3
    strict: bool = False
    tools: Literal["native", "constrained"] = "native"
    terms: tuple[str, ...] = ()
    weights: list[float] = []
    colour: Colour = Colour.RED
    base_url: str = ""

    def __post_init__(self) -> None:
        if self.tries > 9:
            raise ValueError("tries above 9 only annoy the server")


def decode(text: str) -> Any:
    return decode_options(Options, parse_name(f"openai/x{text}").options, "openai")


def test_values_become_what_the_struct_says() -> None:
    options = decode(
        ",temperature=0.5,top_p=1,tries=2,strict=true,tools=constrained"
        ',terms=[a,"b,c"],weights=[1,2.5],colour=blue,base_url=http://h:1/v1'
    )
    assert options == Options(
        temperature=0.5,
        top_p=1.0,
        tries=2,
        strict=True,
        tools="constrained",
        terms=("a", "b,c"),
        weights=[1.0, 2.5],
        colour=Colour.BLUE,
        base_url="http://h:1/v1",
    )
    assert decode("") == Options()
    assert decode(",top_p=null") == Options()


def test_a_misspelt_key_is_named_with_the_nearest_and_with_all() -> None:
    with pytest.raises(UsageError) as caught:
        decode(",temprature=0.2")
    assert caught.value.message == (
        'unknown option "temprature" for openai; did you mean "temperature"?'
    )
    assert caught.value.hint.startswith("openai takes: temperature (number >= 0, default 1); ")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("temperature=warm", "option temperature of openai: expected number >= 0, got warm"),
        ("temperature=-1", "expected number >= 0, got -1"),
        ("temperature=nan", "expected number >= 0, got nan"),
        ("temperature=inf", "expected number >= 0, got inf"),
        ("weights=[1,inf]", "expected list of number, got [1,inf]"),
        ("temperature=[1]", "expected number >= 0, got [1]"),
        ("temperature=", 'expected number >= 0, got ""'),
        ("top_p=high", "expected number or null, got high"),
        ("tries=2.5", "expected whole number, got 2.5"),
        ("strict=maybe", "expected true or false, got maybe"),
        ("tools=both", "expected one of constrained, native, got both"),
        ("colour=green", "expected one of red, blue, got green"),
        ("terms=a", "expected list of text, got a"),
        ("tries=10", "options of openai: tries above 9 only annoy the server"),
    ],
)
def test_a_wrong_value_says_what_was_expected(text: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        decode(f",{text}")
    assert says in caught.value.message


def test_an_offer_without_options_says_so() -> None:
    class None_(msgspec.Struct, frozen=True):
        pass

    with pytest.raises(UsageError, match="echo takes no options"):
        decode_options(None_, (("a", "1"),), "echo")


def test_defaults_are_left_out_and_order_and_spelling_do_not_matter() -> None:
    one = normalised(decode(",tries=3,strict=TRUE,temperature=0.50"))
    other = normalised(decode(",temperature=5e-1,strict=1"))
    assert one == other == (("temperature", "0.5"), ("strict", "true"))
    assert normalised(decode(",temperature=0,weights=[1.0,2]")) == (
        ("temperature", "0"),
        ("weights", ("1", "2")),
    )


@given(
    st.builds(
        Options,
        temperature=st.floats(0, allow_nan=False, allow_infinity=False),
        top_p=st.none() | st.floats(allow_nan=False, allow_infinity=False),
        tries=st.integers(-(10**12), 9),
        strict=st.booleans(),
        tools=st.sampled_from(["native", "constrained"]),
        terms=st.lists(st.text(max_size=5), max_size=3).map(tuple),
        weights=st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=3),
        colour=st.sampled_from(Colour),
        base_url=st.text(max_size=8),
    )
)
def test_normalised_options_decode_to_the_same(options: Options) -> None:
    assert decode_options(Options, normalised(options), "openai") == options


def test_types_and_defaults_are_described_in_words() -> None:
    described = {item.name: (item.type, item.default) for item in describe_options(Options)}
    assert described["temperature"] == ("number >= 0", 1.0)
    assert described["top_p"] == ("number or null", None)
    assert described["tools"] == ("one of constrained, native", "native")
    assert described["terms"] == ("list of text", ())
    assert described["colour"] == ("one of red, blue", "red")
    msgspec.json.encode(describe_options(Options))


def test_renamed_fields_go_by_their_outer_name() -> None:
    class Renamed(msgspec.Struct, frozen=True, rename="kebab"):
        base_url: str = "a"

    options = decode_options(Renamed, (("base-url", "b"),), "x")
    assert options == Renamed(base_url="b")
    assert normalised(options) == (("base-url", "b"),)
