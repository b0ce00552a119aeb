"""What autograd keeps of one layer of GPT-3's kind, on real tensors, against the textbook's formula and our rows."""

import pytest

from outlay.verify.comparisons.saved import compare_saved

SHAPES = [(2, 128, 256), (1, 256, 128), (4, 64, 256)]  # batch, sequence, hidden


@pytest.mark.parametrize(("batch", "sequence", "hidden"), SHAPES)
def test_a_gpt_layer_with_every_score_written_out_keeps_34sbh_and_5as2b(batch: int, sequence: int, hidden: int) -> None:
    textbook, rows = compare_saved(batch, sequence, hidden, heads=8)

    assert textbook.measured == 34 * sequence * batch * hidden + 5 * 8 * sequence**2 * batch
    assert textbook.agrees() and rows.agrees()
    assert rows.measured == textbook.measured + 16 * sequence * batch
