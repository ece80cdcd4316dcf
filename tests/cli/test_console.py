"""Errors → messages and exit codes; nothing of a traceback unless it is asked for."""

from __future__ import annotations

import logging

import pytest
from oasr import errors

from oasr_cli import console


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.OptionsError("x"), 2),
        (errors.CapabilityError("x"), 2),
        (errors.ManifestError("x"), 2),
        (errors.RequestError("x"), 2),
        (errors.CheckpointError("x"), 1),
        (errors.OutputError("x"), 1),
        (OSError(28, "No space left on device"), 1),
        (ValueError("x"), 1),
        (SystemExit(3), 3),
        (SystemExit(None), 0),
        (console.Interrupted(15), 143),
        (KeyboardInterrupt(), 130),
    ],
)
def test_exit_codes(error, code):
    assert console.report(error) == code


@pytest.mark.parametrize(
    "name", [n for n, e in vars(errors).items() if isinstance(e, type) and e.__module__ == errors.__name__]
)
def test_every_error_of_the_library_is_its_message(name, capfd):
    console.report(getattr(errors, name)("list.jsonl:3: expected [b]x[/b], found :smile:"))
    assert capfd.readouterr().err == "error: list.jsonl:3: expected [b]x[/b], found :smile:\n"


def test_an_unforeseen_error_names_its_type_and_how_to_see_more(oasr, monkeypatch, manifest):
    def broken(config):
        raise ZeroDivisionError("float division by zero")

    monkeypatch.setattr("oasr_cli.run.load_engine", broken)
    done = oasr("transcribe", manifest(1))
    assert done.code == 1
    assert (
        done.err
        == "error: ZeroDivisionError: float division by zero (unexpected; --log-level debug shows where)\n"
    )
    done = oasr("transcribe", manifest(1), "--log-level", "debug")
    assert done.code == 1 and "Traceback" in done.err and "in broken" in done.err


def test_an_os_error_names_its_file():
    assert console.message(PermissionError(13, "Permission denied", "/a/b")) == "/a/b: Permission denied"


def test_control_characters_cannot_reach_the_terminal():
    assert console.printable("a\x1b[2Jb\nc\u202ed\x07é 🎤") == "a\\x1b[2Jb\\nc\\u202ed\\x07é 🎤"


def test_results_are_utf8_whatever_the_locale(capfdbinary):
    console.result("Zürich 🎤 \udcff")
    assert capfdbinary.readouterr().out == "Zürich 🎤 ?\n".encode()


def test_logging_shows_the_level_asked_for(capfd):
    console.setup_logging("warning")
    logging.getLogger("oasr.x").warning("seen [red]as is[/]")
    logging.getLogger("oasr.x").info("unseen")
    logging.getLogger("py.warnings").warning("library chatter")
    assert capfd.readouterr().err == "warning: oasr.x: seen [red]as is[/]\n"
    console.setup_logging("info")
    logging.getLogger("py.warnings").warning("library chatter")
    assert "library chatter" in capfd.readouterr().err


def test_a_table_that_does_not_fit_becomes_lists_and_loses_nothing(monkeypatch, capsys):
    monkeypatch.setattr(console, "stdout_is_terminal", lambda: True)
    header, rows = ("metric", "substitutions", "file"), [("WER", "123456", "a" * 40), ("CER", "7", "b" * 40)]
    monkeypatch.setenv("COLUMNS", "41")
    console.result_table(header, rows)
    table = capsys.readouterr().out.splitlines()
    assert table[0].split() == list(header) and "".join(line[23:] for line in table[1:4]).count("a") == 40
    monkeypatch.setenv("COLUMNS", "36")
    console.result_table(header, rows)
    lists = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lists == [
        ["metric", "WER"], ["substitutions", "123456"], ["file", "a" * 21], ["a" * 19], [],
        ["metric", "CER"], ["substitutions", "7"], ["file", "b" * 21], ["b" * 19],
    ]  # fmt: skip
