from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordbench.data.errors import UsageError
from coordbench.plugins import Name, parse_name, render_name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("study", Name("study")),
        ("script/random", Name("script", "random")),
        ("openai/gpt-5.4", Name("openai", "gpt-5.4")),
        (
            "openai/gpt-5.4,temperature=0.2",
            Name("openai", "gpt-5.4", (("temperature", "0.2"),)),
        ),
        ("vllm/Qwen/Qwen3-14B", Name("vllm", "Qwen/Qwen3-14B")),
        ("adapter/runs/grpo-n5@best", Name("adapter", "runs/grpo-n5@best")),
        ("paper,variance=0", Name("paper", options=(("variance", "0"),))),
        ("paper, variance = 0 , idle=1", Name("paper", options=(("variance", "0"), ("idle", "1")))),
        ("example:echo", Name("echo", plugin="example")),
        ("my-dist:echo/x", Name("echo", "x", plugin="my-dist")),
        ("ollama/llama3:8b", Name("ollama", "llama3:8b")),
        ("a:b/c:d,e=f:g", Name("b", "c:d", (("e", "f:g"),), plugin="a")),
        (r"replay/C:\runs\one", Name("replay", r"C:\runs\one")),
        ("llamacpp//models/x=y.gguf", Name("llamacpp", "/models/x=y.gguf")),
        (
            "vllm/q,base_url=http://127.0.0.1:8000/v1?a=b",
            Name("vllm", "q", (("base_url", "http://127.0.0.1:8000/v1?a=b"),)),
        ),
        ("vllm/q,base_url=http://[::1]:80", Name("vllm", "q", (("base_url", "http://[::1]:80"),))),
        ('echo,say="a,b"', Name("echo", options=(("say", "a,b"),))),
        (r'echo,say="a \"b\" \\ c"', Name("echo", options=(("say", r'a "b" \ c'),))),
        (r'echo,say="C:\dir"', Name("echo", options=(("say", r"C:\dir"),))),
        ('replay/"runs/a,b"', Name("replay", "runs/a,b")),
        ("echo,say=", Name("echo", options=(("say", ""),))),
        (
            "sum,terms=[study,meal-gated]",
            Name("sum", options=(("terms", ("study", "meal-gated")),)),
        ),
        (
            'sum,terms=[study, "paper,variance=0"],scale=2',
            Name("sum", options=(("terms", ("study", "paper,variance=0")), ("scale", "2"))),
        ),
        ('grid,rows=["a]b","c"]', Name("grid", options=(("rows", ("a]b", "c")),))),
        ("sum,terms=[]", Name("sum", options=(("terms", ()),))),
        ("grid,rows=[[1,2],[3]]", Name("grid", options=(("rows", (("1", "2"), ("3",))),))),
        ("  study  ", Name("study")),
    ],
)
def test_names_are_read_as_written(text: str, name: Name) -> None:
    assert parse_name(text) == name
    assert parse_name(render_name(name)) == name


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("/random", "no name"),
        (":echo", "no name"),
        ("example:", "no name"),
        ("a:b:c", "more than one colon"),
        ("temperature=1", "where the name should"),
        ("gpt 5", "no name"),
        ("script/", "nothing follows the slash"),
        ("paper,", "nothing follows a comma"),
        ("openai/gpt-5,mini", "'mini' has no value"),
        ("paper,=1", "no option"),
        ("paper,a=1,a=2", "given twice"),
        ('echo,say="a', "not closed"),
        ('echo,say="a"b', "follows a closing quote"),
        ("sum,terms=[a", "no closing ]"),
        ("sum,terms=[a,,b]", "empty item"),
        ("sum,terms=[a,]", "empty item"),
        ("sum,terms=[a]b", "follows the end of a list"),
        ("sum,terms=[paper,terms=[a,b]]", "follows the end of a list"),
        ("x,a=" + "[" * 5000, "nested deeper"),
        ("echo,say=a\nb", "holds the character"),
        ("echo/\udcff", "holds the character"),
    ],
)
def test_what_is_no_name_says_where_it_stops_being_one(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=r"cannot read the name|a name is empty") as caught:
        parse_name(text)
    assert says in str(caught.value)
    str(caught.value).encode("utf-8")


def test_a_nested_name_with_options_is_told_to_use_quotes() -> None:
    with pytest.raises(UsageError) as caught:
        parse_name("sum,terms=[paper,terms=[a,b]]")
    assert '"paper,variance=0"' in caught.value.hint


WORDS = st.from_regex(r"[a-z0-9]([a-z0-9._-]{0,8}[a-z0-9])?", fullmatch=True)
KEYS = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True)
TEXT = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp"])
    | st.sampled_from('",[]=\\/: '),
    max_size=12,
)
VALUES = st.recursive(TEXT, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=6)
NAMES = st.builds(
    Name,
    name=WORDS,
    target=TEXT,
    options=st.dictionaries(KEYS, VALUES, max_size=3).map(lambda found: tuple(found.items())),
    plugin=st.just("") | WORDS,
)


@given(NAMES)
def test_every_name_can_be_written_and_read_back(name: Name) -> None:
    text = render_name(name)
    assert parse_name(text) == name
    assert render_name(parse_name(text)) == text


@given(st.text(st.sampled_from('ab1:/,="[]\\ .-@') | st.characters(), max_size=24))
def test_any_text_is_read_or_refused_with_one_message(text: str) -> None:
    try:
        name = parse_name(text)
    except UsageError as error:
        assert "\n" not in error.message
    else:
        assert parse_name(render_name(name)) == name
