"""The keys of nanotron's configuration, section by section: its loader stops at any other one.

Sources: huggingface/nanotron src/nanotron/config/config.py, parallelism_config.py and models_config.py; it is read by
dacite with `strict=True`.
"""

from collections.abc import Mapping

_KEYS = {
    "": """
        general parallelism model tokenizer checkpoints logging tokens optimizer data_stages profiler lighteval
        s3_upload metrics_logging
    """,
    "parallelism": """
        dp pp tp pp_engine tp_mode tp_linear_async_communication recompute_layer moe_layer_recompute
        tp_recompute_allgather expert_parallel_size context_parallel_size expert_tensor_parallel_size
        expert_data_parallel_size enabled_moe
    """,
    "tokens": """
        sequence_length train_steps micro_batch_size batch_accumulation_per_replica val_check_interval
        limit_val_batches limit_test_batches
    """,
    "optimizer": """
        optimizer_factory zero_stage weight_decay clip_grad accumulate_grad_in_fp32 learning_rate_scheduler
        weight_decay_exclude_named_params
    """,
    "model": "model_config init_method dtype make_vocab_size_divisible_by ddp_bucket_cap_mb",
    "model.model_config": """
        bos_token_id eos_token_id hidden_act hidden_size initializer_range intermediate_size is_llama_config
        is_qwen2_config is_starcoder2_config max_position_embeddings num_attention_heads num_hidden_layers
        attention_bias num_key_value_heads pad_token_id pretraining_tp rms_norm_eps rope_scaling rope_theta
        rope_interleaved interleaved_rotary tie_word_embeddings use_cache vocab_size _attn_implementation
        z_loss_enabled z_loss_coefficient flex_attention_mask sliding_window_size no_rope_layer moe_config
        _fused_rotary_emb _fused_rms_norm _use_qkv_packed _use_doc_masking
    """,
    "model.model_config.moe_config": """
        num_experts top_k layers enable_shared_expert token_dispatcher_type moe_intermediate_size
        shared_expert_intermediate_size router_dtype
    """,
}
KEYS: Mapping[str, frozenset[str]] = {section: frozenset(names.split()) for section, names in _KEYS.items()}
_NEEDED = {
    "": "general parallelism model",
    "general": "project",
    "parallelism": "dp pp tp",
    "model": "model_config init_method",
    "tokens": "sequence_length train_steps micro_batch_size batch_accumulation_per_replica",
    "optimizer": "optimizer_factory zero_stage weight_decay accumulate_grad_in_fp32 learning_rate_scheduler",
}
NEEDED: Mapping[str, tuple[str, ...]] = {section: tuple(names.split()) for section, names in _NEEDED.items()}
