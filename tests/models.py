"""Models, cases and layouts that several tests share."""

from typing import Any

from hypothesis import strategies as st

from outlay import Cluster, Job, Layout, Model, load_cluster, load_model
from outlay.bill import Loaded, case_of, load

LLAMA_70B = load_model("llama-3.1-70b")
LLAMA_8B = load_model("llama-3.1-8b")
LLAMA_7B = load_model("llama-2-7b")
GPT3 = load_model("gpt3-175b")
MIXTRAL = load_model("mixtral-8x7b")
DEEPSEEK_V3 = load_model("deepseek-v3")
GEMMA = load_model("gemma-2-27b")
MODELS = (LLAMA_70B, GPT3, MIXTRAL, DEEPSEEK_V3, GEMMA)
H100S = load_cluster("64xh100-sxm")


def loaded(
    model: Model, cluster: str = "64xh100-sxm", engine: str = "megatron", seq: int = 4096, batch: int = 512, **axes: Any
) -> Loaded:
    """The complete case of a layout, with the costs of its stages."""
    job = Job(sequence_length=seq, global_batch=batch)
    return load(case_of(model, job, load_cluster(cluster), Layout(**axes), engine)[0])


def powers(most: int) -> st.SearchStrategy[int]:
    """Powers of two up to a number."""
    return st.sampled_from([2**power for power in range(most.bit_length()) if 2**power <= most])


@st.composite
def layouts(draw: st.DrawFn) -> tuple[Model, Job, Cluster, Layout, str]:
    """A question whose world is made by both products: any model, engine, schedule and option."""
    model = draw(st.sampled_from(MODELS))
    tp, cp, pp = draw(powers(8)), draw(powers(2)), draw(powers(8))
    dp = draw(powers(8))
    experts = model.experts
    vpp = draw(st.sampled_from([1, 1, 2])) if pp > 1 else 1
    layout = Layout(
        tp=tp,
        cp=cp,
        pp=pp,
        vpp=vpp,
        ep=draw(powers(min(8, tp * cp * dp))) if experts else 1,
        dp_shard=dp,
        zero=draw(st.sampled_from([0, 1, 2, 3])),
        micro_batch=draw(powers(4)),
        schedule="interleaved" if vpp > 1 else draw(st.sampled_from(["gpipe", "1f1b"])),
        recompute=draw(st.sampled_from(["none", "selective", "full"])),
        overlap_tp=draw(st.booleans()),
        overlap_dp=draw(st.booleans()),
        offload_optimizer=draw(st.sampled_from([0.0, 0.5, 1.0])),
    )
    batch = dp * (layout.micro_batch or 1) * pp * draw(st.sampled_from([1, 2, 8]))
    cluster = load_cluster(f"{tp * cp * pp * dp}xh100-sxm")
    return (
        model,
        Job(sequence_length=2048, global_batch=batch),
        cluster,
        layout,
        draw(st.sampled_from(["megatron", "fsdp2"])),
    )
