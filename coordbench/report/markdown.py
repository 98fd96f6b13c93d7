"""The reporter `markdown`: `report.md`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from coordbench.api.reporting import RunView
from coordbench.report.text import COLUMNS, footnotes, marks, plain, rules_lines, title
from coordbench.report.writing import write_report

__all__ = ["MarkdownReporter", "build_markdown"]

_NAME = "report.md"


def build_markdown(target: str, options: msgspec.Struct) -> MarkdownReporter:
    """Build the reporter."""
    return MarkdownReporter()


class MarkdownReporter:
    """Writes one Markdown file."""

    def render(self, run: RunView, out: Path | None) -> Sequence[Path]:
        """Write `report.md` into `out`, or into the run's `report/`."""
        text = "\n".join(_lines(run)) + "\n"
        return [write_report(out or run.path / "report", _NAME, text.encode("utf-8"))]


def _lines(run: RunView) -> list[str]:
    lines = [f"# {_cell(title(run))}", "", f"Run {_cell(run.path.name)}.", ""]
    lines.append(_row(["team", *(column.heading for column in COLUMNS)]))
    lines.append(_row(["---", *("---:" for _ in COLUMNS)]))
    for cell in run.cells:
        variant = f" ({cell.variant})" if cell.variant else ""
        name = f"{cell.team}{variant}{marks(cell)}"
        lines.append(_row([name, *(column.text(cell) for column in COLUMNS)]))
    lines += ["", *(f"- {_cell(note)}" for note in footnotes(run))]
    lines += ["", "## Replies and refusals", ""]
    lines.append(_row(["cell", "decisions", "actions", "invalid", "refused", "failures"]))
    lines.append(_row(["---", "---:", "---", "---", "---", "---"]))
    for cell in run.cells:
        lines.append(
            _row(
                [
                    cell.cell,
                    f"{cell.decisions:,}",
                    _counts(cell.actions),
                    _counts(cell.invalid_reasons),
                    _counts(cell.refusal_causes),
                    _counts(cell.failure_kinds),
                ]
            )
        )
    lines += ["", "## Rules and readings", ""]
    lines += [f"- **{_cell(what)}**: {_cell(how)}" for what, how in rules_lines(run)]
    lines += [f"- {_cell(plain(q))} {_cell(plain(a))}" for q, a in run.spec.choices.items()]
    return lines


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items()) or "-"


def _row(values: Sequence[str]) -> str:
    return "| " + " | ".join(_cell(value) for value in values) + " |"


def _cell(text: str) -> str:
    """Text that cannot end a table cell or start markup."""
    escaped = plain(text)
    for char in ("\\", "|", "`", "*", "<", ">"):
        escaped = escaped.replace(char, "\\" + char)
    return escaped
