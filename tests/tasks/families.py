"""Small models of every family that the tasks are tested on, their weights drawn so that outputs are of order one."""

from __future__ import annotations

import math
from typing import Any

import torch
import transformers

SMALL = {"vocab_size": 97, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
LLAMA_LIKE = {
    "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}  # fmt: skip

DECODERS: dict[str, dict[str, Any]] = {
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64},
    "opt": {"hidden_size": 32, "ffn_dim": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 64,
            "word_embed_proj_dim": 32},
    "gpt_neo": {"hidden_size": 32, "num_layers": 2, "num_heads": 4, "attention_types": [[["global", "local"], 1]],
                "max_position_embeddings": 64, "window_size": 4},
    "gpt_neox": {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
                 "max_position_embeddings": 64},
    "llama": LLAMA_LIKE,
    "mistral": {**LLAMA_LIKE, "sliding_window": 6},
    "qwen2": LLAMA_LIKE,
    "qwen3": {**LLAMA_LIKE, "head_dim": 8},
    "phi": LLAMA_LIKE,
    "gemma": {**LLAMA_LIKE, "head_dim": 8},
    "gemma3_text": {**LLAMA_LIKE, "head_dim": 8, "sliding_window": 6, "layer_types": ["sliding_attention", "full_attention"]},
    "falcon": {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 64},
    "bloom": {"hidden_size": 32, "n_layer": 2, "n_head": 4},
    "mpt": {"d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 64},
    "gpt_bigcode": {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64},
    "stablelm": LLAMA_LIKE,
    "olmo": LLAMA_LIKE,
    "cohere": LLAMA_LIKE,
    "phi3": LLAMA_LIKE,
    "starcoder2": {**LLAMA_LIKE, "sliding_window": 6},
    "olmo2": LLAMA_LIKE,
    "cohere2": {**LLAMA_LIKE, "sliding_window": 6},
    "glm": {**LLAMA_LIKE, "head_dim": 8},
    "smollm3": LLAMA_LIKE,
    "ernie4_5": {**LLAMA_LIKE, "head_dim": 8},
    "helium": {**LLAMA_LIKE, "head_dim": 8},
    "nemotron": LLAMA_LIKE,
    "gemma2": {**LLAMA_LIKE, "head_dim": 8, "sliding_window": 6},
    "mixtral": {**LLAMA_LIKE, "num_local_experts": 4, "num_experts_per_tok": 2},
    "qwen2_moe": {**LLAMA_LIKE, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16,
                  "shared_expert_intermediate_size": 16},
    "qwen3_moe": {**LLAMA_LIKE, "head_dim": 8, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16},
    "codegen": {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "rotary_dim": 4},
    "gptj": {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "rotary_dim": 4},
    "xglm": {"d_model": 32, "ffn_dim": 48, "num_layers": 2, "attention_heads": 4, "max_position_embeddings": 64},
    "granite": LLAMA_LIKE,
    "exaone4": {**LLAMA_LIKE, "sliding_window": 6},
    "olmoe": {**LLAMA_LIKE, "num_experts": 4, "num_experts_per_tok": 2},
    "gpt_oss": {**LLAMA_LIKE, "head_dim": 8, "sliding_window": 6, "num_local_experts": 4, "num_experts_per_tok": 2},
    "deepseek_v3": {**LLAMA_LIKE, "num_key_value_heads": 4, "q_lora_rank": 8, "kv_lora_rank": 8, "qk_rope_head_dim": 4,
                    "v_head_dim": 8, "qk_nope_head_dim": 8, "n_routed_experts": 4, "num_experts_per_tok": 2,
                    "moe_intermediate_size": 16, "n_group": 1, "topk_group": 1, "first_k_dense_replace": 1},
    "lfm2": {**LLAMA_LIKE, "layer_types": ["conv", "full_attention"], "block_multiple_of": 8},
    "rembert": {**LLAMA_LIKE, "is_decoder": True, "input_embedding_size": 16, "output_embedding_size": 32},
    "biogpt": {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
               "max_position_embeddings": 64},
}  # fmt: skip

# with a recurrence beside attention: prepared in the tests, and not taken all the way, which is minutes for each
RECURRENT: dict[str, dict[str, Any]] = {
    "falcon_h1": {**LLAMA_LIKE, "head_dim": 8, "mamba_d_ssm": 64, "mamba_n_heads": 8, "mamba_d_head": 8, "mamba_d_state": 8,
                  "mamba_chunk_size": 8},
    "qwen3_next": {**LLAMA_LIKE, "head_dim": 8, "layer_types": ["linear_attention", "full_attention"], "num_experts": 4,
                   "num_experts_per_tok": 2, "moe_intermediate_size": 16, "shared_expert_intermediate_size": 16,
                   "linear_num_value_heads": 4, "linear_num_key_heads": 2, "linear_key_head_dim": 8, "linear_value_head_dim": 8},
}  # fmt: skip

T5_LIKE = {
    "d_model": 32,
    "d_ff": 48,
    "d_kv": 8,
    "num_layers": 2,
    "num_decoder_layers": 2,
    "num_heads": 4,
    "decoder_start_token_id": 0,
}
BART_LIKE = {
    "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_position_embeddings": 64, "decoder_start_token_id": 1,
    "forced_eos_token_id": None,
}  # fmt: skip

ENCODER_DECODERS: dict[str, dict[str, Any]] = {
    "t5": T5_LIKE,
    "bart": BART_LIKE,
    "pegasus": BART_LIKE,
    "mbart": BART_LIKE,
    "marian": BART_LIKE,
    "m2m_100": BART_LIKE,
    "blenderbot": BART_LIKE,
    "mt5": T5_LIKE,
    "whisper": {**BART_LIKE, "num_mel_bins": 8, "max_source_positions": 20, "max_target_positions": 64},
}


def decoder(family: str, **changes: Any) -> Any:
    """Return a small causal language model of a family, in eval mode."""
    config = transformers.AutoConfig.for_model(family, **{**SMALL, **(DECODERS | RECURRENT)[family], **changes})
    return drawn(transformers.AutoModelForCausalLM.from_config(config))


def encoder_decoder(family: str, **changes: Any) -> Any:
    """Return a small encoder-decoder of a family, in eval mode."""
    config = transformers.AutoConfig.for_model(family, **{**SMALL, **ENCODER_DECODERS[family], **changes})
    kind = transformers.AutoModelForSpeechSeq2Seq if family == "whisper" else transformers.AutoModelForSeq2SeqLM
    return drawn(kind.from_config(config))


def drawn(model: Any, seed: int = 0) -> Any:
    """Return the model with weights drawn anew: the usual tiny initial ones would hide what is wrong."""
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            values = torch.randn(parameter.shape, generator=random)
            if parameter.dim() >= 2:
                parameter.copy_(values * (1.5 / math.sqrt(parameter.shape[-1])))
            else:
                centre = 1.0 if name.endswith("weight") else 0.0
                parameter.copy_(centre + 0.1 * values)
    return model.eval()
