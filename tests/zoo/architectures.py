"""Real architectures with small random configs, one for each mechanism: what users bring, at a size that a test can bear."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch

Made = tuple[torch.nn.Module, Mapping[str, Any]]  # a model and the keyword arguments of an example call
SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "vocab_size": 99,
}
TOKENS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
DECODER = {**SMALL, **TOKENS, "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 64}


def redraw(model: torch.nn.Module, seed: int = 0) -> torch.nn.Module:
    """Draw the weights anew so that outputs are of order one: the default init hides faults behind tiny numbers."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                fan_in = parameter[0].numel()
                parameter.copy_(torch.randn(parameter.shape, generator=generator) / math.sqrt(fan_in))
            elif parameter.is_floating_point():
                parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
    return model.eval()


def ids(batch: int = 2, length: int = 7, vocabulary: int = 90) -> torch.Tensor:
    return torch.randint(3, vocabulary, (batch, length), generator=torch.Generator().manual_seed(1))


def masked(batch: int = 2, length: int = 7) -> dict[str, torch.Tensor]:
    """Return ids with a mask, the last row padded on the right."""
    mask = torch.ones(batch, length, dtype=torch.long)
    mask[-1, -2:] = 0
    return {"input_ids": ids(batch, length), "attention_mask": mask}


def past(config: str, model: str, **options: Any) -> Callable[[], Made]:
    """Return a builder for a decoder with the cache of a first call, its mask over past and new tokens."""
    first = hf(config, model, masked, **options)

    def build() -> Made:
        made, inputs = first()
        with torch.no_grad():
            cache = made(**inputs, use_cache=True).past_key_values
        mask = torch.cat([inputs["attention_mask"], torch.ones(2, 3, dtype=torch.long)], 1)
        return made, {"input_ids": ids(2, 3), "attention_mask": mask, "past_key_values": cache}

    return build


def laid_out() -> dict[str, torch.Tensor]:
    """Return words of a page with the boxes they stand in, and the picture of the page."""
    corners = torch.randint(0, 50, (2, 7, 2), generator=torch.Generator().manual_seed(3))
    return {**masked(), "bbox": torch.cat([corners, corners + 5], -1), "pixel_values": pixels()}


def with_image() -> dict[str, torch.Tensor]:
    """Return a prompt with the places of the sixteen parts of a picture in it, and the picture."""
    words = ids(2, 20)
    words[:, 2:18] = 95
    return {"input_ids": words, "attention_mask": torch.ones_like(words), "pixel_values": pixels()}


def pixels(size: int = 32) -> torch.Tensor:
    return torch.randn(2, 3, size, size, generator=torch.Generator().manual_seed(2))


def hf(config: str, model: str, inputs: Callable[[], Mapping[str, Any]], **options: Any) -> Callable[[], Made]:
    """Return a builder for a transformers model by the names of its config and model classes."""

    def build() -> Made:
        import transformers

        made = getattr(transformers, model)(getattr(transformers, config)(**options))
        return redraw(made), inputs()

    return build


def nested(config: str, model: str, inputs: Callable[[], Mapping[str, Any]], **parts: Mapping[str, Any]) -> Callable[[], Made]:
    return hf(config, model, inputs, **{name: dict(options) for name, options in parts.items()})


VISION = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "image_size": 32,
    "patch_size": 8,
}

ARCHITECTURES: dict[str, Callable[[], Made]] = {
    "bert": hf("BertConfig", "BertModel", masked, **SMALL),
    "roberta": hf("RobertaConfig", "RobertaForSequenceClassification", masked, **SMALL, max_position_embeddings=64),
    "distilbert": hf("DistilBertConfig", "DistilBertModel", masked, dim=32, n_layers=2, n_heads=4, hidden_dim=48, vocab_size=99),
    "albert": hf("AlbertConfig", "AlbertModel", masked, **SMALL, embedding_size=16),
    "electra": hf("ElectraConfig", "ElectraModel", masked, **SMALL, embedding_size=16),
    "mpnet": hf("MPNetConfig", "MPNetModel", masked, **SMALL, max_position_embeddings=64),
    "deberta-v2": hf("DebertaV2Config", "DebertaV2ForSequenceClassification", masked, **SMALL),
    "modernbert": hf(
        "ModernBertConfig",
        "ModernBertForMaskedLM",
        masked,
        **SMALL,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        cls_token_id=1,
        sep_token_id=2,
    ),
    "roformer": hf("RoFormerConfig", "RoFormerModel", masked, **SMALL, embedding_size=32, max_position_embeddings=64),
    "fnet": hf("FNetConfig", "FNetModel", lambda: {"input_ids": ids()}, **SMALL, max_position_embeddings=64),
    "xlnet": hf("XLNetConfig", "XLNetModel", masked, d_model=32, n_layer=2, n_head=4, d_inner=48, vocab_size=99),
    "layoutlm": hf("LayoutLMConfig", "LayoutLMModel", masked, **SMALL, max_2d_position_embeddings=64),
    "gpt2": hf("GPT2Config", "GPT2LMHeadModel", masked, n_embd=32, n_layer=2, n_head=4, n_positions=64, vocab_size=99),
    "gpt2:past": past("GPT2Config", "GPT2LMHeadModel", n_embd=32, n_layer=2, n_head=4, n_positions=64, vocab_size=99),
    "gpt_neo": hf(
        "GPTNeoConfig",
        "GPTNeoForCausalLM",
        masked,
        hidden_size=32,
        num_layers=2,
        num_heads=4,
        vocab_size=99,
        attention_types=[[["global", "local"], 1]],
        max_position_embeddings=64,
        window_size=4,
    ),
    "gpt_neox": hf("GPTNeoXConfig", "GPTNeoXForCausalLM", masked, **SMALL, max_position_embeddings=64),
    "opt": hf(
        "OPTConfig",
        "OPTForCausalLM",
        masked,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        ffn_dim=48,
        vocab_size=99,
        max_position_embeddings=64,
        word_embed_proj_dim=32,
    ),
    "bloom": hf("BloomConfig", "BloomForCausalLM", masked, hidden_size=32, n_layer=2, n_head=4, vocab_size=99),
    "llama": hf("LlamaConfig", "LlamaForCausalLM", masked, **DECODER),
    "llama:past": past("LlamaConfig", "LlamaForCausalLM", **DECODER),
    "mistral": hf("MistralConfig", "MistralForCausalLM", masked, **DECODER, sliding_window=4),
    "mixtral": hf("MixtralConfig", "MixtralForCausalLM", masked, **DECODER, num_local_experts=4),
    "qwen2": hf("Qwen2Config", "Qwen2ForCausalLM", masked, **DECODER),
    "qwen2:past": past("Qwen2Config", "Qwen2ForCausalLM", **DECODER),
    "qwen3": hf("Qwen3Config", "Qwen3ForCausalLM", masked, **DECODER),
    "phi": hf("PhiConfig", "PhiForCausalLM", masked, **{k: v for k, v in DECODER.items() if k != "head_dim"}),
    "gemma": hf("GemmaConfig", "GemmaForCausalLM", masked, **DECODER),
    "gemma3_text": hf("Gemma3TextConfig", "Gemma3ForCausalLM", masked, **DECODER, sliding_window=4),
    "falcon": hf(
        "FalconConfig", "FalconForCausalLM", masked, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, vocab_size=99
    ),
    "mamba": hf(
        "MambaConfig", "MambaForCausalLM", lambda: {"input_ids": ids()}, hidden_size=32, num_hidden_layers=2, vocab_size=99
    ),
    "t5": hf(
        "T5Config",
        "T5ForConditionalGeneration",
        lambda: {**masked(), "decoder_input_ids": ids(2, 4)},
        d_model=32,
        d_kv=8,
        d_ff=48,
        num_layers=2,
        num_heads=4,
        vocab_size=99,
        decoder_start_token_id=0,
    ),
    "bart": hf(
        "BartConfig",
        "BartForConditionalGeneration",
        lambda: {**masked(), "decoder_input_ids": ids(2, 4)},
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=48,
        decoder_ffn_dim=48,
        vocab_size=99,
        max_position_embeddings=64,
    ),
    "whisper": hf(
        "WhisperConfig",
        "WhisperForConditionalGeneration",
        lambda: {"input_features": torch.randn(2, 16, 40), "decoder_input_ids": ids(2, 4)},
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=48,
        decoder_ffn_dim=48,
        vocab_size=99,
        num_mel_bins=16,
        max_source_positions=20,
        max_target_positions=32,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
    ),
    "speech_to_text": hf(
        "Speech2TextConfig",
        "Speech2TextForConditionalGeneration",
        lambda: {"input_features": torch.randn(2, 24, 16), "decoder_input_ids": ids(2, 4)},
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=48,
        decoder_ffn_dim=48,
        vocab_size=99,
        input_feat_per_channel=16,
        conv_channels=32,
    ),
    "wav2vec2": hf(
        "Wav2Vec2Config",
        "Wav2Vec2ForCTC",
        lambda: {"input_values": torch.randn(2, 400)},
        **{**SMALL, "vocab_size": 30},
        conv_dim=(16, 16),
        conv_stride=(4, 2),
        conv_kernel=(8, 4),
        num_conv_pos_embeddings=8,
        num_conv_pos_embedding_groups=2,
    ),
    "vit": hf("ViTConfig", "ViTForImageClassification", lambda: {"pixel_values": pixels()}, **VISION),
    "deit": hf("DeiTConfig", "DeiTModel", lambda: {"pixel_values": pixels()}, **VISION),
    "beit": hf("BeitConfig", "BeitModel", lambda: {"pixel_values": pixels()}, **VISION),
    "dinov2": hf("Dinov2Config", "Dinov2Model", lambda: {"pixel_values": pixels()}, **VISION),
    "siglip-vision": hf("SiglipVisionConfig", "SiglipVisionModel", lambda: {"pixel_values": pixels()}, **VISION),
    "clip": nested(
        "CLIPConfig",
        "CLIPModel",
        lambda: {**masked(), "pixel_values": pixels()},
        text_config={**SMALL, "max_position_embeddings": 16, "eos_token_id": 2},
        vision_config=VISION,
    ),
    "siglip": nested(
        "SiglipConfig",
        "SiglipModel",
        lambda: {"input_ids": ids(), "pixel_values": pixels()},
        text_config={**SMALL, "max_position_embeddings": 16},
        vision_config=VISION,
    ),
    "llava": hf(
        "LlavaConfig",
        "LlavaForConditionalGeneration",
        with_image,
        text_config={**DECODER, "model_type": "llama"},
        vision_config={**VISION, "model_type": "clip_vision_model"},
        image_token_index=95,
        vision_feature_layer=-1,
    ),
    "layoutlmv3": hf(
        "LayoutLMv3Config",
        "LayoutLMv3Model",
        laid_out,
        **SMALL,
        max_position_embeddings=64,
        max_2d_position_embeddings=64,
        coordinate_size=6,
        shape_size=4,
        input_size=32,
        patch_size=8,
        pad_token_id=0,
    ),
    "swinv2": hf(
        "Swinv2Config",
        "Swinv2ForImageClassification",
        lambda: {"pixel_values": pixels()},
        image_size=32,
        patch_size=4,
        embed_dim=16,
        depths=[1, 1],
        num_heads=[2, 4],
        window_size=4,
    ),
    "segformer": hf(
        "SegformerConfig",
        "SegformerForSemanticSegmentation",
        lambda: {"pixel_values": pixels(64)},
        depths=[1, 1, 1, 1],
        hidden_sizes=[16, 16, 32, 32],
        num_attention_heads=[1, 2, 4, 4],
        decoder_hidden_size=32,
    ),
    "convnext": hf(
        "ConvNextConfig", "ConvNextModel", lambda: {"pixel_values": pixels(64)}, depths=[1, 1, 1, 1], hidden_sizes=[8, 16, 32, 32]
    ),
    "resnet": hf(
        "ResNetConfig",
        "ResNetForImageClassification",
        lambda: {"pixel_values": pixels(64)},
        embedding_size=16,
        hidden_sizes=[16, 32],
        depths=[1, 1],
    ),
    "mobilevit": hf(
        "MobileViTConfig",
        "MobileViTModel",
        lambda: {"pixel_values": pixels(64)},
        hidden_sizes=[16, 24, 32],
        neck_hidden_sizes=[8, 8, 16, 16, 16, 24, 32],
        num_attention_heads=2,
        image_size=64,
    ),
    "longformer": hf("LongformerConfig", "LongformerModel", masked, **SMALL, attention_window=4, max_position_embeddings=64),
    "big_bird": hf("BigBirdConfig", "BigBirdModel", masked, **SMALL, block_size=4, max_position_embeddings=64),
}
