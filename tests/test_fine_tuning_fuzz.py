"""Hostile files of fine-tuning: a thousand broken ones in all, bombs, Python that must not run."""

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from outlay.errors import InputError
from outlay.formats import axolotl, llamafactory, trainer
from outlay.formats.known import read
from outlay.formats.setting import Found
from test_format_fuzz import BOMBS, CODES, broken, outcome

AXOLOTL = b"""base_model: meta-llama/Llama-3.1-8B  # the model
datasets:
  - path: a/b
    type: alpaca
sequence_len: 4096
micro_batch_size: 2
gradient_accumulation_steps: '4'
adapter: qlora
load_in_4bit: true
lora_r: 16
lora_target_modules: [q_proj, v_proj]
bf16: auto
fsdp_version: 2
fsdp_config:
  reshard_after_forward: true
  transformer_layer_cls_to_wrap: LlamaDecoderLayer
dp_shard_size: 8
gradient_checkpointing: offload
"""
LLAMA_FACTORY = b"""### model
model_name_or_path: Qwen/Qwen2.5-7B
stage: dpo
finetuning_type: full
cutoff_len: 2048
per_device_train_batch_size: 1
gradient_accumulation_steps: 8
bf16: true
deepspeed:
  zero_optimization: {stage: 3, offload_optimizer: {device: cpu}}
  train_micro_batch_size_per_gpu: auto
"""
MEGATRON = b"""model_name_or_path: Qwen/Qwen3-30B-A3B
stage: sft
finetuning_type: full
cutoff_len: 4096
tensor_model_parallel_size: 2
pipeline_model_parallel_size: 4
expert_model_parallel_size: 2
pipeline_model_parallel_layout: "E,t*12|t*12|t*12|t*12,L"
recompute_granularity: selective
recompute_modules: core_attn,mlp
"""
SCRIPT = b"""#!/bin/bash
GAS=${GAS:-4}
ARGS="--per_device_train_batch_size 2 --gradient_accumulation_steps $GAS"
torchrun --nproc_per_node 8 train.py $ARGS --bf16 True --fsdp "full_shard auto_wrap" \\
  --fsdp_config '{"transformer_layer_cls_to_wrap": ["LlamaDecoderLayer"], "version": 2}' \\
  --optim adamw_torch --gradient_checkpointing --num_train_epochs $(cat n)
"""
JSON = b"""{"per_device_train_batch_size": 2, "optim": "adamw_8bit", // a comment
 "fsdp": "full_shard offload", "bf16": True, "gradient_checkpointing_kwargs": {"every_n_layers": 2},
 "deepspeed": {"zero_optimization": {"stage": 2}}, "model_name_or_path": "gpt2-xl", "max_length": 512}
"""
PYTHON = b"""from trl import SFTConfig
MODEL = 'Qwen/Qwen2.5-7B'
BATCH = 2  # rows
args = SFTConfig(
    output_dir="out", per_device_train_batch_size=BATCH, gradient_accumulation_steps=64 // 8,
    fsdp=True, fsdp_config={"version": 2, "reshard_after_forward": False}, max_length=4096,
    parallelism_config=ParallelismConfig(dp_shard_size=4, tp_size=2), num_train_epochs=-(-3),
)
peft = LoraConfig(r=8, target_modules=["q_proj"], lora_alpha=16)
trainer = SFTTrainer(model=MODEL, args=args)
"""
READERS: dict[str, tuple[Callable[[bytes], Found], bytes]] = {
    "axolotl": (axolotl.read, AXOLOTL),
    "llama-factory": (llamafactory.read, LLAMA_FACTORY),
    "on megatron": (llamafactory.read, MEGATRON),
    "script": (trainer.read, SCRIPT),
    "json": (trainer.read, JSON),
    "python": (trainer.read, PYTHON),
}


@pytest.mark.parametrize("name", READERS)
def test_broken_files_are_read_or_refused(name: str) -> None:
    reader, sample = READERS[name]
    chance, found = random.Random(11), dict[str, int]()

    for _ in range(200):
        said = outcome(reader, broken(sample, chance))
        found[said] = found.get(said, 0) + 1

    assert outcome(reader, sample) == "read"
    assert {said for said in found if said != "read" and not CODES.fullmatch(said)} == set()
    assert found["read"] > 10 and sum(found.values()) - found["read"] > 10  # both ends are reached


@pytest.mark.parametrize(("name", "form"), [(name, name) for name in READERS])
def test_each_text_is_claimed_by_its_own_format(name: str, form: str) -> None:
    reader, sample = READERS[name]

    assert read(sample).framework == reader(sample).framework


OPEN = b"args = TrainingArguments("
PYTHON_BOMBS = {
    "brackets": OPEN + b"(" * 50_000,
    "closed brackets": OPEN + b"a=" + b"(" * 9_000 + b")" * 9_000 + b")",
    "lists": OPEN + b"a=" + b"[" * 90 + b"1" + b"]" * 90 + b")",
    "minus": OPEN + b"a=" + b"-" * 15_000 + b"1)",
    "attributes": OPEN + b"a=" + b"x." * 9_000 + b"x)",
    "products": OPEN + b"bf16=" + b"9*" * 9_000 + b"9)",
    "powers": OPEN + b"bf16=9**9**9**9**9)",
    "quotes": OPEN + b"a='" + b"x" * 900_000,
    "many calls": OPEN + b"bf16=True)\n" + (OPEN + b"x=1)\n") * 30_000,
    "calls in calls": (OPEN + b"bf16=") * 8_000,
    "constants": b"".join(b"A%d = A%d\n" % (n, n) for n in range(40_000)) + OPEN + b"bf16=A1)",
    "models": OPEN + b"bf16=True)\n" + b"from_pretrained( " * 50_000,
    "hashes": OPEN + b"bf16=True, # (\n" * 1_000 + b")",
    "comments": OPEN + b"#" * 900_000,
}
YAML_BOMBS = {
    "deep": AXOLOTL + b"a:\n" + b"".join(b" " * n + b"a:\n" for n in range(1, 500)),
    "aliases": AXOLOTL + b"x: &x [1]\ny: *x\n",
    "many keys": LLAMA_FACTORY + b"".join(b"k%d: 1\n" % n for n in range(30_000)),
    "layout": MEGATRON.replace(b"t*12|", b"(t*99|)*9999"),
    "long target": AXOLOTL + b"lora_target: " + b"q_proj," * 100_000 + b"\n",
    "twice": AXOLOTL + b"micro_batch_size: 3\n",
}


SOME = ("aliases", "deep block yaml", "deep json", "deep objects", "variables", "nested commands", "quotes", "colons")


@pytest.mark.parametrize("name", [*PYTHON_BOMBS, *YAML_BOMBS, *SOME])
def test_a_bomb_ends_at_once(name: str) -> None:
    content = (PYTHON_BOMBS | YAML_BOMBS | BOMBS)[name]
    before = time.perf_counter()

    for reader in (read, axolotl.read, llamafactory.read, trainer.read):
        assert outcome(reader, content) in ("read", "FMT002", "FMT003", "FMT004", "FMT005")

    assert time.perf_counter() - before < 30


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (AXOLOTL + b"micro_batch_size: 3\n", "line 19 column 1"),
        (AXOLOTL.replace(b"[q_proj", b"[{q_proj"), "line 11"),
        (AXOLOTL.replace(b"sequence_len: 4096", b"sequence_len: long"), "line 5 column 1"),
        (
            b"\xef\xbb\xbf" + LLAMA_FACTORY.replace(b"cutoff_len: 2048", b"cutoff_len: x").replace(b"\n", b"\r\n"),
            "line 5",
        ),
        (JSON.replace(b'"fsdp": ', b'"optim": '), "line 2 column 2"),
        (SCRIPT.replace(b'"full_shard auto_wrap"', b'"full_shard'), "line 5 column 83"),  # where the last quote opens
        (PYTHON.replace(b'output_dir="out"', b'output_dir="out'), "line 5 column 16"),
        (PYTHON.replace(b"max_length=4096,", b"max_length=4096 x,"), "line 6"),
        (PYTHON.replace(b"max_length=4096", b'max_length="long"'), "line 6 column 87"),
        (SCRIPT.replace(b"batch_size 2", b"batch_size two"), "line 3 column 7"),
    ],
)
def test_an_error_says_its_line_and_column(content: bytes, place: str) -> None:
    with pytest.raises(InputError) as error:
        read(content)

    assert error.value.faults[0].got.startswith(place)


def test_no_text_in_python_is_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a file was run")

    for name in ("os.system", "subprocess.Popen", "subprocess.run", "builtins.eval", "builtins.exec"):
        monkeypatch.setattr(name, refuse)
    monkeypatch.chdir(tmp_path)
    text = b"open('a', 'w').write('x')\nBATCH = open('b', 'w')\nN = __import__('os').system('touch c')\n"
    args = b"per_device_train_batch_size=BATCH, gradient_accumulation_steps=N, bf16=open('d', 'w'), max_length=8"

    found = trainer.read(text + b"SFTConfig(" + args + b")")

    assert list(tmp_path.iterdir()) == []
    asked = {one.field for one in found.missing}
    assert asked == {"micro_batch", "global_batch", "precision", "model"}
