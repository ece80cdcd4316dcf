"""English names of the language codes of multilingual speech models (ISO 639, and Whisper's `jw`)."""

from __future__ import annotations

from collections.abc import Container

NAMES: dict[str, str] = {
    "af": "afrikaans", "am": "amharic", "ar": "arabic", "as": "assamese", "az": "azerbaijani",
    "ba": "bashkir", "be": "belarusian", "bg": "bulgarian", "bn": "bengali", "bo": "tibetan",
    "br": "breton", "bs": "bosnian", "ca": "catalan", "cs": "czech", "cy": "welsh", "da": "danish",
    "de": "german", "el": "greek", "en": "english", "es": "spanish", "et": "estonian", "eu": "basque",
    "fa": "persian", "fi": "finnish", "fo": "faroese", "fr": "french", "gl": "galician",
    "gu": "gujarati", "ha": "hausa", "haw": "hawaiian", "he": "hebrew", "hi": "hindi", "hr": "croatian",
    "ht": "haitian creole", "hu": "hungarian", "hy": "armenian", "id": "indonesian", "is": "icelandic",
    "it": "italian", "ja": "japanese", "jw": "javanese", "ka": "georgian", "kk": "kazakh", "km": "khmer",
    "kn": "kannada", "ko": "korean", "la": "latin", "lb": "luxembourgish", "ln": "lingala", "lo": "lao",
    "lt": "lithuanian", "lv": "latvian", "mg": "malagasy", "mi": "maori", "mk": "macedonian",
    "ml": "malayalam", "mn": "mongolian", "mr": "marathi", "ms": "malay", "mt": "maltese",
    "my": "myanmar", "ne": "nepali", "nl": "dutch", "nn": "nynorsk", "no": "norwegian", "oc": "occitan",
    "pa": "punjabi", "pl": "polish", "ps": "pashto", "pt": "portuguese", "ro": "romanian",
    "ru": "russian", "sa": "sanskrit", "sd": "sindhi", "si": "sinhala", "sk": "slovak",
    "sl": "slovenian", "sn": "shona", "so": "somali", "sq": "albanian", "sr": "serbian",
    "su": "sundanese", "sv": "swedish", "sw": "swahili", "ta": "tamil", "te": "telugu", "tg": "tajik",
    "th": "thai", "tk": "turkmen", "tl": "tagalog", "tr": "turkish", "tt": "tatar", "uk": "ukrainian",
    "ur": "urdu", "uz": "uzbek", "vi": "vietnamese", "yi": "yiddish", "yo": "yoruba",
    "yue": "cantonese", "zh": "chinese",
}  # fmt: skip

OTHER_NAMES: dict[str, str] = {
    "bokmål": "no", "burmese": "my", "castilian": "es", "farsi": "fa", "filipino": "tl", "flemish": "nl",
    "haitian": "ht", "jv": "jw", "letzeburgesch": "lb", "mandarin": "zh", "moldavian": "ro",
    "moldovan": "ro", "nb": "no", "panjabi": "pa", "pushto": "ps", "sinhalese": "si", "valencian": "ca",
}  # fmt: skip

_BY_NAME = {name: code for code, name in NAMES.items()} | OTHER_NAMES


def find_language(text: str, known: Container[str]) -> str | None:
    """The code in `known` that `text` means: a code in any case, an English name, or a code with a region.

    Returns None when it means none of them.
    """
    wanted = text.strip().lower().replace("_", "-")
    base = wanted.partition("-")[0]
    # Only codes have regions, and of the other names those of two letters are codes.
    other = OTHER_NAMES.get(base) if len(base) == 2 else None
    for code in (wanted, _BY_NAME.get(wanted), base, other):
        if code is not None and code in known:
            return code
    return None


def describe(code: str) -> str:
    """The code, with its English name where there is one: `de (german)`."""
    return f"{code} ({NAMES[code]})" if code in NAMES else code
