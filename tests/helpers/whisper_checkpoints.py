"""Tiny random Whisper checkpoints, written in every format, and transformers as their oracle."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import torch
from transformers import WhisperConfig, WhisperForConditionalGeneration

LANGUAGES = ("en", "zh", "de", "yue")
CONTROL = (
    "<|endoftext|>",
    "<|startoftranscript|>",
    *(f"<|{code}|>" for code in LANGUAGES),
    "<|translate|>",
    "<|transcribe|>",
    "<|startoflm|>",
    "<|startofprev|>",
    "<|nospeech|>",
    "<|notimestamps|>",
)
TEXT_IDS = 256  # one id a byte; the control ids follow
IDS = {content: TEXT_IDS + i for i, content in enumerate(CONTROL)}
VOCAB = TEXT_IDS + len(CONTROL) + 4  # four ids that the tokenizer does not name, like timestamps


def oracle(seed: int = 0, **dims: int) -> WhisperForConditionalGeneration:
    """A transformers Whisper with random weights large enough for sharp, varied logits."""
    sizes = {
        "vocab_size": VOCAB, "num_mel_bins": 8, "d_model": 16, "encoder_layers": 2, "decoder_layers": 3,
        "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 40,
        "decoder_ffn_dim": 48, "max_source_positions": 20, "max_target_positions": 24,
    }  # fmt: skip
    eos = IDS["<|endoftext|>"]
    config = WhisperConfig(
        **{**sizes, **dims}, decoder_start_token_id=IDS["<|startoftranscript|>"], eos_token_id=eos,
        bos_token_id=eos, pad_token_id=eos, suppress_tokens=[1, 5], begin_suppress_tokens=[32, eos],
        attn_implementation="eager",
    )  # fmt: skip
    model = WhisperForConditionalGeneration(config).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            norm_weight = parameter.dim() == 1 and float(parameter.mean()) == 1.0
            parameter.copy_(1 + 0.1 * noise if norm_weight else 0.3 * noise)
    return model


def oracle_logits(
    model: WhisperForConditionalGeneration, features: torch.Tensor, tokens: torch.Tensor
) -> torch.Tensor:
    """(B, T, n_mels) features and (B, L) tokens → (B, L, vocab) logits."""
    with torch.inference_mode():
        return model(input_features=features.transpose(1, 2), decoder_input_ids=tokens).logits


def generation_config(**changes: object) -> dict[str, object]:
    """generation_config.json of a multilingual snapshot, language slot open."""
    said = {
        "is_multilingual": True,
        "lang_to_id": {f"<|{code}|>": IDS[f"<|{code}|>"] for code in LANGUAGES},
        "task_to_id": {name: IDS[f"<|{name}|>"] for name in ("transcribe", "translate")},
        "forced_decoder_ids": [[1, None], [2, IDS["<|transcribe|>"]]],
        "no_timestamps_token_id": IDS["<|notimestamps|>"],
        "prev_sot_token_id": IDS["<|startofprev|>"],
        "decoder_start_token_id": IDS["<|startoftranscript|>"],
        "eos_token_id": IDS["<|endoftext|>"],
        "suppress_tokens": [1, 2, 7],
        "begin_suppress_tokens": [32, IDS["<|endoftext|>"]],
        "alignment_heads": [[0, 1], [2, 3]],
    }
    return {k: v for k, v in {**said, **changes}.items() if v is not ...}


def write_tokenizer(folder: Path, control: tuple[str, ...] = CONTROL, filler: int = 0) -> Path:
    """A byte-level tokenizer.json without merges: `filler` extra words, then the control tokens."""
    from oasr.tokenizers.byte_level import byte_of_char
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    vocab = dict(byte_of_char())
    vocab.update({f"filler{i}": TEXT_IDS + i for i in range(filler)})
    backend = Tokenizer(models.BPE(vocab=vocab, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in control])
    folder.mkdir(parents=True, exist_ok=True)
    backend.save(str(folder / "tokenizer.json"))
    return folder / "tokenizer.json"


def write_hf(
    model: WhisperForConditionalGeneration,
    folder: Path,
    kind: str = "safetensors",
    generation: dict[str, object] | None = None,
) -> Path:
    """A snapshot: kind is safetensors, sharded, bin or bin-sharded."""
    if kind in ("safetensors", "sharded"):
        model.save_pretrained(folder, max_shard_size="10KB" if kind == "sharded" else "5GB")
        (folder / "generation_config.json").unlink(missing_ok=True)
    else:
        folder.mkdir(parents=True, exist_ok=True)
        model.config.save_pretrained(folder)
        _write_bin(model, folder, shards=2 if kind == "bin-sharded" else 1)
    if generation is not None:
        (folder / "generation_config.json").write_text(json.dumps(generation))
    write_tokenizer(folder)
    return folder


def _write_bin(model: WhisperForConditionalGeneration, folder: Path, shards: int) -> None:
    state = {k: v.clone() for k, v in model.state_dict().items()}
    if shards == 1:
        torch.save(state, folder / "pytorch_model.bin")
        return
    names, weight_map = list(state), {}
    for part in range(shards):
        file = f"pytorch_model-{part + 1:05d}-of-{shards:05d}.bin"
        mine = {name: state[name] for name in names[part::shards]}
        weight_map.update(dict.fromkeys(mine, file))
        torch.save(mine, folder / file)
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": weight_map}))


_OPENAI = (
    ("model.", ""), ("layers", "blocks"), ("fc1", "mlp.0"), ("fc2", "mlp.2"), ("final_layer_norm", "mlp_ln"),
    (".self_attn.q_proj", ".attn.query"), (".self_attn.k_proj", ".attn.key"),
    (".self_attn.v_proj", ".attn.value"), (".self_attn.out_proj", ".attn.out"),
    ("self_attn_layer_norm", "attn_ln"), (".encoder_attn.q_proj", ".cross_attn.query"),
    (".encoder_attn.k_proj", ".cross_attn.key"), (".encoder_attn.v_proj", ".cross_attn.value"),
    (".encoder_attn.out_proj", ".cross_attn.out"), ("encoder_attn_layer_norm", "cross_attn_ln"),
    ("decoder.layer_norm", "decoder.ln"), ("encoder.layer_norm", "encoder.ln_post"),
    ("embed_tokens", "token_embedding"), ("embed_positions.weight", "positional_embedding"),
)  # fmt: skip


def write_openai(model: WhisperForConditionalGeneration, path: Path) -> Path:
    """The released layout: {"dims", "model_state_dict"}, half precision nowhere."""
    c, state = model.config, {}
    for name, value in model.state_dict().items():
        if name == "proj_out.weight":
            continue
        for old, new in _OPENAI:
            name = name.replace(old, new)
        state[name] = value.clone()
    dims = {
        "n_mels": c.num_mel_bins, "n_vocab": c.vocab_size, "n_audio_ctx": c.max_source_positions,
        "n_audio_state": c.d_model, "n_audio_head": c.encoder_attention_heads,
        "n_audio_layer": c.encoder_layers, "n_text_ctx": c.max_target_positions, "n_text_state": c.d_model,
        "n_text_head": c.decoder_attention_heads, "n_text_layer": c.decoder_layers,
    }  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save({"dims": dims, "model_state_dict": state}, path)
    return path


def ctranslate2_variables(model: WhisperForConditionalGeneration) -> dict[str, np.ndarray]:
    """The variables that CTranslate2's converter would store, in float32."""
    state = {k.removeprefix("model."): v.detach().float() for k, v in model.state_dict().items()}
    variables: dict[str, np.ndarray] = {}

    def put(name: str, *sources: str) -> None:
        variables[name] = torch.cat([state[s] for s in sources]).numpy()

    def linear(name: str, prefix: str, *parts: str) -> None:
        put(f"{name}/weight", *(f"{prefix}.{p}.weight" for p in parts))
        zero = torch.zeros(state[f"{prefix}.{parts[0]}.weight"].shape[0])
        bias = [state.get(f"{prefix}.{p}.bias", zero) for p in parts]
        variables[f"{name}/bias"] = torch.cat(bias).numpy()

    def norm(name: str, source: str) -> None:
        put(f"{name}/gamma", f"{source}.weight")
        put(f"{name}/beta", f"{source}.bias")

    for side in ("encoder", "decoder"):
        variables[f"{side}/num_heads"] = np.int16(getattr(model.config, f"{side}_attention_heads"))
        variables[f"{side}/activation"] = np.int8(3)
        put(f"{side}/position_encodings/encodings", f"{side}.embed_positions.weight")
        norm(f"{side}/layer_norm", f"{side}.layer_norm")
        for i in range(getattr(model.config, f"{side}_layers")):
            ours, theirs = f"{side}/layer_{i}", f"{side}.layers.{i}"
            norm(f"{ours}/self_attention/layer_norm", f"{theirs}.self_attn_layer_norm")
            linear(f"{ours}/self_attention/linear_0", f"{theirs}.self_attn", "q_proj", "k_proj", "v_proj")
            linear(f"{ours}/self_attention/linear_1", f"{theirs}.self_attn", "out_proj")
            norm(f"{ours}/ffn/layer_norm", f"{theirs}.final_layer_norm")
            linear(f"{ours}/ffn/linear_0", theirs, "fc1")
            linear(f"{ours}/ffn/linear_1", theirs, "fc2")
            if side == "decoder":
                norm(f"{ours}/attention/layer_norm", f"{theirs}.encoder_attn_layer_norm")
                linear(f"{ours}/attention/linear_0", f"{theirs}.encoder_attn", "q_proj")
                linear(f"{ours}/attention/linear_1", f"{theirs}.encoder_attn", "k_proj", "v_proj")
                linear(f"{ours}/attention/linear_2", f"{theirs}.encoder_attn", "out_proj")
    for conv in ("conv1", "conv2"):
        linear(f"encoder/{conv}", "encoder", conv)
    put("decoder/embeddings/weight", "decoder.embed_tokens.weight")
    return variables


def quantise(variables: dict[str, np.ndarray], kind: str) -> dict[str, np.ndarray]:
    """The converter's storage types: float32, float16, bfloat16, int16 or int8."""
    stored: dict[str, np.ndarray] = {}
    for name, value in variables.items():
        if value.ndim == 0 or value.dtype != np.float32:
            stored[name] = value
        elif kind == "bfloat16":
            stored[name] = torch.from_numpy(value).bfloat16().view(torch.int16).numpy().view("V2")
        elif kind in ("float32", "float16"):
            stored[name] = value.astype(kind)
        elif not name.endswith("/weight"):
            stored[name] = value
        elif kind == "int16":
            scale = np.float32(2**10 / np.abs(value).max())
            stored[name], stored[f"{name}_scale"] = np.rint(value * scale).astype(np.int16), scale
        else:
            rows = value.reshape(value.shape[0], -1)
            scale = 127 / np.maximum(np.abs(rows).max(1), 1e-30)
            stored[name] = np.rint(rows * scale[:, None]).astype(np.int8).reshape(value.shape)
            stored[f"{name}_scale"] = scale.astype(np.float32)
    return stored


_CODES = {"float32": 0, "int8": 1, "int16": 2, "int32": 3, "float16": 4, "void16": 5}


def model_bin(variables: dict[str, np.ndarray], spec: str = "WhisperSpec", version: int = 6) -> bytes:
    """Serialise variables as CTranslate2's model.bin, the output head as an alias."""

    def string(text: str) -> bytes:
        raw = text.encode() + b"\0"
        return struct.pack("<H", len(raw)) + raw

    out = [struct.pack("<I", version), string(spec), struct.pack("<II", 3, len(variables))]
    for name, value in variables.items():
        array = np.asarray(value)
        out += [string(name), struct.pack("<B", array.ndim), struct.pack(f"<{array.ndim}I", *array.shape)]
        out += [struct.pack("<BI", _CODES[array.dtype.name], array.nbytes), array.tobytes()]
    aliases = [n for n in variables if n.startswith("decoder/embeddings/weight")]
    out.append(struct.pack("<I", len(aliases)))
    for name in aliases:
        out += [string(name.replace("embeddings", "projection")), string(name)]
    return b"".join(out)


def write_ctranslate2(model: WhisperForConditionalGeneration, folder: Path, kind: str = "float32") -> Path:
    """A folder as the converter leaves it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.bin").write_bytes(model_bin(quantise(ctranslate2_variables(model), kind)))
    config = {
        "suppress_ids": [1, 2, 7],
        "suppress_ids_begin": [32, IDS["<|endoftext|>"]],
        "lang_ids": [IDS[f"<|{code}|>"] for code in LANGUAGES],
        "alignment_heads": [[0, 1]],
    }
    (folder / "config.json").write_text(json.dumps(config))
    write_tokenizer(folder)
    return folder


def oracle_of_ctranslate2(folder: Path) -> WhisperForConditionalGeneration:
    """transformers' Whisper with the weights of a CTranslate2 folder (the inverse mapping)."""
    from oasr.checkpoints.ctranslate2_file import CTranslate2File

    stored = CTranslate2File(folder / "model.bin")
    width, n_mels, _ = stored.shape("encoder/conv1/weight")
    heads = stored.scalar("encoder/num_heads")
    layers = sum(n.startswith("encoder/layer_") and n.endswith("ffn/linear_0/bias") for n in stored.variables)
    config = WhisperConfig(
        vocab_size=stored.shape("decoder/embeddings/weight")[0], num_mel_bins=n_mels, d_model=width,
        encoder_layers=layers, decoder_layers=layers, encoder_attention_heads=heads,
        decoder_attention_heads=heads, encoder_ffn_dim=4 * width, decoder_ffn_dim=4 * width,
        decoder_start_token_id=0,
    )  # fmt: skip
    with torch.device("meta"):
        model = WhisperForConditionalGeneration(config)
    model.load_state_dict(_huggingface_state(stored, layers), assign=True, strict=False)
    model.tie_weights()
    return model.float().eval()


def _huggingface_state(stored, layers: int) -> dict[str, torch.Tensor]:
    state: dict[str, torch.Tensor] = {}

    def take(name: str, *targets: str) -> None:
        for target, part in zip(targets, stored.tensor(name).float().chunk(len(targets)), strict=True):
            state[f"model.{target}"] = part.contiguous()

    def linear(name: str, prefix: str, *parts: str) -> None:
        for kind in ("weight", "bias"):
            take(f"{name}/{kind}", *(f"{prefix}.{p}.{kind}" for p in parts))
        state.pop(f"model.{prefix}.k_proj.bias", None)

    def norm(name: str, target: str) -> None:
        take(f"{name}/gamma", f"{target}.weight")
        take(f"{name}/beta", f"{target}.bias")

    for side in ("encoder", "decoder"):
        take(f"{side}/position_encodings/encodings", f"{side}.embed_positions.weight")
        norm(f"{side}/layer_norm", f"{side}.layer_norm")
        for i in range(layers):
            theirs, ours = f"{side}/layer_{i}", f"{side}.layers.{i}"
            norm(f"{theirs}/self_attention/layer_norm", f"{ours}.self_attn_layer_norm")
            linear(f"{theirs}/self_attention/linear_0", f"{ours}.self_attn", "q_proj", "k_proj", "v_proj")
            linear(f"{theirs}/self_attention/linear_1", f"{ours}.self_attn", "out_proj")
            norm(f"{theirs}/ffn/layer_norm", f"{ours}.final_layer_norm")
            linear(f"{theirs}/ffn/linear_0", ours, "fc1")
            linear(f"{theirs}/ffn/linear_1", ours, "fc2")
            if side == "decoder":
                norm(f"{theirs}/attention/layer_norm", f"{ours}.encoder_attn_layer_norm")
                linear(f"{theirs}/attention/linear_0", f"{ours}.encoder_attn", "q_proj")
                linear(f"{theirs}/attention/linear_1", f"{ours}.encoder_attn", "k_proj", "v_proj")
                linear(f"{theirs}/attention/linear_2", f"{ours}.encoder_attn", "out_proj")
    for conv in ("conv1", "conv2"):
        linear(f"encoder/{conv}", "encoder", conv)
    take("decoder/embeddings/weight", "decoder.embed_tokens.weight")
    state["proj_out.weight"] = state["model.decoder.embed_tokens.weight"]
    return state
