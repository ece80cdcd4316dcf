"""The tokens that tell Whisper's decoder what to do, built from what the checkpoint names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from oasr.errors import RequestError
from oasr.models.whisper_config import WhisperTokens
from oasr.tokenizers.base import Tokenizer
from oasr.tokenizers.languages import describe, find_language


@dataclass(frozen=True, slots=True)
class WhisperPrompt:
    """Prompt rules of one checkpoint.

    The task and language slots of the SOT sequence are the entries whose value is one of the
    checkpoint's own task or language ids. Substituting one never changes the length, so rows of
    different tasks and languages prefill as one rectangle.
    """

    tokens: WhisperTokens
    tokenizer: Tokenizer
    max_previous: int

    @property
    def longest(self) -> int:
        """Most tokens that a prompt can have: `<|startofprev|>`, the previous text, the SOT sequence."""
        return 1 + self.max_previous + len(self.tokens.sot_sequence)

    def validate_language(self, language: str) -> str:
        """The checkpoint's own code for a code or an English language name.

        Raises:
            RequestError: an unknown language, or any but English on an English-only checkpoint.
        """
        known = self.tokens.language_ids
        code = find_language(language, known if self.tokens.is_multilingual else ("en",))
        if not self.tokens.is_multilingual:
            if code == "en":
                return code
            raise RequestError(
                f"language {language!r}: this checkpoint is English-only; leave the language out, say en, "
                "or use a multilingual model"
            )
        if code is None:
            names = ", ".join(describe(c) for c in sorted(known))
            raise RequestError(f"language {language!r} is not one of this checkpoint's {len(known)}: {names}")
        return code

    def validate_task(self, task: str) -> str:
        """`task` itself. Raises RequestError when the checkpoint cannot do it."""
        if task == "transcribe" and not self.tokens.is_multilingual:
            return task
        if not self.tokens.is_multilingual:
            raise RequestError(f"task {task!r}: this checkpoint is English-only and can only transcribe")
        if task not in self.tokens.task_ids:
            known = ", ".join(sorted(self.tokens.task_ids)) or "none"
            raise RequestError(f"task {task!r}: this checkpoint knows {known}")
        return task

    def sot_sequence(self, task: str | None, language: str | None) -> tuple[int, ...]:
        """The checkpoint's SOT sequence with its task and language slots set; None keeps a slot.

        Raises:
            RequestError: the checkpoint does not know the task or language, or its prompt has no
                slot for one.
        """
        sequence = list(self.tokens.sot_sequence)
        code = None if language is None else self.validate_language(language)
        if task is not None:
            self.validate_task(task)
        # English-only prompts have no slots: what was given is checked, and changes nothing.
        if self.tokens.is_multilingual:
            for chosen, ids, what in (
                (code, self.tokens.language_ids, "language"),
                (task, self.tokens.task_ids, "task"),
            ):
                if chosen is not None:
                    sequence[self._require_slot(ids.values(), what)] = ids[chosen]
        return tuple(sequence)

    def previous_text(self, prompt: str | None) -> tuple[int, ...]:
        """`<|startofprev|>` and the last tokens of the previous text; empty without one.

        Raises:
            RequestError: the checkpoint's vocabulary has no `<|startofprev|>`.
        """
        if prompt is None or not prompt.strip():
            return ()
        if self.tokens.sot_prev_id is None:
            raise RequestError("prompt: this checkpoint's vocabulary has no <|startofprev|> token")
        # With a space before it the first word gets the tokens that it has within a text.
        ids = self.tokenizer.encode(" " + prompt.strip())
        return (self.tokens.sot_prev_id, *ids[-self.max_previous :])

    @property
    def default_language(self) -> str | None:
        """The code that the SOT sequence carries when nobody chooses one."""
        if not self.tokens.is_multilingual:
            return "en"
        slot = self._slot(self.tokens.language_ids.values())
        if slot is None:
            return None
        wanted = self.tokens.sot_sequence[slot]
        return next(code for code, i in self.tokens.language_ids.items() if i == wanted)

    def _require_slot(self, ids: Iterable[int], what: str) -> int:
        slot = self._slot(ids)
        if slot is None:
            raise RequestError(f"{what}: the prompt stored in this checkpoint has no {what} token to replace")
        return slot

    def _slot(self, ids: Iterable[int]) -> int | None:
        known = set(ids)
        return next((i for i, t in enumerate(self.tokens.sot_sequence) if t in known), None)
