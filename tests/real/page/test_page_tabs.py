"""The tabs Plan, Compare and Check, and what leaves the page, as a person uses them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from asking import WORDS, Opening, address, answered, flags

CASES = Path(__file__).parents[2] / "check_cases"
JOB = {name: WORDS[name] for name in ("model", "on", "seq", "batch")}
GIB = 2**30


def text_of(page: Any, selector: str) -> str:
    """The text of an element, blanks folded."""
    return " ".join(page.text_content(selector).split())


def cells(row: Any) -> list[str]:
    """The texts of a row."""
    return [" ".join(each.split()) for each in row.locator("th, td").all_text_contents()]


def test_a_plan_is_searched_and_its_best_is_that_of_the_terminal(visit: Opening) -> None:
    plan = answered("plan", *flags(JOB))
    page = visit(address(JOB, "plan"))
    page.wait_for_selector("table.best")
    page.wait_for_function("() => document.querySelector('#plan .status').textContent.startsWith('Searched')")

    for row, one in zip(page.locator("table.best tbody tr").all(), plan["best"], strict=True):
        found = cells(row)
        layout = one["layout"]
        names = ("tp", "cp", "pp", "vpp")
        assert found[1:5] == [str(layout[name]) for name in names]
        assert float(found[7]) == pytest.approx(one["bill"]["step"]["seconds"], abs=0.006)
        assert float(found[9]) == pytest.approx(one["bill"]["memory"]["peak_bytes"] / GIB, abs=0.06)
    shown = text_of(page, "#plan")
    assert f"{plan['search']['legal']:,} legal layouts" in shown
    for each in plan["rejected"]:
        assert each["rule"] in shown and f"{each['count']:,}" in shown
    slow = 2 * min(each["seconds"] for each in plan["frontier"])
    assert page.locator("#plan circle.frontier").count() == sum(each["seconds"] <= slow for each in plan["frontier"])

    page.click('[data-tools="frontier"] button >> nth=0')
    assert page.locator("#table-frontier tbody tr").count() == len(plan["frontier"])
    page.fill("#filter", "pp=4 vpp>1")
    kept = sum(one["layout"]["pp"] == 4 and one["layout"]["vpp"] > 1 for one in plan["best"])
    assert page.locator("table.best tbody tr").count() == kept
    page.fill("#filter", "")
    page.click('table.best button[aria-label="take layout 1 to the bill"]')
    page.wait_for_url("**/bill?**")
    page.wait_for_function("() => document.querySelector('#answer').textContent.includes('STEP')")
    best = f"{plan['best'][0]['bill']['step']['seconds']:.1f} s"
    page.wait_for_function("said => document.querySelector('#answer').textContent.includes(said)", arg=best)


def test_a_narrowed_plan_is_a_link(visit: Opening) -> None:
    page = visit(address({**JOB, "tp": "8", "pp": "1..4"}, "plan"))
    page.wait_for_selector("table.best")

    assert page.input_value("#p-tp") == "8" and page.input_value("#p-pp") == "1..4"
    assert "tp=8" in page.url
    plan = answered("plan", *flags(JOB), "--tp", "8", "--pp", "1..4")
    assert f"{plan['search']['legal']:,} legal layouts" in text_of(page, "#plan")


def test_the_points_of_the_frontier_are_reached_by_keys(visit: Opening) -> None:
    page = visit(address({**JOB, "space": "lean"}, "plan"))
    page.wait_for_selector("#plan circle.frontier")
    page.focus("#plan svg[role=application]")
    page.keyboard.press("ArrowRight")

    said = text_of(page, "#frontier-readout")
    assert re.search(r"tp \d|dp \d", said) and "GiB" in said and "a step" in said
    page.keyboard.press("Enter")
    page.wait_for_url("**/bill?**")


def test_a_search_is_stopped_and_keeps_what_it_found(visit: Opening) -> None:
    words = {"model": "mixtral-8x22b", "on": "64xh100-sxm", "seq": "8192", "batch": "512", "space": "full"}
    page = visit(address(words, "plan"))
    page.wait_for_selector("#plan .so-far", timeout=60_000)
    page.wait_for_function("() => /best so far: /.test(document.querySelector('#plan .status').textContent)")
    assert text_of(page, "#plan button.main") == "Stop"
    page.click("#plan button.main")
    page.wait_for_function("() => document.querySelector('#plan .status').textContent.startsWith('Stopped')")

    assert text_of(page, "#plan button.main") == "Search"
    assert "The best so far stands below" in text_of(page, "#plan .status")
    seconds = re.search(r"STEP ([\d.]+ s)", text_of(page, "#plan .so-far"))
    peak = re.search(r"MEMORY ([\d.]+ GiB)", text_of(page, "#plan .so-far"))
    assert text_of(page, "#plan .so-far").startswith("\u2713BEST SO FAR") and seconds and peak
    page.click("#plan .so-far button.apply")  # the server is free at once, and counts the same
    page.wait_for_selector("#answer [data-verdict=fits]")
    page.wait_for_function(f"() => document.querySelector('#answer').textContent.includes('{seconds[1]}')")
    assert peak[1] in text_of(page, "#answer")


def test_a_search_whose_connection_is_lost_keeps_the_best_so_far(visit: Opening) -> None:
    """The stream ends behind one word of progress."""
    first = answered("plan", *flags(JOB), "--space", "lean")["best"][0]
    best = {"layout": first["layout"], "verdict": "fits", "seconds": 98.76, "peak_bytes": 50 * GIB}
    word = {"done": 10, "of": None, "share": None, "seconds_left": None, "best": best}
    page = visit("/bill?" + address(JOB).split("?")[1])
    stream = {"content_type": "text/event-stream", "body": f"event: progress\ndata: {json.dumps(word)}\n\n"}
    page.route("**/api/plan", lambda route: route.fulfill(**stream))
    page.click("nav [data-tab=plan]")
    page.wait_for_selector("#plan .faults")

    assert "without an answer" in text_of(page, "#plan .faults")
    assert "The search ended before its answer. The best so far stands below" in text_of(page, "#plan .status")
    assert "98.8 s" in text_of(page, "#plan .so-far") and "50" in text_of(page, "#plan .so-far")
    page.unroute("**/api/plan")
    page.click("#plan button.main")
    page.wait_for_selector("table.best")
    assert page.locator("#plan .so-far, #plan .faults").count() == 0


def test_two_layouts_are_compared_item_by_item(visit: Opening) -> None:
    page = visit(address(WORDS))
    page.wait_for_selector("#answer .why")
    page.fill("#f-tp", "4")
    page.fill("#f-pp", "8")
    page.wait_for_url("**pp=8**")
    page.wait_for_function("() => document.querySelector('#tried-count').textContent === '(2)'")
    page.click("nav [data-tab=compare]")
    page.wait_for_selector("#compare .items")

    record = answered("compare", "tp=8,pp=4", "tp=4,pp=8", *flags(JOB))
    listed = [cells(row) for row in page.locator("#compare .items tbody tr").all()]
    found = {row[0]: row for row in listed}
    items = {item["name"]: item for item in record["items"]}
    assert found["activations"][1:3] == [f"{items['memory.activations'][side] / GIB:.1f} GiB" for side in "ab"]
    assert found["step"][1:3] == [f"{items['step_seconds'][side]:.2f} s" for side in "ab"]
    assert found["tensor-parallel exchange"][4] == f"{items['step.tensor']['ratio']:.3f}"
    assert len(listed) == len(items)
    assert "tp 8 → 4" in text_of(page, "#compare") and "B FASTER" in text_of(page, "#compare")
    page.wait_for_selector(".pair-diagram svg >> nth=1")
    ends = page.locator(".pair-diagram svg text.end.small").all_text_contents()
    assert ends.count(ends[0]) >= 2 or len({end for end in ends if " s" in end}) >= 1


def test_a_comparison_is_a_link(visit: Opening) -> None:
    page = visit(address({**WORDS, "b": "tp=4,pp=8,overlap-tp=true"}, "compare"))
    page.wait_for_selector("#compare .items")

    record = answered("compare", "tp=8,pp=4", "tp=4,pp=8,overlap-tp=true", *flags(JOB))
    items = {item["name"]: item for item in record["items"]}
    found = {cells(row)[0]: cells(row) for row in page.locator("#compare .items tbody tr").all()}
    assert found["step"][1:3] == [f"{items['step_seconds'][side]:.2f} s" for side in "ab"]
    assert "b=tp%3D4,pp%3D8,overlap-tp%3Dtrue" in page.url


def test_a_script_is_checked_where_it_stands(visit: Opening) -> None:
    script = (CASES / "common_errors.sh").read_text()
    record = answered("check", str(CASES / "common_errors.sh"))
    page = visit(address(WORDS, "check"))
    page.fill("#check-text", script)
    page.click("#check form button.main")
    page.wait_for_selector(".finding")

    shown = text_of(page, "#check")
    assert record["says"] in shown
    for each in record["findings"]:
        assert each["code"] in shown and each["what"] in shown and each["rule"] in shown and each["fix"] in shown
    marks = page.locator(".finding mark").all_text_contents()
    assert "--tensor-model-parallel-size 4" in marks and "--fp16" in " ".join(marks)


def test_a_pasted_script_opens_the_check_and_is_shown_as_text(visit: Opening) -> None:
    page = visit(address(WORDS), expected="422")  # it says too little to be checked
    page.wait_for_selector("#answer .why")
    script = "torchrun pretrain_gpt.py \\\n  --tensor-model-parallel-size 4 '<img src=x onerror=alert(1)>'\n"
    page.evaluate(
        "text => { const data = new DataTransfer(); data.setData('text', text);"
        " document.body.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true })); }",
        script,
    )
    page.wait_for_url("**/check**")
    page.wait_for_selector("#check .answer, #check .faults")

    assert page.input_value("#check-text") == script
    assert page.locator("img").count() == 0


def test_the_file_of_a_framework_is_that_of_the_terminal(visit: Opening) -> None:
    page = visit(address(WORDS))
    page.wait_for_selector("#answer .why")
    page.click("#open-export")
    page.wait_for_selector("#dialog pre")

    assert page.text_content("#dialog pre") == answered("export", "megatron", *flags(WORDS))["text"]
    page.select_option("#framework", "torchtitan")
    expected = answered("export", "torchtitan", *flags(WORDS))
    page.wait_for_function(
        "name => document.querySelector('#dialog b')?.textContent.includes(name)", arg=expected["file"]
    )
    assert page.text_content("#dialog pre") == expected["text"]
    with page.expect_download() as saved:
        page.click('#dialog button:text-is("JSON")')
    assert '"schema": "outlay.bill.1"' in Path(saved.value.path()).read_text()
