"""Options of NeMo 1's program: required options, options that chartgen sets, and defaults of missing options."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from chartgen.helm.yaml import Plain

GPT2_VOCABULARY = 50257
TOKENIZERS = {"GPT2BPETokenizer": "gpt2", "sentencepiece": "sentencepiece", "huggingface": "huggingface"}
FILES = {"vocab_file": "gpt2-vocab.json", "merge_file": "gpt2-merges.txt", "model": "tokenizer.model"}
PRECISIONS = {
    **dict.fromkeys(("bf16", "bf16-mixed", "bf16-true"), "bf16"),
    **dict.fromkeys(("16", "16-mixed", "16-true"), "fp16"),
    **dict.fromkeys(("32", "32-true"), "fp32"),
}
OPTIMIZERS = {"distributed_fused_adam": True, "mcore_distributed_optim": True, "fused_adam": False}
# Without these, the program would use its own configuration, which chartgen does not know.
NEEDED = (
    *("trainer.precision", "trainer.max_steps", "trainer.limit_val_batches", "model.micro_batch_size"),
    *("model.global_batch_size", "model.tensor_model_parallel_size", "model.pipeline_model_parallel_size"),
    *("model.encoder_seq_length", "model.num_layers", "model.hidden_size", "model.ffn_hidden_size"),
    *("model.num_attention_heads", "model.optim.name", "model.optim.lr", "model.optim.weight_decay"),
    "model.optim.betas",
    *("model.optim.sched.name", "model.optim.sched.warmup_steps", "model.optim.sched.min_lr"),
    *("model.data.data_impl", "model.data.splits_string"),
)
# Defaults of options that a configuration does not set: NVIDIA/NeMo r2.0.0rc1 and v2.4.0,
# megatron_gpt_model.py, megatron_base_model.py, megatron_trainer_builder.py and nemo/utils/exp_manager.py.
SILENT: dict[str, Plain] = {
    "model.mcore_gpt": False,
    "model.transformer_engine": False,
    "model.megatron_amp_O2": False,
    "model.normalization": "layernorm",
    "model.position_embedding_type": "learned_absolute",
    "model.activation": "gelu",
    "model.bias": True,
    "model.share_embeddings_and_output_weights": True,
    "model.hidden_dropout": 0.1,
    "model.attention_dropout": 0.1,
    "model.init_method_std": 0.02,
    "exp_manager.resume_if_exists": False,
    "exp_manager.create_checkpoint_callback": True,
    "trainer.gradient_clip_val": None,
}
ROTARY_BASE = 10000
# Options that chartgen sets itself, or that have no effect on the program.
OWN_OPTIONS = re.compile(
    r"run\..*|name|defaults|hydra\b.*|trainer\.(devices|num_nodes|logger|enable_checkpointing|limit_val_batches)"
    r"|exp_manager\.(explicit_log_dir|exp_dir|name|version|create_(tensorboard|dllogger)_logger|dllogger_logger_kwargs\..*)"
    r"|model\.tokenizer\..*|model\.(fp8|nsys_profile\..*|activations_checkpoint_(granularity|method|num_layers))"
    r"|model\.data\.(data_prefix\b.*|data_impl|index_mapping_dir)"
)
LOGGERS = re.compile(r"exp_manager\.(?P<logger>\w+?)_logger_kwargs\..*")
CALLBACK = "exp_manager.checkpoint_callback_params"
# Options that the launcher sets to the same value by itself, by the portable key that causes it.
IMPLIED: dict[str, Callable[[dict[str, Any]], Plain]] = {
    "model.max_position_embeddings": lambda preset: preset.get("sequenceLength"),
    "model.data.seq_length": lambda preset: preset.get("sequenceLength"),
    "model.fp8_hybrid": lambda preset: preset.get("precision") == "fp8",
    "exp_manager.resume_if_exists": lambda preset: preset["checkpoint"]["enabled"],
    "exp_manager.resume_ignore_no_checkpoint": lambda _preset: True,
    "trainer.limit_test_batches": lambda preset: preset["evaluation"]["batches"],
}
# Portable keys whose option is read separately, and parts that the recipe's values or the site define.
HANDLED = {
    *("precision", "recompute", "optimizer.clipGradient", "optimizer.decay", "parallelism.distributedOptimizer"),
    *("tokenizer.path", "model.rotaryBase"),
}
PARTS = {"nodes", "gpusPerNode", "run", "profile", "data", "checkpoint", "evaluation", "wandb"}
