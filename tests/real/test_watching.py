"""The callback among the transformers Trainer's own: every event that its handler has, on a model that never runs."""

from typing import Any

from torch import nn
from transformers import TrainerCallback
from transformers.trainer_callback import CallbackHandler, TrainerControl, TrainerState

import outlay
from outlay.watching import trainer_callback


def test_the_handler_of_the_trainer_calls_every_event_of_it() -> None:
    bill = outlay.count(
        outlay.load_model("llama-3.1-8b"), outlay.Job(4096, 8), outlay.load_cluster("8xh100-sxm"), outlay.Layout(),
        "hf_trainer",
    )  # fmt: skip
    said = list[str]()
    callback = trainer_callback(bill, after=3, say=said.append)
    handler = CallbackHandler([callback], nn.Linear(1, 1), None, None, None)
    arguments: Any = None
    state, control = TrainerState(), TrainerControl()
    handler.on_init_end(arguments, state, control)
    handler.on_train_begin(arguments, state, control)
    handler.on_epoch_begin(arguments, state, control)
    for step in range(1, 7):
        handler.on_step_begin(arguments, state, control)
        handler.on_substep_end(arguments, state, control)
        handler.on_pre_optimizer_step(arguments, state, control)
        handler.on_optimizer_step(arguments, state, control)
        state.global_step = step
        handler.on_step_end(arguments, state, control)
        handler.on_log(arguments, state, control, {"loss": 1.0})
    handler.on_save(arguments, state, control)
    handler.on_evaluate(arguments, state, control, {})
    handler.on_epoch_end(arguments, state, control)
    handler.on_train_end(arguments, state, control)

    assert isinstance(callback, TrainerCallback)
    assert len(said) == 2 and "STEP" in said[0] and "median of 3 lines" in said[1]
    assert "OUTSIDE   measured" in said[1]  # steps that do nothing are no Llama
