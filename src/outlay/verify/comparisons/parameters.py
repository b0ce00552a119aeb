"""Parameters of a model against the model that transformers builds: on the meta device, so of any size."""

from ...model.model import Model
from ...undivided import parameters
from ..comparison import Comparison
from ..models.configs import BESIDE, Config, built

UNREAD = "with matrices of experts that do nothing: the class allocates them and never reads them"


def parameters_built(config: Config) -> int:
    """Parameters of the language model that transformers builds from a config: tied ones once, buffers never."""
    import torch

    with torch.device("meta"):
        model = built(config)
    named = model.named_parameters()
    return sum(weight.numel() for name, weight in named if not any(part in name for part in BESIDE))


def unread(model: Model) -> int:
    """Two of three matrices of an expert that does nothing: LongCat's class allocates them, and never reads them."""
    if model.family != "longcat_flash":
        return 0
    layers = (model.blocks[kind].experts for kind in model.pattern)
    return sum(2 * part.spare * part.expert_width * model.hidden for part in layers if part)


def compare_parameters(model: Model, config: Config) -> tuple[Comparison, ...]:
    """All parameters of the language model, exact. What stands beside it (`extra_parameters`) is in no config."""
    idle = unread(model)
    counted = parameters(model).total - model.extra_parameters + idle
    return (Comparison("parameters", counted, parameters_built(config), "parameters", UNREAD if idle else ""),)
