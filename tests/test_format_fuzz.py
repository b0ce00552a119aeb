"""Hostile files: a thousand broken ones a reader, bombs, bytes that are no text. Each ends in a reading or an error."""

import contextlib
import random
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from outlay import Job, Layout, count, load_cluster, load_model
from outlay.errors import InputError
from outlay.formats import deepspeed, megatron
from outlay.formats.contradictions import across
from outlay.formats.edited import UnmendableError, edited
from outlay.formats.joining import Part
from outlay.formats.known import FORMATS, read
from outlay.formats.said import said_in
from outlay.formats.setting import Found, Run
from outlay.formats.source import text_of

SCRIPT = b"""#!/bin/bash
GPUS=8 # cards
NNODES=${SLURM_NNODES:-4}
WORLD_SIZE=$(($GPUS*$NNODES))
ARGS=(
    --num-layers 32 \\
    --hidden-size 4096 --num-attention-heads 32 --vocab-size 32000
    "--seq-length" '2048' --max-position-embeddings=4096
)
MORE="--micro-batch-size 1 \\
  --global-batch-size $((8 * GPUS)) --bf16 $(cat extra.txt) `date`"
if [ $TP -gt 1 ]; then ARGS+=(--sequence-parallel); else ARGS+=(--no-x); fi
torchrun --nproc_per_node $GPUS --nnodes "$NNODES" pretrain_gpt.py "${ARGS[@]}" $MORE \\
    --pipeline-model-parallel-layout "Et*3|(tt|)*14,t|L" --rampup-batch-size 16 16 1000 > log 2>&1
"""
LOG = b"""using world size: 64, data-parallel size: 8
------------------------ arguments ------------------------
  add_bias_linear ................................. False
  bf16 ............................................ True
  global_batch_size ............................... 512
  hidden_size ..................................... 4096
  kv_channels ..................................... 128
  moe_layer_freq .................................. 1
  num_attention_heads ............................. 32
  num_layers ...................................... 32
  tensor_model_parallel_size ...................... 8
  world_size ...................................... 64
  vocab_size ...................................... None
-------------------- end of arguments ---------------------
"""
YAML = b"""language_model:
  num_layers: 24      # layers
  hidden_size: 1024
  num_attention_heads: 16
  add_bias_linear: False
model_parallel:
  tensor_model_parallel_size: 2
  recompute_modules: [core_attn, mlp]
micro_batch_size: 2
global_batch_size: '128'
vocab_size: 32000
"""
JSON = b"""{
  // of a Trainer
  "train_batch_size": "auto", "train_micro_batch_size_per_gpu": 2,
  "gradient_accumulation_steps": 4,
  "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu", "pin_memory": true},
    "stage3_param_persistence_threshold": 1e5, "reduce_bucket_size": "5e8",},
  "bf16": {"enabled": True}, /* python */
  'optimizer': {"type": "AdamW", "params": {"lr": 3e-5, "betas": [0.9, 0.95]}}
}
"""
READERS = {
    "script": (megatron.read, SCRIPT),
    "log": (megatron.read, LOG),
    "yaml": (megatron.read, YAML),
    "json": (deepspeed.read, JSON),
}
PIECES = [
    *(bytes([one]) for one in b"(){}[]\"'`\\\n\t #:,|=%0"), b"$(", b"${", b"$((", b"\r\n", b"&a", b"*a", b"<<", b"--",
    b"-1",
        b"1e999", b"nan", b"9" * 50, b"\xff", b"\x00", b"\xef\xbb\xbf", "\u202e".encode(), b"None", b"- ", b"? ",
    b"!!python/object/apply:os.system ['true']", b"/*", b"//", b"}}", b"t*99999999", b"\x85", b"\x1b[2J",
]  # fmt: skip
CODES = re.compile("FMT00[2-6]")


def outcome(reader: Callable[[bytes], Found], content: bytes) -> str:
    """A reading, or the codes of its faults: nothing else may come of any bytes."""
    try:
        found = reader(content)
    except InputError as error:
        codes = [fault.code for fault in error.faults]
        return codes[0] if all(map(CODES.fullmatch, codes)) else f"wrong: {codes}"
    assert isinstance(found, Found)
    return "read"


def broken(text: bytes, chance: random.Random) -> bytes:
    """The text with a few cuts, doubles and strange pieces."""
    for _ in range(chance.randint(1, 6)):
        at, end = sorted((chance.randrange(len(text) + 1), chance.randrange(len(text) + 1)))
        kind = chance.randrange(5)
        if kind == 0:
            text = text[:at] + text[min(end, at + 12) :]
        elif kind == 1:
            text = text[:at] + chance.choice(PIECES) + text[at:]
        elif kind == 2:
            text = text[:at] + text[at:end][:400] + text[at:]
        elif kind == 3 and text:
            text = text[:at] + bytes([chance.randrange(256)]) + text[at + 1 :]
        else:
            text = text[:at] + chance.choice(PIECES) * chance.randint(2, 60) + text[at:]
    return text


@pytest.mark.parametrize("name", READERS)
def test_a_thousand_broken_files_are_read_or_refused(name: str) -> None:
    reader, sample = READERS[name]
    chance = random.Random(7)
    found = {"read": 0}

    for _ in range(1000):
        said = outcome(reader, broken(sample, chance))
        found[said] = found.get(said, 0) + 1

    assert outcome(reader, sample) == "read"
    assert {said for said in found if said != "read" and not CODES.fullmatch(said)} == set()
    assert found["read"] > 50 and sum(found.values()) - found["read"] > 50  # both ends are reached


def written(form: ModuleType) -> bytes:
    """A file of a format, as its own writer makes it, of a run with something in every part."""
    model, cluster = load_model("mixtral-8x7b"), load_cluster("16xh100-sxm")
    bill = count(model, Job(sequence_length=4096, global_batch=64), cluster, Layout(), form.ENGINE)
    text: str = form.write(Run(bill.model, bill.job, bill.cluster, bill.layout, bill.engine)).text
    return text.encode()


def checked(content: bytes) -> str:
    """What `check` makes of a file beside its reading: quantities, contradictions and edits; an outcome as above."""
    said = outcome(read, content)
    if said != "read":
        return said
    text, found = text_of(content), read(content)
    part = Part("file", text, found, said_in(text))
    across([part, replace(part, title="other")])
    for one in found.findings:
        with contextlib.suppress(UnmendableError):
            said = outcome(read, edited(content, [one]))
    return said


@pytest.mark.parametrize("name", FORMATS)
def test_broken_files_of_every_format_are_read_or_refused(name: str) -> None:
    sample, chance = written(FORMATS[name]), random.Random(11)

    assert outcome(FORMATS[name].read, sample) == "read"
    for _ in range(1000 // len(FORMATS)):
        content = broken(sample, chance)
        for said in (outcome(FORMATS[name].read, content), checked(content)):
            assert said == "read" or CODES.fullmatch(said), content


@pytest.mark.parametrize("length", [0, 1, 50, 3000])
def test_random_bytes_are_refused(length: int) -> None:
    chance = random.Random(length)
    for _ in range(50):
        content = bytes(chance.randrange(256) for _ in range(length))
        assert outcome(read, content).startswith("FMT")


LAUGHS = (b"%c: &%c [%s]\n" % (98 + n, 98 + n, b",".join([b"*%c" % (97 + n)] * 9)) for n in range(9))
SMALL = b"x --num-layers 2 --hidden-size 8 --num-attention-heads 1 "
BOMBS = {
    "aliases": b"a: &a [1,1,1,1,1,1,1,1]\n" + b"".join(LAUGHS),
    "deep yaml": b"num_layers: " + b"[" * 50_000,
    "deep block yaml": b"".join(b" " * n + b"a:\n" for n in range(500)),
    "deep json": b'{"zero_optimization":' + b"[" * 200_000,
    "deep objects": b'{"fp16":' * 100_000,
    "long json": b'{"train_batch_size": 1, "bf16": {' + b",".join(b'"k%d":1' % n for n in range(80_000)) + b"}}",
    "variables": b"A0=--num-layers\n" + b"".join(b'A%d="$A%d $A%d"\n' % (n + 1, n, n) for n in range(60)) + b"x $A60\n",
    "arrays": b"A=(--num-layers 2)\n" + b'A+=("${A[@]}" "${A[@]}")\n' * 60 + b'x "${A[@]}"\n',
    "arithmetic": b"A=$((" + b"(" * 5000 + b"1" + b")" * 5000 + b"))\nx --num-layers $A\n",
    "power": b"A=$((9*9*9*9*9*9*9*9*9*9*9*9*9*9*9*9*9*9*9*9*9*9*9*9*9*9*9))\nx --num-layers $A\n",
    "nested commands": b"x --num-layers " + b"$(" * 20_000,
    "nested defaults": b"x --num-layers " + b"${A:-" * 3000 + b"1" + b"}" * 3000,
    "quotes": b'x --num-layers "' * 30_001,
    "dots": b"num_layers " + b"." * 900_000,
    "blanks": b"x --num-layers 2" + b" " * 900_000 + b"--num-layers 3",
    "layout": SMALL + b"--pipeline-model-parallel-layout '" + b"(t|)*999999" * 300 + b"'",
    "frequency": SMALL + b"--num-experts 2 --moe-layer-freq '" + b"(" * 2000 + b"[1]*9" + b")*9999" * 2000 + b"'",
    "many flags": b"x --num-layers 2 " + b" ".join(b"--flag-%d %d" % (n, n) for n in range(9_000)),
    "huge number": b"x --num-layers " + b"9" * 10_000,
    "lines": b"\n" * 900_000 + b"x --num-layers 2",
    "colons": b"a: b\n" + b"c: " * 100_000,
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_ends_at_once(name: str) -> None:
    before = time.perf_counter()

    for reader in (read, megatron.read, deepspeed.read):
        assert outcome(reader, BOMBS[name]) in ("read", "FMT002", "FMT003", "FMT004", "FMT005")

    assert time.perf_counter() - before < 30


@pytest.mark.parametrize("piece", [b"\0", b"  num_layers ... 2\n", b"--num-layers 2 \n", b"a: b\n", b'{"fp16": 1}'])
def test_a_file_of_a_hundred_megabytes_is_refused(piece: bytes) -> None:
    assert outcome(read, piece * (100 * 2**20 // len(piece))) == "FMT002"


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b'x --num-layers 2\ny "open', "line 2 column 3"),
        (b"A=(--num-layers 2\n", "line 1 column 3"),
        (b"x --num-layers $(cat f\n", "line 1 column 16"),
        (b"num_layers: 2\nb: [1, 2\n", "line 3 column 1"),
        (b"num_layers: 2\nb: &x 3\n", "line 2 column 4"),
        (b"num_layers: 2\nnum_layers: 3\n", "line 2 column 1"),
        (b'{"fp16": {"enabled": true},\n "fp16": {}}', "line 2 column 2"),
        (b'{"fp16": {"enabled": true}\n "bf16": {}}', "line 2 column 2"),
        (b'{"fp16": {"enabled": tru}}', "line 1 column 22"),
        (b'\xef\xbb\xbf{"train_batch_size":\r\n  "x"}', "line 2 column 3"),
        (b"--num-layers 2\n--hidden-size x1 --num-attention-heads 2", "line 2 column 1"),
        (b"--num-layers 2\n\xff\xfa", "line 2 column 1"),
        (b"--num-layers 2\nab\0c", "line 2 column 3"),
    ],
)
def test_an_error_says_its_line_and_column(content: bytes, place: str) -> None:
    with pytest.raises(InputError) as error:
        read(content)

    assert error.value.faults[0].got.startswith(place + ":")


def test_nothing_is_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a file was run")

    for name in ("os.system", "subprocess.Popen", "subprocess.run", "builtins.eval", "builtins.exec"):
        monkeypatch.setattr(name, refuse)
    monkeypatch.chdir(tmp_path)
    megatron.read(b"x --num-layers $(touch a) --hidden-size `touch b` --num-attention-heads 2\n. ./env.sh\nrm -rf x\n")
    outcome(megatron.read, b"num_layers: !!python/object/apply:os.system ['touch c']\n")
    outcome(deepspeed.read, b'{"train_batch_size": __import__("os").system("touch d")}')
    assert list(tmp_path.iterdir()) == []
