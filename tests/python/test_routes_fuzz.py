"""Every route that docs/openapi.yaml describes: what the server answers is as described, whatever it is asked.

MSPROBE_FUZZ_EXAMPLES sets how many requests of each kind a route gets (4 unless given).
"""

import os
import string

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from served import CALLS, ITEM, MODULE, STEPS, fill, openapi, serving

EXAMPLES = int(os.environ.get("MSPROBE_FUZZ_EXAMPLES", "4"))
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
# What is there, so that not every answer is "no such file".
KNOWN = {
    "file": ["compared.vis.db", "tensors.vis.db", "single.vis.db", "dump_data.trend.db", "broken.vis.db"],
    "step": list(range(STEPS)),
    "rank": [0],
    "name": ["DefaultModel", MODULE, *CALLS],
    "item": [ITEM, "output.0"],
    "partner_item": [ITEM],
    "from": ["", *CALLS],
    "metric": ["forward"],
    "stat": ["max", "mean", "norm"],
    "value": [0, 1],
    "path": ["", "dumps", "dumps/a", "link", ".."],
    "q": ["", "linear", "FORWARD"],
}
BODY = {
    "npu": [MODULE, *CALLS],
    "bench": [MODULE, *CALLS],
    "config": ["compared_0_0.vis.config"],
    "target_path": ["dumps/nothing", "../outside", "link"],
    "output_path": ["out"],
}


def known_first(schema, known):
    """The same schema, but half of the values are some that mean something."""
    return {"anyOf": [{"enum": known}, schema]}


def targeted(document):
    """The document, with values that are in the served directory."""
    for parameter in document["components"]["parameters"].values():
        if parameter["name"] in KNOWN:
            parameter["schema"] = known_first(parameter["schema"], KNOWN[parameter["name"]])
    for path in document["paths"].values():
        for operation in path.values():
            for parameter in operation.get("parameters", []):
                if parameter.get("name") in KNOWN and "anyOf" not in parameter["schema"]:
                    parameter["schema"] = known_first(parameter["schema"], KNOWN[parameter["name"]])
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            for name, values in BODY.items():
                if name in body.get("properties", {}):
                    body["properties"][name] = known_first(body["properties"][name], values)
    convert = document["components"]["schemas"]["ConvertOptions"]["properties"]
    for name in ("target_path", "output_path"):
        convert[name] = {"type": "string", "enum": BODY[name]}
    return document


SCHEMA = schemathesis.openapi.from_dict(targeted(openapi()))
OPERATIONS = [result.ok() for result in SCHEMA.get_all_operations()]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with serving(fill(tmp_path_factory.mktemp("fuzz"))) as running:
        yield running


def fuzz(operation, mode, check):
    """Runs `check` with requests of that kind, the same ones each time."""

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=EXAMPLES < 100,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def run(case):
        check(case)

    run()


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["valid", "invalid"])
@pytest.mark.parametrize("operation", OPERATIONS, ids=[operation.label for operation in OPERATIONS])
def test_answers_are_as_described(server, operation, mode):
    if mode is GenerationMode.NEGATIVE and not list(operation.iter_parameters()) and not operation.body:
        pytest.skip("nothing in such a request can be wrong")
    seen = set()

    def check(case):
        response = case.call(base_url=server.url, headers=server.headers, timeout=60)
        seen.add(response.status_code)
        case.validate_response(response, checks=CHECKS)

    fuzz(operation, mode, check)
    assert server.alive()
    assert seen
    assert not seen & {403} or operation.path.startswith("/api/con"), "the token was sent"


@pytest.mark.parametrize("operation", OPERATIONS, ids=[operation.label for operation in OPERATIONS])
def test_without_the_token_nothing_is_told(server, operation):
    def check(case):
        for token in ({}, {"X-Msprobe-Token": "0" * len(server.token)}):
            case.headers = None
            case.query = {k: v for k, v in (case.query or {}).items() if k != "token"}
            response = case.call(base_url=server.url, headers=token, timeout=60)
            assert response.status_code == 403, (case, response.content)
            assert server.token.encode() not in response.content

    fuzz(operation, GenerationMode.POSITIVE, check)


def test_memory_is_flat(server):
    """The same round of questions again and again; what the first rounds loaded is kept, no more."""

    def round_of_questions():
        for file in KNOWN["file"]:
            for name in (*CALLS, MODULE, "nothing", string.ascii_letters * 50):
                for what in ("node", "children", "links", "path"):
                    assert server.api(what, file=file, step=0, rank=0, name=name).status < 500
            assert server.api("search", file=file, step=0, rank=0, q="l").status < 500

    round_of_questions()
    before = server.memory_mb()
    for _ in range(5):
        round_of_questions()
    assert server.memory_mb() < before + 8


def test_the_server_says_nothing_of_its_own(tmp_path):
    """No request is dropped: the server says so on stderr when it has to."""
    served = tmp_path / "empty"
    served.mkdir()
    with serving(served) as one:
        for path in openapi()["paths"]:
            one.ask(path)
            one.ask(path, body={})
        assert one.alive()
        assert one.stop() == ""
