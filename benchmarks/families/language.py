"""Networks of transformers, two layers deep and sixteen numbers wide, on a few words, pixels or samples."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from hbfp.golden.lower.source import Source
from hbfp.golden.vision import torchvision

WORDS, LENGTH, WIDTH, INNER, HEADS, LAYERS = 60, 7, 16, 32, 2, 2


class Named(nn.Module):
    """A model of transformers that takes tensors by name, and gives those that it is asked for."""

    def __init__(self, model: nn.Module, names: Sequence[str], results: Sequence[str]) -> None:
        super().__init__()
        self.model, self.names, self.results = model, names, results

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The results for inputs of these names."""
        found = self.model(**dict(zip(self.names, tensors, strict=True)))
        return tuple(found[name] for name in self.results)


class Step(nn.Module):
    """One step of decoding: a word behind others, whose keys and values are given; then those with its own."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, word: torch.Tensor, *cached: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Logits, and keys and values of each layer."""
        from transformers import DynamicCache
        cache = DynamicCache()
        for layer in range(len(cached) // 2):
            cache.update(*cached[2 * layer:2 * layer + 2], layer)
        found = self.model(input_ids=word, past_key_values=cache, use_cache=True)
        kept = found.past_key_values
        return (found.logits, *(each for layer in kept.layers for each in (layer.keys, layer.values)))


def _made(name: str, config: str, options: dict[str, Any]) -> nn.Module:
    torchvision()                                          # which transformers imports, too, where it is there
    import transformers
    return getattr(transformers, name)(getattr(transformers, config)(**options))


def _words(count=1, length=LENGTH):
    return torch.randint(3, WORDS, (count, length))


def _text(kind: str, task: str = "Model", results: Sequence[str] = ("last_hidden_state",), **options: Any
          ) -> Callable[[], Source]:
    """A model over words; ``options`` replace those of most configurations."""
    usual = {"vocab_size": WORDS, "hidden_size": WIDTH, "intermediate_size": INNER, "num_hidden_layers": LAYERS,
             "num_attention_heads": HEADS, "max_position_embeddings": 32, "pad_token_id": 0, "bos_token_id": 1,
             "eos_token_id": 2}

    def make():
        own = {name: value for name, value in (usual | options).items() if value is not None}
        return Named(_made(f"{kind}{task}", f"{kind}Config", own), ["input_ids"], results), (_words(),)
    return make


def _causal(kind: str, task: str = "ForCausalLM", **options: Any) -> Callable[[], Source]:
    return _text(kind, task, ("logits",), use_cache=False, **options)


#: Configurations that call their sizes otherwise.
_GPT = {"n_embd": WIDTH, "n_layer": LAYERS, "n_head": HEADS, "n_inner": INNER, "n_positions": 32, "hidden_size": None,
        "intermediate_size": None, "num_hidden_layers": None, "num_attention_heads": None,
        "max_position_embeddings": None}
_SHARED = {"num_key_value_heads": 1}                       #: keys and values that heads share


def _step(kind: str, task: str = "ForCausalLM", **options: Any) -> Callable[[], Source]:
    """A step of decoding behind so many words, of which the keys and values are given."""
    def make():
        whole, _ = _text(kind, task, ("logits",), **options)()
        heads = options.get("num_key_value_heads", HEADS)
        shape = (1, heads, LENGTH, WIDTH // HEADS)
        return Step(whole.model), (_words(1, 1), *(torch.randn(shape) for _ in range(2 * LAYERS)))
    return make


def _pixels(kind: str, side: int = 16, results: Sequence[str] = ("last_hidden_state",), **options: Any
            ) -> Callable[[], Source]:
    usual = {"hidden_size": WIDTH, "intermediate_size": INNER, "num_hidden_layers": LAYERS,
             "num_attention_heads": HEADS, "image_size": side, "patch_size": 4}

    def make():
        own = {name: value for name, value in (usual | options).items() if value is not None}
        return Named(_made(f"{kind}Model", f"{kind}Config", own), ["pixel_values"], results), (
            torch.randn(1, 3, side, side),)
    return make


def _t5():
    model = _made("T5Model", "T5Config", dict(
        vocab_size=WORDS, d_model=WIDTH, d_kv=8, d_ff=INNER, num_layers=LAYERS, num_heads=HEADS, use_cache=False,
        relative_attention_num_buckets=8, relative_attention_max_distance=16))
    return Named(model, ["input_ids", "decoder_input_ids"], ["last_hidden_state"]), (_words(), _words(1, 5))


def _bart():
    model = _made("BartModel", "BartConfig", dict(
        vocab_size=WORDS, d_model=WIDTH, encoder_layers=LAYERS, decoder_layers=LAYERS, encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS, encoder_ffn_dim=INNER, decoder_ffn_dim=INNER, max_position_embeddings=32,
        use_cache=False))
    return Named(model, ["input_ids", "decoder_input_ids"], ["last_hidden_state"]), (_words(), _words(1, 5))


def _whisper():
    model = _made("WhisperModel", "WhisperConfig", dict(
        vocab_size=WORDS, d_model=WIDTH, encoder_layers=LAYERS, decoder_layers=LAYERS, encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS, encoder_ffn_dim=INNER, decoder_ffn_dim=INNER, num_mel_bins=8,
        max_source_positions=10, max_target_positions=16, use_cache=False, pad_token_id=0, bos_token_id=1,
        eos_token_id=2, decoder_start_token_id=1, suppress_tokens=None, begin_suppress_tokens=None))
    return Named(model, ["input_features", "decoder_input_ids"], ["last_hidden_state"]), (
        torch.randn(1, 8, 20), _words(1, 5))


def _clip():
    text = dict(vocab_size=WORDS, hidden_size=WIDTH, intermediate_size=INNER, num_hidden_layers=LAYERS,
                num_attention_heads=HEADS, max_position_embeddings=16, projection_dim=WIDTH, bos_token_id=1,
                eos_token_id=2, pad_token_id=0)
    vision = dict(hidden_size=WIDTH, intermediate_size=INNER, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
                  image_size=16, patch_size=4, projection_dim=WIDTH)
    model = _made("CLIPModel", "CLIPConfig", dict(text_config=text, vision_config=vision, projection_dim=WIDTH))
    words = _words(2)
    words[:, -1] = 2
    return Named(model, ["input_ids", "pixel_values"], ["logits_per_image", "text_embeds", "image_embeds"]), (
        words, torch.randn(2, 3, 16, 16))


def _wav2vec2():
    model = _made("Wav2Vec2Model", "Wav2Vec2Config", dict(
        vocab_size=WORDS, hidden_size=WIDTH, intermediate_size=INNER, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, conv_dim=(8, 8), conv_stride=(4, 2), conv_kernel=(8, 3), num_conv_pos_embeddings=4,
        num_conv_pos_embedding_groups=2))
    return Named(model, ["input_values"], ["last_hidden_state"]), (torch.randn(1, 120),)


def _segformer():
    model = _made("SegformerModel", "SegformerConfig", dict(
        num_encoder_blocks=2, depths=[1, 1], sr_ratios=[2, 1], hidden_sizes=[8, 16], patch_sizes=[3, 3],
        strides=[2, 2], num_attention_heads=[1, 2], mlp_ratios=[2, 2]))
    return Named(model, ["pixel_values"], ["last_hidden_state"]), (torch.randn(1, 3, 16, 16),)


NETWORKS: dict[str, Callable[[], Source]] = {
    "bert": _text("Bert"), "distilbert": _text("DistilBert", dim=WIDTH, hidden_dim=INNER, n_layers=LAYERS,
                                               n_heads=HEADS),
    "roberta": _text("Roberta"), "albert": _text("Albert", embedding_size=8), "electra": _text(
        "Electra", embedding_size=8),
    "gpt2": _causal("GPT2", "LMHeadModel", **_GPT), "gpt2_step": _step("GPT2", "LMHeadModel", **_GPT),
    "gpt_neo": _causal("GPTNeo", num_layers=LAYERS, num_heads=HEADS, window_size=4, attention_types=[
        [["global", "local"], 1]], num_hidden_layers=None, num_attention_heads=None),
    "gptj": _causal("GPTJ", rotary_dim=4, **_GPT), "gpt_neox": _causal("GPTNeoX"),
    "opt": _causal("OPT", ffn_dim=INNER, word_embed_proj_dim=WIDTH, intermediate_size=None),
    "bloom": _causal("Bloom", n_layer=LAYERS, n_head=HEADS, intermediate_size=None, max_position_embeddings=None),
    "llama": _causal("Llama", **_SHARED), "llama_step": _step("Llama", **_SHARED),
    "mistral": _causal("Mistral", sliding_window=4, **_SHARED),
    "mixtral": _causal("Mixtral", num_local_experts=4, **_SHARED), "qwen2": _causal("Qwen2", **_SHARED),
    "qwen3": _causal("Qwen3", head_dim=8, **_SHARED), "gemma": _causal("Gemma", head_dim=8, **_SHARED),
    "gemma2": _causal("Gemma2", head_dim=8, sliding_window=4, **_SHARED), "phi": _causal("Phi"),
    "phi3": _causal("Phi3", **_SHARED), "stablelm": _causal("StableLm", num_key_value_heads=HEADS),
    "falcon": _causal("Falcon"), "t5": _t5, "bart": _bart, "whisper": _whisper, "wav2vec2": _wav2vec2,
    "vit_hf": _pixels("ViT"), "clip": _clip, "dinov2": _pixels("Dinov2", mlp_ratio=2, intermediate_size=None),
    "segformer": _segformer, "mamba": _causal("Mamba", state_size=4, intermediate_size=None, num_attention_heads=None,
                     max_position_embeddings=None)}
