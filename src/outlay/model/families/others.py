"""Types of models that are no decoder-only language models, and what they are."""

from collections.abc import Mapping

_ENCODERS = (
    "albert", "bert", "camembert", "canine", "clip", "clip_text_model", "data2vec-text", "deberta", "deberta-v2",
    "distilbert", "electra", "ernie", "esm", "eurobert", "flaubert", "fnet", "funnel", "ibert", "layoutlm",
    "layoutlmv2", "layoutlmv3", "lilt", "longformer", "luke", "mega", "megatron-bert", "mobilebert", "modernbert",
    "mpnet", "mra", "nezha", "nomic_bert", "nystromformer", "perceiver", "roberta", "roberta-prelayernorm",
    "roc_bert", "roformer", "siglip", "splinter", "squeezebert", "vit", "xlm-roberta", "xlm-roberta-xl", "xmod",
    "yoso",
)  # fmt: skip

_ENCODER_DECODERS = (
    "bart", "bigbird_pegasus", "blenderbot", "blenderbot-small", "encoder-decoder", "fsmt", "led", "longt5",
    "m2m_100", "marian", "mbart", "mt5", "mvp", "nllb-moe", "pegasus", "pegasus_x", "plbart", "pop2piano",
    "prophetnet", "seamless_m4t", "seamless_m4t_v2", "speech-encoder-decoder", "speech_to_text", "speecht5",
    "switch_transformers", "t5", "t5gemma", "t5gemma2", "udop", "umt5", "vision-encoder-decoder", "whisper",
)  # fmt: skip

OTHERS: Mapping[str, str] = {
    **dict.fromkeys(_ENCODERS, "is an encoder"),
    **dict.fromkeys(_ENCODER_DECODERS, "has an encoder before its decoder"),
}
