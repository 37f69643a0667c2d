"""The service answers what the model gives, from several threads, says what is wrong with a request, and draws times."""

import json
import warnings
from http.client import HTTPConnection
from pathlib import Path
from threading import Thread

import pytest

import turnout
from turnout_serving import program
from turnout_serving.service import MOST, Service, server

MODEL = str(Path(__file__).with_name("model.pt2"))  # two layers, [rows, 16] to [rows, 4]


@pytest.fixture(params=["", "eager", "xla"])
def engine(request):
    """The name of an engine, or none. The test is skipped where it is not installed."""
    if request.param == "xla":
        pytest.importorskip("jax", reason="jax is not installed")
        turnout.config.set({"plugin.jax.compile_from": 0})  # for all threads
        yield "xla"
        turnout.config.unset("plugin.jax.compile_from")
    else:
        yield request.param


@pytest.fixture
def address(engine):
    """Where a service listens."""
    serving = server(Service(MODEL, engine))
    thread = Thread(target=serving.serve_forever)
    thread.start()
    yield serving.server_address
    serving.shutdown()
    serving.server_close()
    thread.join()


def asked(address, method="POST", body=None):
    connection = HTTPConnection(*address[:2])
    try:
        connection.request(method, "/", body)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def test_answers_are_those_of_the_model(address, engine):
    model = turnout.export.load(MODEL)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # what runs eagerly warns
        for rows in (3, 3, 5, 3, 5):
            x = turnout.randn(rows, 16)
            status, text = asked(address, body=json.dumps({"inputs": [x.tolist()]}))
            assert status == 200
            turnout.testing.assert_close(turnout.tensor(json.loads(text)["outputs"][0]), model(x).detach(), rtol=1e-4, atol=1e-6)
    found = asked(address, "GET")[1]
    assert found == "calls run eagerly" if engine == "" else f"engine  {engine}" in found


def test_requests_come_from_several_threads(address):
    model, found = turnout.export.load(MODEL), {}
    inputs = [turnout.randn(1 + i % 3, 16) for i in range(12)]

    def ask(i):
        found[i] = json.loads(asked(address, body=json.dumps({"inputs": [inputs[i].tolist()]}))[1])["outputs"][0]

    threads = [Thread(target=ask, args=(i,)) for i in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, x in enumerate(inputs):
        turnout.testing.assert_close(turnout.tensor(found[i]), model(x).detach(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("{}", "KeyError: 'inputs'"), ("no", "JSONDecodeError: Expecting value"), ('{"inputs": [[1.0, 2.0]]}', "TraceError: f"),
        ('{"inputs": [[[1, 2], [3]]]}', "Error: "), ("[]", "TypeError: list indices"),
    ],
)  # fmt: skip
def test_a_request_that_the_model_cannot_take_is_said_to_be_wrong(address, body, words):
    status, text = asked(address, body=body)
    assert status == 400
    assert words in text
    assert asked(address, body=json.dumps({"inputs": [[[0.5] * 16]]}))[0] == 200  # it goes on


def test_a_request_that_is_too_large_is_not_read(address):
    connection = HTTPConnection(*address[:2])
    connection.putrequest("POST", "/")
    connection.putheader("Content-Length", str(MOST + 1))
    connection.endheaders()
    response = connection.getresponse()
    assert (response.status, response.read().decode()) == (400, f"ValueError: a request has at most {MOST} bytes")
    connection.close()


def test_the_command_measures_and_draws(tmp_path, capsys):
    file = tmp_path / "times.svg"
    program.main([MODEL, "--engine", "eager", "--requests", "6", "--shape", "4,16", "--chart", str(file)])
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["eager", "compiled by eager"]
    assert "<svg" in file.read_text("utf-8")
