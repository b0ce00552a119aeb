"""Files of axolotl, LLaMA-Factory and the transformers Trainer: what they say, by the frameworks' own defaults.

Expected values are the frameworks': axolotl 0.19 (schemas, utils/distributed.py), LLaMA-Factory 0.9.5 (hparams),
transformers 5.24 (training_args.py), TRL 1.16 (sft_config.py).
"""

from typing import Any

import pytest
import yaml

from outlay.formats import axolotl, llamafactory, trainer
from outlay.formats.fine_tuning.models import model_named, name_on_hub
from outlay.formats.known import read
from outlay.formats.setting import Found
from outlay.model.catalogue import load, names
from outlay.show.codes import pages

LLAMA = "meta-llama/Llama-3.1-8B"


def axo(**made: Any) -> Found:
    return axolotl.read(yaml.safe_dump({"base_model": LLAMA, "micro_batch_size": 2} | made, sort_keys=False).encode())


def llf(**made: Any) -> Found:
    whole = {"model_name_or_path": LLAMA, "stage": "sft", "bf16": True} | made
    return llamafactory.read(yaml.safe_dump(whole, sort_keys=False).encode())


def trn(**made: Any) -> Found:
    whole = {"model_name_or_path": LLAMA, "per_device_train_batch_size": 2, "bf16": True} | made
    return trainer.read(yaml.safe_dump(whole, sort_keys=False).encode())


def call(arguments: str, before: str = "") -> Found:
    return trainer.read(f"{before}\nargs = SFTConfig({arguments})\n".encode())


READ = {"AXO": axo, "LLF": llf, "TRN": trn}


def errors(found: Found) -> list[str]:
    return [one.code for one in found.findings if one.serious]


def warnings(found: Found) -> list[str]:
    return [one.code for one in found.findings if not one.serious]


# --- models ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("meta-llama/Llama-3.1-8B", "llama-3.1-8b"),
        ("meta-llama/Meta-Llama-3-8B-Instruct", "llama-3-8b"),
        ("meta-llama/Llama-2-7b-chat-hf", "llama-2-7b"),
        ("NousResearch/Llama-3.2-1B", "llama-3.2-1b"),
        ("Qwen/Qwen3-30B-A3B-Instruct-2507", "qwen3-30b-a3b"),
        ("google/gemma-2-9b-it", "gemma-2-9b"),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", "mixtral-8x7b"),
        ("llama-3.1-8b", "llama-3.1-8b"),
        ("mistralai/Mistral-7B-v0.1", None),  # another vocabulary than v0.3's
        ("/data/checkpoints/mine", None),
        ("", None),
    ],
)
def test_a_name_of_the_hub_means_a_model_of_the_catalogue(text: str, name: str | None) -> None:
    found = model_named(text)

    assert (found.name if found else None) == name


def test_names_that_are_written_mean_the_same_model_when_they_are_read() -> None:
    written = {name: name_on_hub(load(name)) for name in names()}

    assert sum(map(bool, written.values())) > 100
    assert all(model_named(hub) == load(name) for name, hub in written.items() if hub)


@pytest.mark.parametrize("prefix", READ)
def test_a_model_that_is_not_known_is_asked_for(prefix: str) -> None:
    key = "base_model" if prefix == "AXO" else "model_name_or_path"

    found = READ[prefix](**{key: "me/mine"})

    assert found.model is None
    assert [(one.field, "me/mine" in one.why) for one in found.missing if one.field == "model"] == [("model", True)]


# --- defaults, batch, length ----------------------------------------------------------------------------------------


def test_defaults_of_axolotl_are_its_own() -> None:
    found = axo()

    assert (found.job.sequence_length, found.layout.micro_batch, found.accumulated) == (512, 2, 2)
    assert (found.layout.zero, found.layout.recompute, found.job.optimizer) == (0, "none", "adam")
    assert found.job.precision is None and "bf16 is auto: bf16 where the card has it, else fp16" in found.notes
    assert (found.job.master_dtype, found.job.gradient_dtype, found.job.moment_dtype) == ("none", "bf16", "bf16")


def test_defaults_of_llama_factory_are_its_own() -> None:
    found = llf()

    assert (found.job.sequence_length, found.layout.micro_batch, found.accumulated) == (2048, 8, 8)
    assert (found.job.adapter, found.job.adapter_rank, found.layout.recompute) == ("lora", 8, "full")
    assert found.job.adapter_targets == ("attention", "feed_forward", "scan")
    assert llf(disable_gradient_checkpointing=True).layout.recompute == "none"


def test_defaults_of_transformers_and_of_trl_differ() -> None:
    plain = trainer.read(b"args = TrainingArguments(learning_rate=1e-5)")
    trl = call("learning_rate=1e-5")

    assert (plain.layout.micro_batch, plain.job.precision, plain.layout.recompute) == (8, "fp32", "none")
    assert (trl.layout.micro_batch, trl.job.precision, trl.layout.recompute) == (8, "bf16", "full")
    assert (plain.job.sequence_length, trl.job.sequence_length) == (None, 1024)
    assert [one.field for one in plain.missing] == ["model", "sequence_length"]


def test_the_global_batch_is_that_of_the_ranks_where_the_launch_says_them() -> None:
    line = "torchrun --nnodes 2 --nproc_per_node=8 train.py --per_device_train_batch_size 2"

    found = trainer.read(f"{line} --gradient_accumulation_steps 4 --max_length 8".encode())

    assert (found.ranks, found.job.global_batch, found.layout.dp_shard) == (16, 128, 16)
    assert trainer.read(b"accelerate launch --num_processes 4 t.py --per_device_train_batch_size 3").ranks == 4


def test_a_script_of_an_older_release_is_read_and_told() -> None:
    """Stanford Alpaca's command: batch 128, as its table says."""
    text = """torchrun --nproc_per_node=4 train.py --model_name_or_path "facebook/opt-6.7b" --bf16 True \\
        --num_train_epochs 3 --per_device_train_batch_size 4 --gradient_accumulation_steps 8 \\
        --evaluation_strategy "no" --model_max_length 512 --fsdp "full_shard auto_wrap" \\
        --fsdp_transformer_layer_cls_to_wrap 'OPTDecoderLayer'
    """

    found = trainer.read(text.encode())

    assert (found.job.global_batch, found.job.sequence_length, found.layout.zero) == (128, 512, 3)
    assert found.model is not None and found.model.name == "opt-6.7b"
    assert warnings(found) == ["TRN009", "TRN009"] and errors(found) == []


def test_tensor_and_context_parallel_ranks_see_the_same_sequences() -> None:
    found = axo(
        gradient_accumulation_steps=3, dp_shard_size=2, dp_replicate_size=2, tensor_parallel_size=2,
        context_parallel_size=2, fsdp_version=2, fsdp_config={"reshard_after_forward": True},
        attn_implementation="flash_attention_2",
    )  # fmt: skip

    assert (found.ranks, found.job.global_batch) == (16, 2 * 3 * 4)
    assert (found.layout.tp, found.layout.cp, found.layout.dp_shard, found.layout.dp_replicate) == (2, 2, 2, 2)
    assert errors(found) == []


# --- sharding -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("made", "zero", "offload"),
    [
        ({}, 0, 0.0),
        ({"fsdp": True}, 3, 0.0),
        ({"fsdp": "full_shard auto_wrap"}, 3, 0.0),
        ({"fsdp": ["shard_grad_op", "offload"]}, 2, 1.0),
        ({"fsdp": True, "fsdp_config": {"reshard_after_forward": False}}, 2, 0.0),
        ({"fsdp": True, "fsdp_config": {"fsdp_reshard_after_forward": "false", "cpu_offload": True}}, 2, 1.0),
        ({"fsdp": "hybrid_shard", "fsdp_config": {"version": 1}}, 3, 0.0),
        ({"fsdp": True, "fsdp_config": {"fsdp_version": 1, "reshard_after_forward": "shard_grad_op"}}, 2, 0.0),
        ({"fsdp_config": {"reshard_after_forward": True}}, 0, 0.0),
    ],
)
def test_fsdp_by_its_arguments_is_a_stage_of_zero(made: dict[str, Any], zero: int, offload: float) -> None:
    for found in (trn(**made), llf(**made)):
        assert (found.layout.zero, found.engine) == (zero, "hf_trainer")
        assert (found.layout.offload_optimizer or 0.0, found.layout.offload_parameters or 0.0) == (offload, offload)


@pytest.mark.parametrize("prefix", READ)
def test_a_section_of_deepspeed_is_read_where_it_stands(prefix: str) -> None:
    section = {
        "train_micro_batch_size_per_gpu": "auto",
        "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}, "stage3_prefetch_bucket_size": 1e6},
        "bf16": {"enabled": "auto"},
    }

    found = READ[prefix](deepspeed=section, bf16=True)

    assert (found.engine, found.layout.zero, found.layout.offload_optimizer) == ("deepspeed", 3, 1.0)
    assert (found.job.precision, found.job.reduce_dtype, found.job.master_dtype) == ("bf16", "bf16", None)
    assert [one.name for one in found.kept] == ["deepspeed.zero_optimization.stage3_prefetch_bucket_size"]
    assert found.kept[0].line > 1 and errors(found) == warnings(found) == []


@pytest.mark.parametrize("prefix", READ)
def test_a_file_of_deepspeed_is_asked_for_by_its_name(prefix: str) -> None:
    found = READ[prefix](deepspeed="configs/ds_z2.json")

    (asked,) = [one for one in found.missing if one.field == "zero"]
    assert "configs/ds_z2.json" in asked.why and found.engine == "deepspeed" and found.layout.zero is None


def test_liger_kernels_are_counted_where_an_engine_has_them() -> None:
    section = {"zero_optimization": {"stage": 2}}

    assert llf(deepspeed=section, enable_liger_kernel=True).engine == "deepspeed-liger"
    assert trn(deepspeed=section, use_liger_kernel=True).engine == "deepspeed-liger"
    plugins = ["axolotl.integrations.liger.LigerPlugin"]
    assert axo(deepspeed=section, plugins=plugins).engine == "deepspeed-liger"
    assert axo(plugins=plugins).engine == "hf_trainer"


# --- adapters, precision, recompute ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "kind", "kept", "targets"),
    [
        (axo(adapter="lora", lora_r=8, lora_target_linear=True), "lora", None, ("attention", "feed_forward", "scan")),
        (axo(adapter="qlora", load_in_4bit=True, lora_r=8, lora_target_modules=["q_proj"]), "qlora", None, ("q_proj",)),
        (axo(adapter="lora", load_in_8bit=True, lora_r=8, lora_target_modules=["k_proj"]), "lora", "int8", ("k_proj",)),
        (axo(adapter="lora", lora_r=8), "lora", None, ("q_proj", "v_proj")),
        (llf(lora_rank=8, lora_target="q_proj,v_proj"), "lora", None, ("q_proj", "v_proj")),
        (llf(quantization_bit=4, lora_target="o_proj"), "qlora", None, ("o_proj",)),
        (llf(quantization_bit=4, double_quantization=False, lora_target="o_proj"), "qlora", "nf4", ("o_proj",)),
        (llf(quantization_bit=8, lora_target="o_proj"), "lora", "int8", ("o_proj",)),
        (llf(use_dora=True, lora_target="o_proj"), "dora", None, ("o_proj",)),
        (call("bf16=True", "LoraConfig(r=8, target_modules='all-linear')"), "lora", "32bit",
         ("attention", "feed_forward", "scan")),
        (call("bf16=True", "LoraConfig(target_modules=['q_proj'])\nBitsAndBytesConfig(load_in_4bit=True)"), "qlora",
         "nf4", ("q_proj",)),
        (call("model_init_kwargs={'dtype': 'bfloat16'}", "LoraConfig(target_modules=['q_proj'])"), "lora", None,
         ("q_proj",)),
        (trn(use_peft=True, lora_r=8, max_length=8, dtype="bfloat16"), "lora", None, ("q_proj", "v_proj")),
    ],
)  # fmt: skip
def test_adapters_and_the_bits_of_frozen_weights(
    found: Found, kind: str, kept: str | None, targets: tuple[str, ...]
) -> None:
    job = found.job

    assert (job.adapter, job.adapter_rank, job.frozen_format, job.adapter_targets) == (kind, 8, kept, targets)


def test_weights_that_are_loaded_in_bf16_are_trained_in_bf16() -> None:
    narrow = ("none", "bf16", "bf16")
    for found in (
        axo(bf16=True),
        axo(bf16=True, fsdp_version=2, fsdp_config={"reshard_after_forward": True}),
        llf(finetuning_type="full", pure_bf16=True, bf16=False),
        trn(dtype="bfloat16", max_length=8),
    ):
        assert (found.job.master_dtype, found.job.gradient_dtype, found.job.moment_dtype) == narrow
    for found in (
        axo(bf16=True, fsdp_version=1, fsdp_config={"reshard_after_forward": True}),  # Accelerate keeps fp32 shards
        axo(bf16=True, deepspeed={"zero_optimization": {"stage": 2}}),
        axo(bf16=True, adapter="lora", lora_r=8),
        llf(finetuning_type="full"),
        trn(dtype="bfloat16", fsdp=True, max_length=8),
        trn(max_length=8),
    ):
        assert found.job.master_dtype is None


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("adamw_torch", "adam"), ("paged_adamw_8bit", "adam8bit"), ("adamw_bnb_8bit", "adam8bit"),
        ("lion_32bit", "lion"), ("adafactor", "adafactor"), ("galore_adamw", "galore"), ("sgd", "sgd"),
        ("ademamix", "adam"),
    ],
)  # fmt: skip
def test_optimizers_by_the_names_of_transformers(name: str, ours: str) -> None:
    assert trn(optim=name).job.optimizer == llf(optim=name).job.optimizer == axo(optimizer=name).job.optimizer == ours
    noted = any("is not counted: read as adam" in note for note in trn(optim=name).notes)
    assert noted == (name == "ademamix")


def test_recompute_of_every_nth_layer_and_inputs_that_leave_for_the_host() -> None:
    found = trn(activation_checkpointing=True, activation_checkpointing_kwargs={"every_n_layers": 3, "offload": True})

    assert (found.layout.recompute, found.layout.recompute_layers, found.layout.offload_activations) == (
        "full",
        11,
        1.0,
    )
    assert axo(gradient_checkpointing="offload").layout.offload_activations == 1.0
    assert axo(gradient_checkpointing=True, activation_offloading=True).layout.offload_activations == 1.0
    assert axo(gradient_checkpointing=True).layout.offload_activations == 0.0


def test_preference_training_of_a_whole_model_keeps_a_reference_beside() -> None:
    (beside,) = llf(stage="dpo", finetuning_type="full").job.beside

    assert (beside.role, beside.parameters) == ("reference", 8_030_261_248)
    assert llf(stage="dpo").job.beside == ()  # the adapters are switched off instead
    assert llf(stage="dpo", finetuning_type="full", pref_loss="simpo").job.beside == ()


# --- Megatron backend of LLaMA-Factory ------------------------------------------------------------------------------

MEGATRON = {
    "model_name_or_path": "Qwen/Qwen3-30B-A3B-Instruct-2507", "finetuning_type": "full", "cutoff_len": 4096,
    "per_device_train_batch_size": 1, "gradient_accumulation_steps": 8, "tensor_model_parallel_size": 1,
    "sequence_parallel": False, "pipeline_model_parallel_size": 4, "expert_model_parallel_size": 2,
    "use_distributed_optimizer": True, "overlap_param_gather": True, "overlap_grad_reduce": True,
    "moe_token_dispatcher_type": "alltoall", "recompute_granularity": "full", "moe_grouped_gemm": True,
}  # fmt: skip


def test_experts_lie_inside_data_parallelism_on_the_megatron_backend() -> None:
    """LLaMA-Factory's examples/megatron/qwen3_moe_full.yaml says (8 // 2 // 4) * 8 = 8; Megatron-Core has dp 2: 16."""
    text = "# launch: torchrun --nnodes 1 --nproc-per-node 8\n" + yaml.safe_dump(
        MEGATRON | {"stage": "sft", "bf16": True}
    )

    found = llamafactory.read(text.encode())

    assert (found.engine, found.ranks, found.job.global_batch, found.layout.dp_shard) == ("megatron", 8, 16, 2)
    assert (found.layout.pp, found.layout.ep, found.layout.etp, found.layout.zero) == (4, 2, 1, 1)
    assert (found.layout.recompute, found.layout.moe_dispatch) == ("full", "all_to_all")
    assert errors(found) == [] and warnings(found) == ["LLF007"] and found.kept == ()


def test_use_mca_without_its_environment_is_told() -> None:
    found = llf(use_mca=True, finetuning_type="full")

    assert found.engine == "megatron" and warnings(found) == ["LLF007"]


# --- what is refused, and what does nothing -------------------------------------------------------------------------

FSDP2 = {"fsdp_version": 2, "fsdp_config": {"reshard_after_forward": True}}
STAGE_3 = {"zero_optimization": {"stage": 3}}
TWICE = {"fsdp": True, "fsdp_config": {"activation_checkpointing": True}, "gradient_checkpointing": True}
PLANTED: list[tuple[str, dict[str, Any], str, bool]] = [
    ("AXO", {"batch_size": 8, "gradient_accumulation_steps": 2}, "AXO001", True),
    ("AXO", {"batch_size": 8}, "AXO002", False),
    ("AXO", {"deepspeed": {"zero_optimization": {"stage": 2}}, "fsdp": ["full_shard"]}, "AXO003", True),
    ("AXO", {"deepspeed": {"zero_optimization": {"stage": 2}}} | FSDP2, "AXO003", False),
    ("AXO", {"adapter": "qlora", "lora_r": 8}, "AXO004", True),
    ("AXO", {"load_in_8bit": True}, "AXO004", True),
    ("AXO", {"optimizer": "adamw_8bit"} | FSDP2, "AXO005", True),
    ("AXO", {"activation_offloading": True}, "AXO006", True),
    ("AXO", {"context_parallel_size": 2}, "AXO007", True),
    ("AXO", {"attn_implementation": "flash"}, "AXO008", True),
    ("AXO", {"gradient_checkpointing": "unsloth"}, "AXO009", True),
    ("AXO", {"gradient_checkpointing": "offload"}, "AXO009", False),
    ("AXO", {"fsdp_version": 2, "fsdp_config": {"auto_wrap_policy": "SIZE_BASED_WRAP"}}, "AXO010", True),
    ("AXO", {"dp_shard_size": 4}, "AXO011", True),
    ("AXO", {"bf16": True, "fp16": True}, "AXO012", False),
    ("AXO", {"fsdp_version": 2, "fsdp": ["hybrid_shard"], "fsdp_config": {"state_dict_type": "x"}}, "AXO013", True),
    ("AXO", {"fsdp_version": 2, "fsdp_config": {"transformer_layer_cls_to_wrap": "LlamaLayer"}}, "AXO014", True),
    ("AXO", {"gradient_acumulation_steps": 4}, "AXO015", False),
    (
        "AXO",
        {
            "adapter": "qlora", "load_in_4bit": True, "lora_r": 8, "fsdp_version": 2,
            "fsdp_config": {"cpu_ram_efficient_loading": True},
        },
        "AXO016", True,
    ),
    ("LLF", {"lora_ranks": 8}, "LLF001", True),
    ("LLF", {"finetuning_type": "full", "pure_bf16": True, "deepspeed": STAGE_3}, "LLF002", True),
    ("LLF", {"finetuning_type": "full", "pure_bf16": True, "deepspeed": "ds_z3_config.json"}, "LLF002", False),
    ("LLF", {"fp16": True}, "LLF003", True),
    ("LLF", {"finetuning_type": "full", "quantization_bit": 4}, "LLF004", True),
    ("LLF", {"finetuning_type": "full", "use_dora": True}, "LLF005", True),
    ("LLF", {"use_galore": True}, "LLF005", True),
    ("LLF", {"stage": "dpo", "neat_packing": True}, "LLF006", True),
    ("LLF", {"stage": "sftt"}, "LLF008", True),
    ("LLF", {"finetuning_type": "all"}, "LLF008", True),
    ("LLF", {"deepspeed": {"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": 4}}, "LLF009", True),
    ("LLF", {"fsdp": "hybrid_shard auto_wrap"}, "LLF010", True),
    ("LLF", {"optim": "adamw_8bitt"}, "LLF011", True),
    ("LLF", {"gradient_checkpointing": False}, "LLF012", False),
    ("LLF", {"fsdp": True, "fsdp_config": {"transformer_layer_cls_to_wrap": ["LLaMADecoderLayer"]}}, "LLF013", True),
    ("LLF", {"finetuning_type": "full", "use_galore": True, "deepspeed": "z2.json"}, "LLF014", True),
    ("TRN", {"fp16": True}, "TRN001", True),
    ("TRN", {"optim": "adamw_8bitt"}, "TRN002", True),
    ("TRN", {"fsdp": "full_shard wrap"}, "TRN003", True),
    ("TRN", TWICE, "TRN004", True),
    ("TRN", {"deepspeed": {"gradient_accumulation_steps": 4, "zero_optimization": {"stage": 2}}}, "TRN005", True),
    ("TRN", {"deepspeed": "ds.json", "fsdp": True}, "TRN006", True),
    ("TRN", {"fsdp_config": {"version": 2}}, "TRN007", False),
    ("TRN", {"parallelism_config": {"tp_size": 2}}, "TRN008", True),
    ("TRN", {"gradient_acumulation_steps": 4}, "TRN009", False),
    ("TRN", {"fsdp": True, "fsdp_config": {"offload_params": True}}, "TRN010", False),
    ("TRN", {"fsdp": True, "fsdp_config": {"transformer_layer_cls_to_wrap": "GPT2Block"}}, "TRN011", True),
]  # fmt: skip


@pytest.mark.parametrize(("prefix", "made", "code", "serious"), PLANTED)
def test_a_planted_mistake_is_found_at_its_place(prefix: str, made: dict[str, Any], code: str, serious: bool) -> None:
    found = READ[prefix](**made)

    assert [one.code for one in READ[prefix]().findings] == []
    (finding,) = [one for one in found.findings if one.code == code]
    assert finding.serious == serious
    assert finding.line > 1 and finding.column >= 1


def test_every_code_of_these_formats_has_a_page_and_a_planted_mistake() -> None:
    own = {code for code in pages() if code[:3] in READ}

    assert {code for _, _, code, _ in PLANTED} | {"LLF007"} == own


# --- Python ---------------------------------------------------------------------------------------------------------

TEXT = """
from trl import SFTConfig
MODEL_ID = "Qwen/Qwen2.5-7B"  # (a bracket
BATCH = 4
model = AutoModelForCausalLM.from_pretrained(MODEL_ID, torch_dtype=torch.bfloat16)
args = SFTConfig(
    output_dir="out)",  # where :)
    per_device_train_batch_size=BATCH, gradient_accumulation_steps=64 // 8, learning_rate=2e-4,
    num_train_epochs=cfg.epochs, optim="adamw_torch_fused", bf16=True, max_length=4096, packing=True,
    fsdp=True, fsdp_config={"version": 2, "reshard_after_forward": True},
    parallelism_config=ParallelismConfig(dp_replicate_size=2, dp_shard_size=4, tp_size=2),
)
"""


def test_a_call_in_python_is_read_as_it_stands() -> None:
    found = trainer.read(TEXT.encode())

    assert found.model is not None and found.model.name == "qwen2.5-7b"
    assert (found.layout.micro_batch, found.accumulated, found.job.sequence_length) == (4, 32, 4096)
    assert (found.layout.dp_replicate, found.layout.dp_shard, found.layout.tp, found.layout.zero) == (2, 4, 2, 3)
    assert any("num_train_epochs=cfg.epochs (line 9)" in note for note in found.notes)
    assert errors(found) == [] and found.missing == ()


def test_a_value_that_the_text_does_not_hold_is_asked_for() -> None:
    found = call("per_device_train_batch_size=config.batch, max_length=get_length()")

    assert {one.field for one in found.missing} == {"micro_batch", "sequence_length", "model"}
    assert found.accumulated == 0 and found.job.global_batch is None


def test_a_name_that_is_set_twice_is_no_constant() -> None:
    assert call("per_device_train_batch_size=N", "N = 4").layout.micro_batch == 4
    assert "micro_batch" in {one.field for one in call("per_device_train_batch_size=N", "N = 4\nN = 8").missing}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("TrainingArguments(output_dir='x', max_seq_length=8)", ["TRN009"]),
        ("TrainingArguments(output_dir='x', packing=True)", ["TRN009"]),
        ("SFTConfig(output_dir='x', max_seq_length=8)", ["TRN009"]),
        ("SFTConfig(output_dir='x', packing=True)", []),
        ("Seq2SeqTrainingArguments(output_dir='x', predict_with_generate=True)", []),
    ],
)
def test_an_argument_that_the_class_does_not_have(text: str, code: list[str]) -> None:
    assert errors(trainer.read(text.encode())) == code


# --- whose file it is -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "framework"),
    [
        ("base_model: a/b\nmicro_batch_size: 2\nbf16: auto\n", "axolotl"),
        ("model_name_or_path: a/b\nfinetuning_type: lora\nbf16: true\n", "LLaMA-Factory"),
        ("llamafactory-cli train --stage sft --model_name_or_path a --bf16\n", "LLaMA-Factory"),
        ('{"per_device_train_batch_size": 2, "bf16": true}', "the transformers Trainer"),
        ("accelerate launch t.py --num_train_epochs 3 --bf16\n", "the transformers Trainer"),
        ("deepspeed t.py --deepspeed ds.json --per_device_train_batch_size 2\n", "the transformers Trainer"),
        ("python t.py --per-device-train-batch-size 3 --bf16\n", "the transformers Trainer"),
        ('{"train_micro_batch_size_per_gpu": 2, "bf16": {"enabled": true}}', "deepspeed"),
        ("torchrun p.py --num-layers 2 --hidden-size 8 --num-attention-heads 1 --micro-batch-size 1", "megatron"),
        ("micro_batch_size: 1\nglobal_batch_size: 8\nnum_layers: 2\n", "megatron"),
    ],
)
def test_a_text_is_read_by_the_framework_that_it_is_of(text: str, framework: str) -> None:
    assert read(text.encode()).framework == framework
