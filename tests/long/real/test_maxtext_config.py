"""Exported YAML, and planted errors, through MaxText's own pydantic configuration, on devices that a CPU stands for.

Needs Python 3.12 with maxtext 0.2.5 as .venv-maxtext, or its interpreter in MAXTEXT_PYTHON: `pip install --no-deps
maxtext==0.2.5`, then jax pydantic omegaconf pyyaml numpy absl-py jinja2 flax pathwaysutils; minutes.
"""

import json
import os
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from outlay.bill import case_of
from outlay.cluster.catalogue import clusters
from outlay.errors import InputError
from outlay.formats import maxtext
from outlay.formats.maxtext.models import NAMES
from outlay.formats.setting import Run
from outlay.job import AUTO, Job
from outlay.layout.axes import Layout
from outlay.layout.rules import rules_of
from outlay.model.catalogue import find

PYTHON = Path(os.environ.get("MAXTEXT_PYTHON", Path(__file__).parents[3] / ".venv-maxtext/bin/python"))
pytestmark = pytest.mark.skipif(not PYTHON.exists(), reason="no environment with MaxText")
ASK = """
import json, sys
from maxtext.configs import pyconfig
said = []
for path in sys.argv[1:]:
    fixed = ["run_name=a", "base_output_directory=/tmp/a", "skip_jax_distributed_system=True", "dataset_type=synthetic"]
    try:
        one = pyconfig.initialize(["x", path, *fixed])
        said.append({"batch": one.global_batch_size_to_train_on, "pass": one.micro_batch_size_to_train_on,
            "axes": dict(zip(one.mesh_axes, map(int, one.ici_parallelism))), "repeats": one.num_pipeline_repeats,
            "parts": one.num_pipeline_microbatches, "layers": one.num_decoder_layers,
            "sizes": [one.emb_dim, one.num_query_heads, one.num_kv_heads, one.vocab_size]})
    except BaseException as error:
        said.append({"error": f"{type(error).__name__}: {error}"})
print("SAID" + json.dumps(said))
"""


def answers(texts: list[str], devices: int, folder: Path) -> list[dict[str, Any]]:
    """What MaxText makes of some files, all on as many devices."""
    paths = []
    for number, text in enumerate(texts):
        paths.append(folder / f"{devices}-{number}.yml")
        paths[-1].write_text(text)
    host = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}"}
    command = [str(PYTHON), "-P", "-c", ASK, *map(str, paths)]
    made = subprocess.run(command, env=os.environ | host, capture_output=True, text=True, timeout=1800, check=False)
    line = next(line for line in made.stdout.split("\n") if line.startswith("SAID"))
    found: list[dict[str, Any]] = json.loads(line.removeprefix("SAID"))
    return found


def runs(devices: int, count: int) -> list[Run]:
    """Legal runs, drawn at random with a fixed seed."""
    chance, made = random.Random(devices), list[Run]()
    while len(made) < count:
        model = find(chance.choice(["llama-3.1-8b", "llama-3.1-70b", "mixtral-8x7b", "qwen3-30b-a3b", "gpt3-175b"]))
        on, driver = chance.choice([("tpu-v5p", "maxtext"), ("b200", "maxtext-gpu")])
        (cluster,) = clusters(f"{devices}x{on}")
        kind, pp = chance.choice(["none", "full", "selective"]), chance.choice([1, 1, 2])
        layout = Layout(
            tp=chance.choice([1, 2, 4]), cp=chance.choice([1, 1, 2]), pp=pp, vpp=chance.choice([1, 2]) if pp > 1 else 1,
            cp_kind=chance.choice(["all_gather", "ring", "ulysses"]), dp_replicate=chance.choice([1, 1, 2]),
            ep=chance.choice([1, 2]) if model.experts else 1, zero=chance.choice([0, 1, 3, 3]), recompute=kind,
            recompute_modules=("core_attn",) if kind == "selective" else AUTO, micro_batch=chance.choice([1, 2]),
            loss_chunks=chance.choice([1, 4]), offload_optimizer=chance.choice([0.0, 1.0]),
            offload_activations=chance.choice([0.0, 1.0]),
        )  # fmt: skip
        job = Job(
            chance.choice([1024, 4096]), chance.choice([64, 128]), chance.choice([0.0, 1e9]),
            chance.choice(["bf16", "fp32", "fp8", "fp8_delayed", "mxfp8"]), chance.choice(["adam", "sgd", "muon"]),
            expert_capacity=chance.choice([0.0, 1.25]) if model.experts else 0.0,
        )  # fmt: skip
        try:
            case, _ = case_of(model, job, cluster, layout, driver)
        except InputError:
            continue
        if all(bool(rule.legal(case)) for rule in rules_of(driver)):
            made.append(Run(case.model, case.job, case.cluster, case.layout, case.engine))
    return made


@pytest.mark.parametrize("devices", [8, 16, 64])
def test_maxtext_reads_what_is_exported_and_makes_the_same_of_it(devices: int, tmp_path: Path) -> None:
    some = runs(devices, 40)
    texts = [maxtext.write(run).text for run in some]

    for run, text, said in zip(some, texts, answers(texts, devices, tmp_path), strict=True):
        at, found = run.layout, maxtext.read(text.encode())
        assert "error" not in said, f"{said}\n{text}"
        passes = 1 if at.pp > 1 else run.micro_batches
        assert (said["batch"], said["pass"]) == (run.job.global_batch, run.job.global_batch // passes)
        assert (said["axes"]["tensor"], said["axes"]["context"], said["axes"]["stage"]) == (at.tp, at.cp, at.pp)
        assert said["axes"]["data"] * said["axes"]["fsdp"] * said["axes"]["expert"] == at.dp
        assert said["batch"] == found.job.global_batch and found.findings == ()
        if at.pp > 1:
            assert (said["repeats"], said["parts"]) == (at.vpp, run.micro_batches)


def test_models_of_the_same_name_have_the_same_sizes(tmp_path: Path) -> None:
    texts = [f'base_config: "base.yml"\nmodel_name: "{name}"\n' for name in NAMES]

    for name, said in zip(NAMES, answers(texts, 1, tmp_path), strict=True):
        model = find(NAMES[name])
        attention = next(block.attention for block in model.blocks if block.attention or block is model.blocks[-1])
        if "error" in said:  # what some models want beside their name, such as a kernel
            assert "model_name" not in said["error"], said
            continue
        hidden, heads, groups, vocab = said["sizes"]
        assert (hidden, vocab) == (model.hidden, maxtext.models.PADDED.get(name, model.vocab)), name
        if attention and not attention.latent_rank:
            assert (heads, groups) == (attention.heads, attention.kv_heads), name


PLANTED = [
    "ici_pipeline_parallelism: 3\nici_fsdp_parallelism: 1\nici_data_parallelism: -1\nper_device_batch_size: 3",
    "ici_pipeline_parallelism: 4\nnum_layers_per_pipeline_stage: 4\nnum_pipeline_repeats: 4",
    "ici_pipeline_parallelism: 4\nnum_pipeline_microbatches: 6",
    "ici_pipeline_parallelism: 4\npipeline_delay_activation_forwarding: true\nnum_pipeline_microbatches: 4",
    "context_parallel_strategy: ulysses\nici_context_parallelism: 2\nhardware: gpu",
    "context_parallel_strategy: ring\nici_context_parallelism: 2",
    "context_parallel_strategy: striped\nici_context_parallelism: 2",
    "quantization: fp9",
    "quantization: fp8\ngradient_accumulation_steps: 2",
    "shard_optimizer_over_data: true",
    "shard_optimizer_over_data: true\nici_fsdp_parallelism: 4\nici_data_parallelism: 3",
    "per_device_batch_sise: 2",
    "model_name: mixtral-8x7b\nopt_type: muon",
]  # fmt: skip


def test_what_is_found_is_what_maxtext_refuses(tmp_path: Path) -> None:
    usual = {"base_config": "base.yml", "model_name": "llama3.1-8b", "per_device_batch_size": "1"}
    texts = [
        "".join(f"{key}: {value}\n" for key, value in usual.items() if f"{key}:" not in one) + one for one in PLANTED
    ]

    for text, said in zip(texts, answers(texts, 12, tmp_path), strict=True):
        assert "error" in said, text
        assert maxtext.read(text.encode()).findings, text
