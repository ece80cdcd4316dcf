"""Plain help text with the options under their headings; drawn without rich, which would cost its import."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand


class GroupedCommand(TyperCommand):
    """A command whose help lists options by `rich_help_panel`, in the order of their first option."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write one section a heading."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is None:
                continue
            if param.param_type_name == "argument":
                # Typer adds the Python type, which tells a user nothing.
                record = (record[0].partition(" <")[0], record[1])
            default = "Arguments" if param.param_type_name == "argument" else "Options"
            groups.setdefault(getattr(param, "rich_help_panel", None) or default, []).append(record)
        # What has no heading of its own comes last; the sort leaves the others in their order.
        for heading in sorted(groups, key=lambda name: name == "Options"):
            with formatter.section(heading):
                formatter.write_dl(groups[heading], col_max=34)
