"""What a server must not do: read or write files, answer other sites, take all the memory, say where its code is."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from serving import HEADERS, WORDS, served, workers_of

Server = tuple[httpx.Client, "subprocess.Popen[bytes]"]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with served() as made:
        yield made


@pytest.fixture(scope="module")
def client(server: Server) -> httpx.Client:
    return server[0]


def codes(said: httpx.Response) -> list[str]:
    return [each["code"] for each in said.json()["errors"]]


def count(client: httpx.Client, words: dict[str, Any], **more: Any) -> httpx.Response:
    return client.post("/api/count", json={"words": words, **more})


# --- files ----------------------------------------------------------------------------------------------------------

PATHS = [
    {"model": "/etc/passwd"},
    {"model": "../../etc/passwd"},
    {"model": "config.json"},
    {"model": "."},
    {"model": "-"},
    {"model": "file:///etc/passwd"},
    {"on": "/etc/hosts"},
    {"on": "my.toml"},
    {"on": "64xmy.TOML"},
    {"on": "8,16x../my.toml"},
    {"beside": "/etc/passwd:teacher"},
    {"beside": "config.json:teacher"},
    {"beside": "..:teacher"},
    {"beside": "llama-3.1-8b:teacher, .:reference"},
    {"config": "/etc/passwd"},
    {"profile": "my.toml"},
]


@pytest.mark.parametrize("words", PATHS, ids=str)
def test_no_word_is_a_path(client: httpx.Client, words: dict[str, str]) -> None:
    said = count(client, WORDS | words)

    assert said.status_code == 422
    assert said.json()["errors"][0]["flag"] == next(iter(words))


@pytest.mark.parametrize("word", ["svg", "html", "perfetto", "csv", "order", "times", "force"])
def test_a_drawing_writes_and_reads_no_file(client: httpx.Client, tmp_path: Path, word: str) -> None:
    path = tmp_path / "f"

    said = client.post("/api/draw", json={"words": {"pp": "4", "micro-batches": "8", word: str(path)}})

    assert said.status_code == 422 and codes(said) == ["WEB002"]
    assert not path.exists()


def test_the_answer_is_always_json(client: httpx.Client) -> None:
    assert codes(count(client, WORDS | {"json": True})) == ["WEB002"]
    assert codes(count(client, WORDS | {"debug": True})) == ["WEB002"]


OPENED = """
import json, sys
from outlay.cli.desk.answers import answer
from outlay.errors import InputError
opened = []
sys.addaudithook(lambda name, about: name == "open" and opened.append(str(about[0])))
for command, words in json.loads(sys.argv[1]):
    try:
        answer(command, {"words": words})
    except InputError:
        pass
print(json.dumps(opened))
"""


def test_a_worker_opens_no_file_that_a_question_names(tmp_path: Path) -> None:
    """Every file that a worker opens for such questions is a part of Python or of the product, or a device."""
    (tmp_path / "llama-3.1-70b").write_text("{}")
    (tmp_path / "h100-sxm.toml").write_text("")
    asked = [("count", WORDS | words) for words in PATHS] + [("plan", WORDS | {"model": "llama-3.1-70b,x.json"})]
    asked += [("draw", WORDS | {"order": "x.csv"}), ("export", WORDS | {"framework": "/etc/passwd"})]
    source = str(Path(__file__).parent.parent / "src")
    line = [sys.executable, "-P", "-c", OPENED, json.dumps(asked)]
    env = os.environ | {"PYTHONPATH": source}
    done = subprocess.run(line, capture_output=True, text=True, check=True, cwd=tmp_path, env=env)
    ours = (source, sys.prefix, sys.base_prefix, "/dev/", "/sys/", "/proc/", "/usr/lib/python")

    named = [path for path in json.loads(done.stdout) if not path.startswith(ours) and not path.isdigit()]

    assert [path for path in named if re.search(r"passwd|hosts|\\.toml|config\\.json|llama|x\\.", path)] == []
    assert [path for path in named if path.startswith(str(tmp_path))] == []


@pytest.mark.parametrize(
    "path", ["/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static//etc/passwd"]
)
def test_static_files_are_those_of_the_page(client: httpx.Client, path: str) -> None:
    said = client.send(
        httpx.Request("GET", str(client.base_url).rstrip("/") + path, extensions={"target": path.encode()})
    )

    assert said.status_code == 404


# --- other sites ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "localhost.evil.example", ""]
)
def test_another_name_for_this_address_is_refused(client: httpx.Client, host: str) -> None:
    for said in (client.get("/bill", headers={"host": host}), client.get("/api/models", headers={"host": host})):
        assert said.status_code in (400, 403)
        assert "outlay.bill" not in said.text


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1", "[::1]:8000", "192.168.1.7:8000"])
def test_an_address_in_figures_and_localhost_are_answered(client: httpx.Client, host: str) -> None:
    assert client.get("/static/placeholders.txt", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:1"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"},
    ],
    ids=str,
)
def test_a_post_from_another_site_is_refused(client: httpx.Client, headers: dict[str, str]) -> None:
    said = client.post("/api/count", json={"words": WORDS}, headers=headers)

    assert said.status_code == 403 and codes(said) == ["WEB006"]


def test_a_post_of_our_own_page_is_answered(client: httpx.Client) -> None:
    own = {"origin": str(client.base_url).rstrip("/"), "sec-fetch-site": "same-origin"}

    assert client.post("/api/count", json={"words": WORDS}, headers=own).status_code == 200


def test_a_link_from_another_site_opens_and_a_picture_from_there_does_not(client: httpx.Client) -> None:
    site = {"sec-fetch-site": "cross-site"}

    opened = client.get("/bill", headers=site | {"sec-fetch-mode": "navigate", "sec-fetch-dest": "document"})
    shown = client.get("/bill", headers=site | {"sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"})

    assert (opened.status_code, shown.status_code) == (200, 403)


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_what_a_form_can_send_is_no_question(client: httpx.Client, kind: str) -> None:
    said = client.post("/api/count", content=json.dumps({"words": WORDS}), headers={"content-type": kind})

    assert said.status_code == 415 and codes(said) == ["WEB007"]


@pytest.mark.parametrize(
    "path", ["/", "/bill", "/docs", "/openapi.json", "/api/models", "/static/page.html", "/nowhere"]
)
def test_every_answer_carries_the_headers_of_safety(client: httpx.Client, path: str) -> None:
    headers = client.get(path).headers

    assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "server" not in headers and "access-control-allow-origin" not in headers


# --- bodies ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    ["", "{", "null", "[]", "7", '"x"', '{"words": 7}',  '{"words": {"tp": [1]}}', '{"words": {"tp": null}}',
     '{"more": 1}',
     '{"words": {"tp": NaN}}', '{"words": {"tp": 1e999}}', '{"config": 7}', '{"config": []}', "[" * 100_000, "\\ud800",
     '{"words": {"seq": ' + "9" * 5_000 + "}}", '{"other": {"other": {}}}', '{"file": {"name": "x"}}'],
    ids=lambda body: body[:24],
)  # fmt: skip
def test_a_body_that_is_no_question_is_a_fault(client: httpx.Client, body: str) -> None:
    said = client.post("/api/count", content=body.encode(), headers=HEADERS)

    assert 400 <= said.status_code < 500
    assert codes(said)


def test_bytes_that_are_no_text_are_a_fault(client: httpx.Client) -> None:
    assert client.post("/api/count", content=b'{"words": {"model": "\xff"}}', headers=HEADERS).status_code in (400, 422)


def test_a_body_of_more_than_a_mebibyte_is_refused(client: httpx.Client) -> None:
    said = client.post("/api/count", content=b" " * (2**20 + 1), headers=HEADERS)

    assert said.status_code == 413 and codes(said) == ["WEB003"]


def test_a_body_that_hides_its_size_is_refused(client: httpx.Client) -> None:
    parts = (b" " * 2**16 for _ in range(20))

    said = client.post("/api/count", content=parts, headers=HEADERS)

    assert said.status_code == 413 and codes(said) == ["WEB003"]


@pytest.mark.parametrize(
    "value",
    [
        "9" * 400,
        "1e400",
        "-1",
        "0",
        "nan",
        "١٢",
        "1e18",
        "99999999999x",
        "\x00",
        "\ud800".encode("utf-16", "surrogatepass").hex(),
    ],
)
@pytest.mark.parametrize("word", ["tp", "seq", "batch", "pp", "mbs", "on", "tokens"])
def test_an_enormous_or_senseless_number_is_a_fault_or_a_broken_rule(
    client: httpx.Client, word: str, value: str
) -> None:
    said = count(client, WORDS | {word: value})

    assert said.status_code in (200, 422)
    assert said.json().get("violations") or codes(said) if said.status_code == 422 else said.json()["schema"]


def test_an_unknown_name_is_said_and_never_replaced(client: httpx.Client) -> None:
    said = count(client, WORDS | {"model": "llama-9-70b", "on": "64xh900", "tpp": "8"})

    assert said.status_code == 422
    assert {each.get("flag") for each in said.json()["errors"]} >= {"model", "tpp"}
    page = client.get("/bill", params=WORDS | {"model": "llama-9-70b"})
    assert page.status_code == 422 and "no model is called" in page.text and "llama-9-70b" in page.text


def test_all_that_is_wrong_is_said_at_once(client: httpx.Client) -> None:
    said = count(client, WORDS | {"tp": "x", "seq": "y", "engine": "z"}).json()

    assert {each.get("flag") for each in said["errors"]} == {"tp", "seq", "engine"}


def test_no_fault_says_where_our_code_is(client: httpx.Client) -> None:
    texts = [client.get("/nowhere").text, client.post("/api/count", content=b"{", headers=HEADERS).text]
    texts += [count(client, WORDS | words).text for words in PATHS]
    texts += [count(client, {}, config=config).text for config in ({}, {"model_type": "llama"}, {"model_type": ["x"]})]

    assert not [text for text in texts if re.search(r"Traceback|site-packages|\.py\b|outlay-desk|src/outlay", text)]


# --- markup ---------------------------------------------------------------------------------------------------------

MARKUP = '"><script>alert(1)</script><img src=x onerror=alert(2)>'


def test_markup_in_an_address_shows_as_text(client: httpx.Client) -> None:
    for word in ("model", "on", "tp", "zero", "any-word"):
        page = client.get("/bill", params=WORDS | {word: MARKUP})

        assert "<script>alert" not in page.text and "<img" not in page.text


def test_markup_in_a_config_shows_as_text(client: httpx.Client, tmp_path: Path) -> None:
    config = {"model_type": "llama", "_name_or_path": MARKUP, "hidden_size": 512, "num_hidden_layers": 2,
              "num_attention_heads": 8, "intermediate_size": 1024, "vocab_size": 1000}  # fmt: skip

    drawn = client.post(
        "/api/draw", json={"words": {"on": "2xh100-sxm", "pp": "2", "batch": "8", "seq": "512"}, "config": config}
    )

    assert drawn.status_code == 200
    assert "<script>alert" not in drawn.json()["svg"] and "<img" not in drawn.json()["svg"]


# --- the server -----------------------------------------------------------------------------------------------------


def test_a_port_in_use_is_one_clear_fault_with_the_next_free_one() -> None:
    with socket.socket() as at:
        at.bind(("127.0.0.1", 0))
        at.listen()
        port = at.getsockname()[1]
        line = [sys.executable, "-P", "-m", "outlay", "serve", "--port", str(port), "--json"]
        done = subprocess.run(line, capture_output=True, text=True, timeout=60)

    (fault,) = json.loads(done.stdout)["errors"]
    assert done.returncode == 2
    assert fault["code"] == "WEB009" and str(port) in fault["what"]
    free = int(fault["fix"].removeprefix("--port "))
    assert port < free <= port + 100


def test_a_server_without_its_packages_says_which_extra_it_needs() -> None:
    script = "import sys; sys.modules['fastapi'] = None; from outlay.cli.main import main; sys.exit(main(LINE))"
    script = script.replace("LINE", "['serve', '--json']")
    done = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True, timeout=60)

    (fault,) = json.loads(done.stdout)["errors"]
    assert done.returncode == 2
    assert fault["code"] == "WEB008" and "outlay[web]" in fault["fix"] and "fastapi" in fault["got"]


def test_a_worker_that_dies_is_replaced(server: Server) -> None:
    client, process = server
    count(client, WORDS)
    before = workers_of(process)
    for worker in before:
        os.kill(worker, signal.SIGKILL)

    statuses = [count(client, WORDS).status_code for _ in range(len(before) + 1)]

    assert statuses[-1] == 200
    assert set(statuses) <= {200, 500}  # one that was asked at that moment has no answer


SLOW = {"model": "mixtral-8x22b", "on": "64xh100-sxm", "seq": "8192", "batch": "512", "space": "full"}  # many seconds


def test_a_search_whose_connection_closes_stops_within_half_a_second(server: Server) -> None:
    client, process = server
    headers = {"accept": "text/event-stream"}
    with client.stream("POST", "/api/plan", json={"words": SLOW}, headers=headers) as events:
        first = next(events.iter_lines())
        before = set(workers_of(process))
    left = time.perf_counter()
    while before <= set(workers_of(process)) and time.perf_counter() - left < 5:
        time.sleep(0.005)

    assert first == "event: progress"
    assert time.perf_counter() - left <= 0.5
    assert count(client, WORDS).status_code == 200


def test_a_search_tells_its_progress_and_then_its_answer(client: httpx.Client) -> None:
    words = {"model": "llama-3.1-70b", "on": "64xh100-sxm", "seq": "8192", "batch": "512", "space": "full", "best": "2"}
    with client.stream("POST", "/api/plan", json={"words": words}, headers={"accept": "text/event-stream"}) as events:
        text = "".join(events.iter_text())

    said = [block.partition("\n") for block in text.strip().split("\n\n")]
    kinds = [kind for kind, _, _ in said]
    assert kinds[-1] == "event: answer" and set(kinds[:-1]) <= {"event: progress"}
    told, answer = (json.loads(said[place][2].removeprefix("data: ")) for place in (-2, -1))
    assert answer["schema"] == "outlay.plan.1"
    assert told["best"]["layout"] == answer["best"][0]["layout"]
    assert (told["best"]["verdict"], told["share"]) == ("fits", 1.0)


def test_a_search_that_cannot_be_read_says_so_as_an_event(client: httpx.Client) -> None:
    said = client.post("/api/plan", json={"words": {"model": "nothing"}}, headers={"accept": "text/event-stream"})

    assert said.text.startswith("event: errors\ndata: ")
    assert "MOD007" in said.text


def test_an_interrupt_ends_the_server_and_its_workers() -> None:
    with served() as (client, process):
        client.get("/")
        workers = workers_of(process)
        process.send_signal(signal.SIGINT)
        code = process.wait(20)
    left = time.perf_counter()
    while any(Path(f"/proc/{pid}").exists() for pid in workers) and time.perf_counter() - left < 10:
        time.sleep(0.05)

    assert code == 0 and workers
    assert not any(Path(f"/proc/{pid}").exists() for pid in workers)
