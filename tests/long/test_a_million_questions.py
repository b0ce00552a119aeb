"""A sweep of 10^6 questions, killed three times and started again, equals the one that ran to its end: a minute."""

from pathlib import Path

import polars as pl

from sweeping import kill, parts, run, stopped

MILLION = """
[study]
kind = "count"
model = ["llama-3.1-8b", "llama-3.1-70b", "mixtral-8x7b", "deepseek-v3"]
on = ["64xh100-sxm", "128xh100-sxm", "256xh100-sxm", "512xh100-sxm"]
seq = [4096, 8192]
batch = [512, 1024]
tokens = "1T"
tp = [1, 2, 4, 8]
cp = [1, 2]
pp = [1, 2, 4, 8, 16]
vpp = [1, 2, 4]
zero = [0, 1, 2, 3]
mbs = [1, 2, 4, 8]
recompute = ["none", "selective", "full"]
price = [1.5, 2.0, 2.5]
"""


def test_a_million_questions_killed_three_times_are_the_same_rows(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(MILLION)
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    done = run(tmp_path, "sweep", "s.toml", "--output", "whole")
    assert done.returncode == 0, done.stderr
    words = ["sweep", "s.toml", "--output", "broken"]
    codes = [stopped(tmp_path, broken, more, words, kill)[0] for more in (1, 7, 5)]
    last = run(tmp_path, "sweep", "s.toml", "--output", "broken")

    assert codes == [-9, -9, -9]
    assert last.stdout == done.stdout.replace("whole/", "broken/")
    rows = pl.read_parquet(sorted(broken.glob("*.parquet")))
    assert rows.height >= 10**6
    assert rows["question"].to_list() == list(range(rows.height))
    assert rows.equals(pl.read_parquet(sorted(whole.glob("*.parquet"))))
    assert parts(broken) == parts(whole)
