"""What Megatron-Bridge, or the classes of megatron-core that it fills, refuse in a configuration.

Sources: ConfigContainer.validate of Megatron-Bridge; TransformerConfig.__post_init__ of megatron-core.
"""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from ..megatron.layout import MODULES
from ..pipeline_layout import parse_layout
from ..setting import FALSE, TRUE, UNSET, Finding, Setting, Settings
from .fields import Translated
from .names import FIELDS, SECTIONS

PRECISIONS = ("bf16_mixed", "fp16_mixed", "mxfp8_mixed", "nvfp4_mixed", "scaling_mixed")
OWN_MODULES = (*MODULES, "gdn_norm_out", "mhc")
UNEVEN = ("pipeline_model_parallel_layout", "decoder_first_pipeline_num_layers", "decoder_last_pipeline_num_layers")


def findings(held: Mapping[str, Setting], made: Translated, at: Settings) -> Iterator[Finding]:
    """Every finding of a configuration by its fields; those that need other counts are rules of the layout."""
    yield from _lengths(held)
    yield from _named(made)
    yield from _length_of_run(held)
    yield from _precision(made)
    yield from _recompute(at)
    yield from _offload(at)
    yield from _dispatch(at)
    yield from _sequence(at)
    yield from _sent(held, at)


def _value(one: Setting | None) -> str:
    text = one.values[0].strip().lower() if one and one.values else ""
    return "" if text in UNSET else text


def _found(code: str, at: Setting, what: str, rule: str, fix: str, serious: bool = True) -> Finding:
    return Finding(code, serious, what, rule, at.text[:80], fix, at.line, at.column)


def _lengths(held: Mapping[str, Setting]) -> Iterator[Finding]:
    model = held.get("model.seq_length")
    for name in ("dataset.seq_length", "dataset.sequence_length"):
        data = held.get(name)
        if model and data and not (model.unknown or data.unknown) and _value(model) != _value(data):
            rule = "validate(): the sequence of the model is that of its data"
            yield _found("BRG001", data, f"{name} is not model.seq_length", rule, f"{name}={_value(model)}")


def _named(made: Translated) -> Iterator[Finding]:
    """Fields in a section that does not have them, and names that look misspelled."""
    for path, one in made.unread.items():
        section, _, name = path.partition(".")
        homes = [home for home in SECTIONS if f"{home}.{name}" in FIELDS]
        if name and section in SECTIONS and homes:
            rule = "a section has the fields of its class; the overrides stop at another one"
            yield _found("BRG002", one, f"{path} is in the wrong section", rule, f"{homes[0]}.{name}")
            continue
        close = get_close_matches(path, FIELDS, n=1, cutoff=0.92)
        if close:
            rule, fix = "the overrides stop at a field that no class has", f"did you mean {close[0]}?"
            yield _found("BRG003", one, f"{path} is not read", rule, fix, serious=False)


def _length_of_run(held: Mapping[str, Setting]) -> Iterator[Finding]:
    said = [held[name] for name in ("train.train_iters", "train.train_samples", "train.num_epochs") if name in held]
    given = [one for one in said if _value(one)]
    if len(given) > 1:
        rule = "exactly one of train_iters, train_samples and num_epochs"
        fix = f"{given[0].name}=null beside {given[1].name}"
        yield _found("BRG004", given[1], "the run has two lengths", rule, fix)


def _precision(made: Translated) -> Iterator[Finding]:
    named = made.apart.get("mixed_precision")
    word = _value(named).replace("-", "_")
    plain = word.rpartition(".")[2]
    known = plain.endswith(PRECISIONS) or plain in ("16_mixed", "mixedprecisionconfig", "{..}", "")
    if named and not named.unknown and not known:
        rule = "a name of src/megatron/bridge/training/mixed_precision.py, such as bf16_with_mxfp8_mixed"
        yield _found("BRG005", named, f"no precision is called {word[:40]}", rule, "mixed_precision=bf16_mixed")
    if _value(made.flags.get("fp8_format")) and _value(made.flags.get("fp4_format")):
        rule, fix = "fp4 and fp8 exclude each other", "one of the two"
        yield _found("BRG005", made.flags["fp4_format"], "fp8 and fp4 are both on", rule, fix)


def _recompute(at: Settings) -> Iterator[Finding]:
    held = at.held
    kind = held.get("recompute_granularity")
    method, count = held.get("recompute_method"), held.get("recompute_num_layers")
    rule = "TransformerConfig: full takes a method and a count; selective takes no count, and reads no method"
    if kind and _value(kind) == "full" and not (_value(method) and _value(count)):
        fix = "model.recompute_method=uniform model.recompute_num_layers=1"
        yield _found("BRG006", kind, "full recompute without a method and a count", rule, fix)
    for one in (count, method) if _value(kind) == "selective" else ():
        if one and _value(one):
            what = f"selective recompute with {one.name}"
            yield _found("BRG006", one, what, rule, f"{one.name}=null", serious=one is count)
    modules = held.get("recompute_modules")
    strange = [name for name in at.words("recompute_modules") if name not in OWN_MODULES]
    if modules and strange and not modules.unknown and _value(modules):
        rule = f"modules are {', '.join(OWN_MODULES)}"
        yield _found("BRG006", modules, f"no module is called {strange[0][:40]}", rule, "one of them")
    if modules and _value(modules).strip("[]() ") and not _value(kind):
        rule, fix = "modules are those of recompute_granularity selective", "model.recompute_granularity=selective"
        yield _found("BRG006", modules, "modules to recompute have no effect", rule, fix, serious=False)


def _offload(at: Settings) -> Iterator[Finding]:
    layers = at.held.get("cpu_offloading_num_layers")
    if layers is None or not _value(layers) or not offloads(at):
        return
    pipeline, kind = at.held.get("pipeline_model_parallel_size"), at.held.get("recompute_granularity")
    rule = "TransformerConfig: CPU offloading goes with neither a pipeline nor recompute"
    if pipeline and _value(pipeline) not in ("", "1"):
        yield _found("BRG007", layers, "layers are offloaded in a pipeline", rule, "no pipeline, or no offloading")
    if _value(kind):
        yield _found("BRG007", layers, "layers are offloaded and recomputed", rule, "one of the two")


def offloads(at: Settings) -> bool:
    """Whether activations of some layers leave for the host."""
    switch, activations = at.held.get("cpu_offloading"), at.held.get("cpu_offloading_activations")
    return _value(switch) in TRUE and _value(activations) not in FALSE


def _dispatch(at: Settings) -> Iterator[Finding]:
    backend, kind = at.held.get("moe_flex_dispatcher_backend"), at.held.get("moe_token_dispatcher_type")
    if backend and _value(backend) and _value(kind) != "flex":
        rule, fix = "the backend is that of moe_token_dispatcher_type flex", "model.moe_token_dispatcher_type=flex"
        yield _found("BRG008", backend, "the backend of the dispatcher has no effect", rule, fix, serious=False)


def _sequence(at: Settings) -> Iterator[Finding]:
    switch, degree = at.held.get("sequence_parallel"), at.held.get("tensor_model_parallel_size")
    if switch and _value(switch) in TRUE and not (degree and degree.unknown) and _value(degree) in ("", "1"):
        rule = "ModelParallelConfig: sequence parallelism needs tensor parallelism"
        yield _found("BRG009", switch, "sequence_parallel with one tensor-parallel rank", rule, f"{switch.name}=false")
    layout, chunks = at.held.get("pipeline_model_parallel_layout"), at.held.get("num_virtual_stages_per_pipeline_rank")
    uneven = [name for name in UNEVEN if _value(at.held.get(name))]
    if len(uneven) > 1 and layout:
        rule = "TransformerConfig: a layout says all, and goes with no count of the first or the last stage"
        yield _found("BRG010", at.held[uneven[1]], "the layers are shared out twice", rule, "the layout alone")
    if layout and _value(layout) and chunks and _value(chunks) and not layout.unknown and not chunks.unknown:
        stages = at.number("pipeline_model_parallel_size", 1, 1)
        made = _stages(layout.values[0])
        if made and made != stages * at.number("num_virtual_stages_per_pipeline_rank", 1, 1):
            rule = "TransformerConfig: stages of the layout = pipeline x virtual pipeline"
            fix = f"model.virtual_pipeline_model_parallel_size={made // stages}"
            yield _found("BRG010", chunks, f"the layout has {made} stages", rule, fix)


def _sent(held: Mapping[str, Setting], at: Settings) -> Iterator[Finding]:
    """Stages send in a type that no default has; a precision by name, and every recipe, brings one. A configuration
    that says the layers itself stands on no recipe."""
    pipeline = at.held.get("pipeline_model_parallel_size")
    typed = any(name.startswith("mixed_precision") or name.endswith(("pipeline_dtype", "recipe")) for name in held)
    if (
        pipeline
        and "model.num_layers" in held
        and not typed
        and not pipeline.unknown
        and _value(pipeline) not in ("", "1")
    ):
        rule = "ModelParallelConfig: with a pipeline, pipeline_dtype has to be given; mixed_precision brings it"
        yield _found("BRG011", pipeline, "no pipeline_dtype beside a pipeline", rule, "mixed_precision=bf16_mixed")


def _stages(layout: str) -> int:
    return len(parse_layout(layout) or ())
