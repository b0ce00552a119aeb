"""What Megatron-LM refuses when it starts, or silently takes otherwise than it reads: degrees, layers, switches.

Checked against megatron-core 0.19.2: training/arguments.py (validate_args), TransformerConfig, parallel_state.py.
"""

from ...layout.degrees import divisors
from ..pipeline_layout import ends_given
from ..setting import Settings
from .run_time import Said

VIRTUAL = "num_layers_per_virtual_pipeline_stage"
CHUNKS = (VIRTUAL, "num_virtual_stages_per_pipeline_rank")
ENDS = ("decoder_first_pipeline_num_layers", "decoder_last_pipeline_num_layers")
SPLITS = (*ENDS, "pipeline_model_parallel_layout", "account_for_embedding_in_pipeline_split",
          "account_for_loss_in_pipeline_split", *CHUNKS)  # fmt: skip
SHARDS = ("use_distributed_optimizer", "use_megatron_fsdp", "use_custom_fsdp")


def at_the_start(said: Said) -> None:
    """Keep what the start will refuse, or take otherwise."""
    _switches(said.settings)
    _pipeline(said)
    _heads(said)
    _groups(said)
    _experts(said)
    _overlap(said)
    _alone(said)


def virtual_stages(settings: Settings, layers: int, pp: int, each: int) -> int:
    """Chunks a rank from the layers of each; 1, and a finding, where they do not share out."""
    held, rest = divmod(layers, pp)
    if not rest and held % each == 0:
        return held // each
    what = "virtual stages do not divide the layers of a stage"
    rule = "the layers of a stage are a multiple of --num-layers-per-virtual-pipeline-stage"
    got = f"{layers} layers / {pp} stages = {layers / pp:.6g}, in steps of {each}"
    choices = ", ".join(map(str, divisors(held)[:-1]))
    fix = f"{choices} layers a virtual stage" if not rest and held > 1 else "other counts of layers or stages"
    settings.find("MEG014", VIRTUAL, what, rule, got, fix)
    return 1


def _switches(settings: Settings) -> None:
    if settings.on("fp16") and settings.on("bf16"):
        what, rule = "fp16 and bf16 are both on", "one of --fp16 and --bf16"
        settings.find("MEG019", "fp16", what, rule, "--fp16 --bf16", "remove one of them")
    given = [name for name in CHUNKS if settings.number(name)]
    if given and settings.number("pipeline_model_parallel_size", 1) == 1:
        what = "virtual stages without a pipeline"
        rule, fix = "interleaving needs --pipeline-model-parallel-size above 1", "remove it, or cut the layers"
        settings.find("MEG016", given[0], what, rule, "1 stage", fix, edits={given[0]: None})


def _pipeline(said: Said) -> None:
    """Layers that the stages do not share equally, and no setting that says how."""
    layers, pp = said.model.layers if said.model else 0, said.layout.pp or 1
    settings = said.settings
    if not layers or layers % pp == 0 or any(settings.get(name) for name in SPLITS):
        return
    edits = _ends(layers, pp)
    ways = [size for size in divisors(layers) if size <= max(said.ranks, pp)]
    fix = f"--pipeline-model-parallel-size {', '.join(map(str, ways))}"
    fix += ", or " + " ".join(f"--{name.replace('_', '-')} {count}" for name, count in edits.items()) if edits else ""
    rule = "pipeline stages divide the layers, unless the first or the last stage is given its own (0.9 and older"
    rule += " dropped the rest without a word)"
    got = f"{layers} layers / {pp} stages = {layers / pp:.6g}"
    what = f"{pp} stages do not divide {layers} layers"
    settings.find("MEG015", "pipeline_model_parallel_size", what, rule, got, fix, edits=edits)


def _ends(layers: int, pp: int) -> dict[str, str | None]:
    """Layers of the first and the last stage: the others are equal, and no stage is longer than it must be."""
    longest = -(-layers // pp)
    rest = layers - (pp - 2) * longest
    first, last = rest // 2, rest - rest // 2
    if pp < 2 or first < 1 or ends_given(layers, pp, 1, first, last if pp > 2 else 0) is None:
        return {}
    return {ENDS[0]: str(first), ENDS[1]: str(last)} if pp > 2 else {ENDS[0]: str(first)}


def _heads(said: Said) -> None:
    attention = said.model.blocks[0].attention if said.model else None
    tp = said.layout.tp or 1
    if said.model is None or attention is None or attention.heads % tp == 0:
        return
    dense = next((block.feed_forward for block in said.model.blocks if block.feed_forward), None)
    heads = [size for size in divisors(attention.heads) if _shares(attention.kv_heads, size)]
    widths = [size for size in heads if dense is None or dense.width % size == 0]
    rule = "tensor-model-parallel-size divides the attention heads, the key/value heads and the widths"
    got = f"{attention.heads} heads / {tp} = {attention.heads / tp:.6g}"
    what = f"tensor-model-parallel-size {tp} does not divide {attention.heads} heads"
    fix = f"--tensor-model-parallel-size {', '.join(map(str, widths))}"
    said.settings.find("MEG017", "tensor_model_parallel_size", what, rule, got, fix)


def _shares(heads: int, tp: int) -> bool:
    return heads % tp == 0 or tp % heads == 0


def _groups(said: Said) -> None:
    """Key/value heads that are given and not switched on."""
    settings = said.settings
    groups, latent = settings.number("num_query_groups", 0), settings.on("multi_latent_attention")
    if not groups or settings.on("group_query_attention") or latent or "group_query_attention" in settings.held:
        return
    heads = settings.number("num_attention_heads")
    if groups == heads:
        return
    what = "grouped-query attention is not switched on"
    rule = "--num-query-groups counts with --group-query-attention alone; without it every head has its own keys"
    got = f"{heads:,} key/value heads, not {groups:,}"
    edits = {"group_query_attention": ""}
    settings.find(
        "MEG021", "num_query_groups", what, rule, got, "add --group-query-attention", serious=False, edits=edits
    )


def _experts(said: Said) -> None:
    at, settings, name = said.layout, said.settings, "expert_model_parallel_size"
    ep = settings.number(name, 1)
    if ep > 1 and not settings.number("num_experts"):
        what = "expert parallelism in a model without experts"
        rule, fix = "--expert-model-parallel-size above 1 needs --num-experts", "remove it, or give the experts"
        settings.find("MEG018", name, what, rule, f"ep {ep}, no experts", fix, edits={name: None})
        return
    grid = (at.etp or 0) * (at.ep or 0) * (at.pp or 0)
    if not said.ranks or not grid or said.ranks % grid == 0 or not settings.number("num_experts"):
        return
    least = _least(grid, (at.tp or 1) * (at.pp or 1) * (at.cp or 1))
    what = f"the experts' degrees do not divide {said.ranks:,} ranks"
    rule = "expert tensor x expert x pipeline divides the ranks, beside tensor x pipeline x context"
    got = f"{said.ranks:,} ranks / (etp {at.etp} x ep {at.ep} x pp {at.pp}) = {said.ranks / grid:.6g}"
    settings.find("MEG020", name, what, rule, got, f"{least:,} ranks or a multiple, or a smaller --{_flag(name)}")


def _least(one: int, other: int) -> int:
    """The least number of ranks that both products divide."""
    return next(size for size in range(one, one * other + 1, one) if size % other == 0)


def _flag(name: str) -> str:
    return name.replace("_", "-")


def _overlap(said: Said) -> None:
    settings, name = said.settings, "overlap_param_gather"
    if not settings.on(name):
        return
    sharded = any(settings.on(one) for one in SHARDS) or settings.word("optimizer", default="adam") == "dist_muon"
    if sharded and settings.on("overlap_grad_reduce"):
        return
    lacks = "--overlap-grad-reduce" if sharded else "--use-distributed-optimizer"
    edits: dict[str, str | None] = {"overlap_grad_reduce": ""} if sharded else {name: None}
    rule = "--overlap-param-gather needs --overlap-grad-reduce, and the distributed optimizer or Megatron-FSDP"
    fix = f"add {lacks}" if sharded else f"remove it, or add {lacks}"
    what = f"--overlap-param-gather without {lacks}"
    settings.find("MEG023", name, what, rule, f"no {lacks}", fix, edits=edits)


def _alone(said: Said) -> None:
    """A distributed optimizer of one rank."""
    settings, name = said.settings, "use_distributed_optimizer"
    if not settings.on(name) or said.dp * (said.layout.cp or 0) != 1 or settings.number("num_experts"):
        return
    what, rule = "the distributed optimizer shards nothing here", "it shards over data-parallel x context ranks"
    got = f"{said.ranks:,} ranks / (tp {said.layout.tp} x pp {said.layout.pp}) = 1 data-parallel rank"
    settings.find("MEG022", name, what, rule, got, "more ranks, or count on no saving from it", serious=False)
