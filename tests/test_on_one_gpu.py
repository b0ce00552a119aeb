"""The script of one GPU, with a command in place of outlay that says what it was asked."""

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "benchmarks" / "on_one_gpu.sh"
STAND_IN = """\
#!/bin/sh
echo "$@" >>"$ASKED"
case $1 in
calibrate)
    while [ $# -gt 0 ]; do [ "$1" = --output ] && out=$2; shift; done
    [ -n "${NO_PROFILE:-}" ] && exit 2
    printf 'name = "one-gpu"\\n\\n[accelerator]\\nname = "h200-sxm"\\n' >"$out"
    [ -n "${MACHINE:-}" ] && echo 'name = "own"' >"${out%.toml}-machine.toml"
    echo '{}' ;;
verify) echo '{}'; exit "${VERIFIED:-1}" ;;
--version) echo "outlay 0" ;;
esac
"""


def run(folder: Path, *words: str, **environment: str) -> tuple[int, list[str], list[str], str]:
    """Run the script: its exit, what was asked, the files that it kept, and what it said."""
    stand_in, asked = folder / "outlay", folder / "asked"
    stand_in.write_text(STAND_IN)
    stand_in.chmod(0o755)
    asked.write_text("")
    kept = folder / "kept"
    done = subprocess.run(
        ["sh", str(SCRIPT), *(words or (str(kept),))],
        env={"PATH": os.environ["PATH"], "TMPDIR": str(folder), "OUTLAY": str(stand_in), "ASKED": str(asked)}
        | environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    files = sorted(str(file.relative_to(kept)) for file in kept.rglob("*") if file.is_file())
    return done.returncode, asked.read_text().splitlines(), files, done.stderr


def test_a_real_run_keeps_its_profile_and_every_step_by_both_constants(tmp_path: Path) -> None:
    code, asked, files, _ = run(tmp_path)
    names = {file.split("/")[1] for file in files}
    steps = {f"step-{number}-{by}.json" for number in (1, 2, 3) for by in ("catalogue", "profile")}

    assert code == 0
    assert names == {"profile.toml", "calibrate.json", "about.txt", *steps}
    assert all(file.startswith("h200-sxm-2") and ".part" not in file for file in files)
    assert asked[0].startswith("calibrate llama-3.1-8b --seq=4096 --ranks 1 ")
    assert all("--only step --on 1xh200-sxm" in each for each in asked[1:7])
    assert sum("--profile" in each for each in asked[1:7]) == 3


def test_a_device_that_the_catalogue_lacks_is_counted_by_its_own_file(tmp_path: Path) -> None:
    _, asked, files, _ = run(tmp_path, MACHINE="1")

    assert "-machine.toml" in asked[1] and files[0].startswith("machine-2")


def test_a_dry_run_runs_a_small_model_on_a_cpu_and_keeps_nothing(tmp_path: Path) -> None:
    before = {"outlay", "asked"}
    code, asked, files, said = run(tmp_path, "--dry-run")

    assert code == 0 and not files and "nothing is kept" in said
    assert "small-llama.json" in asked[0] and all("--device=cpu" in each for each in asked[1:3])
    assert {file.name for file in tmp_path.iterdir()} == before


def test_a_step_that_does_not_run_is_said_and_what_ran_is_kept_apart(tmp_path: Path) -> None:
    code, _, files, said = run(tmp_path, VERIFIED="2")

    assert code == 1 and "ended with 2" in said
    assert files and all(".part/" in file for file in files)


def test_without_a_profile_nothing_else_runs_and_nothing_is_kept(tmp_path: Path) -> None:
    code, asked, files, said = run(tmp_path, NO_PROFILE="1")

    assert (code, len(asked), files) == (1, 1, []) and "no profile" in said


def test_what_no_time_is_left_for_is_not_run(tmp_path: Path) -> None:
    code, asked, files, said = run(tmp_path, LIMIT="0")

    assert (code, asked, files) == (1, [], []) and "no time is left" in said


@pytest.mark.parametrize("word", ["--dry", "-h"])
def test_another_flag_is_refused(tmp_path: Path, word: str) -> None:
    code, asked, _, said = run(tmp_path, word)

    assert code == 2 and not asked and "--dry-run" in said
