"""Whisper's control ids, from whatever the checkpoint says about them: never from fixed numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from oasr.errors import CheckpointError
from oasr.models.whisper_config import WhisperTokens
from oasr.tokenizers.base import Tokenizer
from oasr.tokenizers.languages import describe, find_language

_LANGUAGE = re.compile(r"<\|([a-z]{2,3})\|>")
# The released models' own criterion, used only where neither a flag nor a prompt tells.
_MULTILINGUAL_VOCABULARY = 51865
_SYMBOLS = '"#()*+/:;<=>@[\\]^_`{|}~「」『』'
_RUNS = "<< >> <<< >>> -- --- -( -[ (' (\" (( )) ((( ))) [[ ]] {{ }} ♪♪ ♪♪♪"
_NOTES = "♩♪♫♬♭♮♯"
_CONTROL = "startoftranscript translate transcribe startoflm startofprev nospeech nocaptions"


def whisper_tokens(
    tokenizer: Tokenizer, vocab_size: int, generation: Mapping[str, Any], config: Mapping[str, Any]
) -> WhisperTokens:
    """Collect the ids.

    Args:
        tokenizer: the checkpoint's own.
        vocab_size: rows of the token embedding.
        generation: generation_config.json of a Hugging Face snapshot, or {}.
        config: config.json (Hugging Face or CTranslate2), or {}. `generation` goes first.

    Raises:
        CheckpointError: no end or start token is named anywhere, an id is out of range, a multilingual
            model has no language ids, or `generation` asks for a language or task that it does not have.
    """
    try:
        return _collected(_Facts(tokenizer, generation, config), vocab_size)
    except (AttributeError, IndexError, TypeError, ValueError, OverflowError) as error:
        raise CheckpointError(
            "generation_config.json or config.json: expected token ids, lists of ids and tables name → id; "
            f"found something else ({error})"
        ) from error


def _collected(facts: _Facts, vocab_size: int) -> WhisperTokens:
    eos = facts.one("eos_token_id", "<|endoftext|>")
    sot = facts.one("decoder_start_token_id", "<|startoftranscript|>")
    if eos is None or sot is None:
        lacking = "<|endoftext|>" if eos is None else "<|startoftranscript|>"
        raise CheckpointError(
            f"neither the tokenizer nor the configuration names {lacking}; is this a Whisper checkpoint?"
        )
    languages, tasks = facts.languages(), facts.tasks()
    multilingual = facts.is_multilingual({*languages.values(), *tasks.values()}, vocab_size)
    if multilingual and not languages:
        raise CheckpointError(
            "a multilingual Whisper needs language tokens, such as <|en|>, and neither lang_to_id of "
            "generation_config.json nor the tokenizer has one; copy both files of the original model, or say "
            "is_multilingual false there if it is English-only"
        )
    no_timestamps = facts.one("no_timestamps_token_id", "<|notimestamps|>")
    suppress, begin = facts.suppress_lists(eos)
    tokens = WhisperTokens(
        eos_id=eos,
        sot_id=sot,
        sot_sequence=(sot, *facts.slots(multilingual, languages, tasks, no_timestamps)),
        settled_language=facts.settled_language(multilingual, languages),
        is_multilingual=multilingual,
        language_ids=languages,
        task_ids=tasks,
        suppress_ids=_ids(suppress, vocab_size),
        begin_suppress_ids=_ids(begin, vocab_size),
        no_timestamps_id=no_timestamps,
        no_speech_id=facts.special("<|nospeech|>", "<|nocaptions|>"),
        sot_prev_id=facts.one("prev_sot_token_id", "<|startofprev|>"),
        alignment_heads=_pairs("alignment_heads", facts.said("alignment_heads")),
    )
    _check_range(tokens, vocab_size)
    return tokens


@dataclass(frozen=True, slots=True)
class _Facts:
    """The three sources of `whisper_tokens`, with one way of asking each question."""

    tokenizer: Tokenizer
    generation: Mapping[str, Any]
    config: Mapping[str, Any]

    def said(self, *keys: str) -> Any:
        """The first value that is not null under one of `keys`, generation_config first."""
        values = (source.get(key) for source in (self.generation, self.config) for key in keys)
        return next((value for value in values if value is not None), None)

    def special(self, *contents: str) -> int | None:
        """Id of the first of these control tokens that the vocabulary has."""
        return next((i for c in contents if (i := self.tokenizer.special_id(c)) is not None), None)

    def one(self, key: str, content: str) -> int | None:
        """The id under `key` (of a list, its first), else the control token `content`."""
        value = self.said(key)
        value = value[0] if isinstance(value, list) and value else value
        return value if isinstance(value, int) else self.special(content)

    def languages(self) -> dict[str, int]:
        """Language code → id, in id order."""
        named: Mapping[str, int] = self.generation.get("lang_to_id") or self.tokenizer.special_ids
        found = {m.group(1): i for content, i in named.items() if (m := _LANGUAGE.fullmatch(content))}
        return dict(sorted(found.items(), key=lambda item: item[1]))

    def tasks(self) -> dict[str, int]:
        """Task name → id."""
        named = self.generation.get("task_to_id")
        if named:
            return {str(name): int(i) for name, i in named.items()}
        both = {name: self.special(f"<|{name}|>") for name in ("transcribe", "translate")}
        return {name: i for name, i in both.items() if i is not None}

    def is_multilingual(self, slot_ids: set[int], vocab_size: int) -> bool:
        """The snapshot's flag, else whether its prompt has a language or task slot, else the size."""
        flag = self.generation.get("is_multilingual")
        if isinstance(flag, bool):
            return flag
        forced = self.said("forced_decoder_ids")
        if forced:
            return any(token is None or token in slot_ids for _, token in forced)
        return vocab_size >= _MULTILINGUAL_VOCABULARY

    def stated_language(self, multilingual: bool, languages: Mapping[str, int]) -> str | None:
        """The code of `language` of generation_config.json, which may be a code, a name or `<|xx|>`."""
        said = self.generation.get("language")
        if said is None:
            return None
        known = languages if multilingual else ("en",)
        code = find_language(re.sub(r"^<\|(.*)\|>$", r"\1", said), known) if isinstance(said, str) else None
        if code is None:
            raise CheckpointError(
                f"generation_config.json: language {said!r} is not one of this checkpoint's "
                f"{len(known)}: {', '.join(map(describe, sorted(known)))}"
            )
        return code

    def stated_task(self, multilingual: bool, tasks: Mapping[str, int]) -> str | None:
        """`task` of generation_config.json."""
        said = self.generation.get("task")
        known = tasks if multilingual else ("transcribe",)
        if said is None or said in known:
            return said
        raise CheckpointError(
            f"generation_config.json: task {said!r}: this checkpoint knows "
            f"{', '.join(sorted(known)) or 'none'}"
        )

    def settled_language(self, multilingual: bool, languages: Mapping[str, int]) -> str | None:
        """What generation_config.json says of the language: by name, or by an id that it forces.

        config.json does not count: the released multilingual models have English there, and detect.
        """
        stated = self.stated_language(multilingual, languages)
        # Beside a language or a task, forced ids are ignored.
        if stated is not None or self.generation.get("task") is not None or not multilingual:
            return stated
        forced = {token for _, token in self.generation.get("forced_decoder_ids") or ()}
        return next((code for code, i in languages.items() if i in forced), None)

    def slots(
        self, multilingual: bool, languages: Mapping[str, int], tasks: Mapping[str, int], last: int | None
    ) -> list[int]:
        """What follows the start token.

        The forced ids in their order, an open (null) slot filled with English; without forced
        ids, language and task of a multilingual checkpoint. `last` (no timestamps) ends it.
        The language and the task that generation_config.json names go before any forced ids.
        """
        english = languages.get("en", next(iter(languages.values()), None)) if multilingual else None
        forced = self.said("forced_decoder_ids")
        language, task = self.stated_language(multilingual, languages), self.stated_task(multilingual, tasks)
        chosen = english if language is None or not multilingual else languages[language]
        slots = [chosen, tasks.get(task or "transcribe") if multilingual else None]
        if forced and not (multilingual and (language or task)):
            ordered = sorted(forced, key=lambda pair: pair[0])
            slots = [english if token is None else int(token) for _, token in ordered]
        found = [i for i in slots if i is not None]
        return found if last is None or last in found else [*found, last]

    def suppress_lists(self, eos: int) -> tuple[Iterable[int] | None, Iterable[int] | None]:
        """Ids never chosen, and never chosen first: as stored, else as the released decoder has them."""
        # A configuration that names no list means an empty one.
        if self.generation or self.config:
            begin = self.said("begin_suppress_tokens", "suppress_ids_begin")
            return self.said("suppress_tokens", "suppress_ids"), begin
        # Not a blank first, and not nothing at all.
        return self._released_suppress_ids(), [*self.tokenizer.encode(" "), eos]

    def _released_suppress_ids(self) -> set[int]:
        """Symbols that annotate speech rather than transcribe it, and control tokens.

        A symbol counts when it is one token, alone or after a space; a musical note counts by its
        first token, for notes share a prefix of bytes that little else has.
        """
        encode = self.tokenizer.encode
        # A hyphen or an apostrophe may stand within a word, not begin one.
        barred = {ids[0] for text in (" -", " '") if (ids := encode(text))}
        for symbol in [*_SYMBOLS, *_RUNS.split(), *_NOTES]:
            for ids in (encode(symbol), encode(" " + symbol)):
                if ids and (len(ids) == 1 or symbol in _NOTES):
                    barred.add(ids[0])
        control = [self.special(f"<|{name}|>") for name in _CONTROL.split()]
        return barred | {i for i in control if i is not None}


def _ids(values: Iterable[int] | None, vocab_size: int) -> tuple[int, ...]:
    return tuple(sorted({int(i) for i in values or () if 0 <= int(i) < vocab_size}))


def _pairs(name: str, values: Any) -> tuple[tuple[int, int], ...]:
    """`[[layer, head], ...]` of a configuration; none when it says nothing."""

    def is_pair(value: Any) -> bool:
        return isinstance(value, list) and len(value) == 2 and all(type(i) is int and i >= 0 for i in value)

    if values is None:
        return ()
    if not isinstance(values, list) or not all(map(is_pair, values)):
        raise CheckpointError(f"{name}: expected a list of [layer, head] numbers, found {values!r}")
    return tuple((layer, head) for layer, head in values)


def _check_range(tokens: WhisperTokens, vocab_size: int) -> None:
    used = {tokens.eos_id, *tokens.sot_sequence, *tokens.language_ids.values(), *tokens.task_ids.values()}
    used |= {i for i in (tokens.no_speech_id, tokens.sot_prev_id) if i is not None}
    wrong = sorted(i for i in used if not 0 <= i < vocab_size)
    if wrong:
        raise CheckpointError(
            f"control token ids {wrong} lie outside the model's vocabulary of {vocab_size}: "
            "the tokenizer or generation_config.json belongs to another checkpoint"
        )
