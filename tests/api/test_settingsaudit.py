"""What became of settings: dropped, renamed or changed, and whether scores stay comparable."""

from __future__ import annotations

from typing import Any

import pytest

from coordbench.api.settingsaudit import SettingsAudit, audit_settings, settings_sent

ASKED = {
    "model": "m",
    "temperature": 0.7,
    "top_p": 1.0,
    "max_tokens": 512,
    "seed": 7,
    "parallel_tool_calls": False,
}


def test_settings_that_went_out_as_they_were_are_comparable() -> None:
    assert audit_settings(ASKED, {"messages": [], **ASKED}) == SettingsAudit()


def test_a_dropped_seed_is_not_comparable() -> None:
    sent = {key: value for key, value in ASKED.items() if key != "seed"}
    assert audit_settings(ASKED, sent) == SettingsAudit(dropped=("seed",), comparable=False)


def test_the_parallel_switch_may_be_lost_because_a_second_call_never_counts() -> None:
    sent = {key: value for key, value in ASKED.items() if key != "parallel_tool_calls"}
    assert audit_settings(ASKED, sent) == SettingsAudit(dropped=("parallel_tool_calls",))


def test_a_changed_value_is_not_comparable() -> None:
    audit = audit_settings(ASKED, {**ASKED, "temperature": 1.0})
    assert (audit.changed, audit.comparable) == ({"temperature": 1.0}, False)


@pytest.mark.parametrize(
    ("asked", "sent", "renamed"),
    [
        (
            {"max_tokens": 9},
            {"generationConfig": {"maxOutputTokens": 9}},
            {"max_tokens": "generationConfig.maxOutputTokens"},
        ),
        (
            {"max_tokens": 9},
            {"max_completion_tokens": 9},
            {"max_tokens": "max_completion_tokens"},
        ),
        ({"seed": 1}, {"random_seed": 1}, {"seed": "random_seed"}),
        ({"top_p": 0.9}, {"generationConfig": {"topP": 0.9}}, {}),
        ({"stop": ["x"]}, {"stop_sequences": ["x"]}, {"stop": "stop_sequences"}),
        (
            {"reasoning_effort": "low"},
            {"thinking": {"type": "enabled", "budget_tokens": 1024}},
            {"reasoning_effort": "thinking.budget_tokens"},
        ),
        ({"tool_choice": "required"}, {"tool_choice": {"type": "any"}}, {}),
        (
            {"parallel_tool_calls": False},
            {"tool_choice": {"type": "any", "disable_parallel_tool_use": True}},
            {"parallel_tool_calls": "tool_choice.disable_parallel_tool_use"},
        ),
    ],
)
def test_a_setting_under_another_name_is_not_lost(
    asked: dict[str, Any], sent: dict[str, Any], renamed: dict[str, str]
) -> None:
    assert audit_settings(asked, sent) == SettingsAudit(renamed=renamed)


def test_an_opposite_that_says_the_wrong_thing_is_a_change() -> None:
    sent = {"tool_choice": {"disable_parallel_tool_use": False}}
    audit = audit_settings({"parallel_tool_calls": False}, sent)
    assert audit.changed == {"parallel_tool_calls": True}


def test_what_was_not_asked_for_is_not_missed() -> None:
    assert audit_settings({"seed": None, "messages": [], "tools": []}, {}) == SettingsAudit()


def test_words_in_messages_and_tools_are_no_settings() -> None:
    sent = {"messages": [{"seed": 7}], "tools": {"seed": 7}, "contents": {"temperature": 0}}
    assert audit_settings({"seed": 7}, sent).dropped == ("seed",)


def test_what_went_out_is_told_under_the_name_that_was_asked_for() -> None:
    sent = {"generationConfig": {"maxOutputTokens": 9, "temperature": 0.7}}
    assert settings_sent({"temperature": 0.7, "max_tokens": 9, "seed": 1}, sent) == {
        "temperature": 0.7,
        "max_tokens": 9,
        "generationConfig.maxOutputTokens": 9,
    }
