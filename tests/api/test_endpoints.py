"""Addresses, keys and the options that all remote providers share."""

from __future__ import annotations

import json

import pytest

from coordbench.api import ModelRequest, Sampling, UsageError
from coordbench.api.endpoints import check_url, is_loopback, key_from
from coordbench.api.remoteoptions import RemoteOptions
from coordbench.api.requestbody import encode_body


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("http://127.0.0.1:8000/v1", True),
        ("http://127.8.9.1/v1", True),
        ("http://localhost:1", True),
        ("http://LOCALHOST/v1", True),
        ("https://box.localhost/v1", True),
        ("http://[::1]:8000", True),
        ("https://api.openai.com/v1", False),
        ("http://10.0.0.7:8000/v1", False),
        ("http://localhost.example.com", False),
        ("http://127.0.0.1.example.com", False),
        ("http://[broken", False),
        ("", False),
    ],
)
def test_an_address_is_on_this_machine_or_not(url: str, here: bool) -> None:
    assert is_loopback(url) is here


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://host/v1", "http://", "http://h:x/"])
def test_a_base_url_must_be_whole(url: str) -> None:
    with pytest.raises(UsageError, match="base_url") as caught:
        check_url(url)
    assert url in str(caught.value)


class TestKeyFrom:
    def test_takes_the_first_variable_that_is_set(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("FIRST_KEY", "  ")
        monkeypatch.setenv("SECOND_KEY", " abc ")
        assert key_from("FIRST_KEY", "SECOND_KEY", model="m") == "abc"

    def test_names_the_variable_to_set(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("FIRST_KEY", raising=False)
        with pytest.raises(UsageError, match=r"openai/x needs a key, and FIRST_KEY is not set"):
            key_from("FIRST_KEY", model="openai/x")

    def test_refuses_what_no_header_can_carry_without_showing_it(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("FIRST_KEY", "abc\ndéf")
        with pytest.raises(UsageError, match="FIRST_KEY") as caught:
            key_from("FIRST_KEY", model="m")
        assert "abc" not in str(caught.value)


class TestRemoteOptions:
    def test_a_name_overrides_the_task(self) -> None:
        request = ModelRequest(
            messages=(), tools=(), sampling=Sampling(temperature=0.5, top_p=0.9, max_tokens=77)
        )
        assert RemoteOptions(temperature=0.0, max_tokens=5).sampling(request) == {
            "temperature": 0.0,
            "top_p": 0.9,
            "max_tokens": 5,
        }

    def test_what_the_name_fixes_is_reported(self) -> None:
        options = RemoteOptions(temperature=0.0, omit="seed", base_url="http://h/v1")
        assert options.settings() == {
            "base_url": "http://h/v1",
            "temperature": 0.0,
            "omit": "seed",
        }

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            (RemoteOptions(base_url="host"), "base_url"),
            (RemoteOptions(omit="seed+warmth"), "warmth"),
            (RemoteOptions(price_in=1.0), "price_out"),
        ],
    )
    def test_what_types_cannot_say_is_checked(self, options: RemoteOptions, said: str) -> None:
        with pytest.raises(UsageError, match=said):
            options.check(frozenset({"seed", "temperature"}))

    def test_sound_options_pass(self) -> None:
        RemoteOptions(omit="seed+temperature", price_in=0.0, price_out=2.0).check(
            frozenset({"seed", "temperature"})
        )


def test_a_body_is_json_whatever_text_a_model_sent() -> None:
    body = {"messages": [{"content": "fork \ud83c"}]}
    assert json.loads(encode_body(body)) == {"messages": [{"content": "fork \\ud83c"}]}
    assert encode_body({"a": 1, "é": "x"}) == '{"a":1,"é":"x"}'.encode()
