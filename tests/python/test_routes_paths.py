"""No route reaches a file outside of the served directory, whichever of its parameters names a file."""

import http.client
import urllib.parse

import pytest
from served import CALLS, MODULE, fill, openapi, serving

GRAPH = {"file": "compared.vis.db", "step": 0, "rank": 0}
VALID = {
    "name": MODULE,
    "item": "input.0",
    "metric": "forward",
    "stat": "max",
    "dimension": "step",
    "value": 0,
}
VALID_BODY = {"target_path": "dumps/a/step0", "output_path": "out", "npu": CALLS[0], "bench": CALLS[0], "id": 1}
# Texts that name nothing in the file system.
NO_PATHS = {
    *(
        "side",
        "name",
        "q",
        "level",
        "leaf",
        "sort",
        "from",
        "metric",
        "stat",
        "dimension",
        "tags",
        "item",
        "partner_item",
        "fold",
        "cell",
        "labels",
    ),
    *("npu", "bench", "revision", "template", "engine", "order", "file_type"),
}
# What may be made anew: any name below the directory will do.
MADE = {"output_path", "suggest_mapping"}
# Where each is to lead to, outside: secret.vis.db, secret.trend.db, secret.yaml, secret.vis.config.
SUFFIXES = (".vis.db", ".trend.db", ".yaml", ".vis.config", "")


def attacks(outside):
    """Paths that lead out."""
    for suffix in SUFFIXES:
        name = f"secret{suffix}" if suffix else ""
        yield f"../outside/{name}"
        yield f"./../outside/{name}"
        yield f"dumps/../../outside/{name}"
        yield f"dumps/a/../../../outside/{name}"
        yield f"..//outside//{name}"
        yield f"{outside}/{name}"
        yield f"//{outside}/{name}"
        yield f"link/{name}"
        yield f"link/../link/{name}"
        yield f"link_{name or 'secret.yaml'}"
        yield f"compared.vis.db\0../outside/{name}"
        yield f"compared.vis.db/../../outside/{name}"
        yield "a" * 5000 + suffix


def disguised(outside):
    """Paths that would lead out if they were decoded once more; as they are they name nothing."""
    for suffix in SUFFIXES:
        name = f"secret{suffix}" if suffix else ""
        yield f"%2e%2e/outside/{name}"
        yield f"%2e%2e%2foutside%2f{name}"
        yield f"..\\outside\\{name}"
        yield f"file://{outside}/{name}"
        yield f"~/{name}"
        yield "a/" * 2000 + name
        yield f"\udcc0\udcae\udcc0\udcae/outside/{name}"


def strings(schema, components):
    """The text schemas in a schema, also those in lists and choices."""
    if "$ref" in schema:
        schema = components[schema["$ref"].rsplit("/", 1)[1]]
    if schema.get("type") == "string":
        yield schema
    for part in (*schema.get("anyOf", []), *([schema["items"]] if "items" in schema else [])):
        yield from strings(part, components)


def operations():
    document = openapi()
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield document, path, method.upper(), operation


def resolved(document, parameter):
    return (
        document["components"]["parameters"][parameter["$ref"].rsplit("/", 1)[1]] if "$ref" in parameter else parameter
    )


def members_of(document, operation):
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    if "$ref" in body:
        body = document["components"]["schemas"][body["$ref"].rsplit("/", 1)[1]]
    return body.get("properties", {})


def texts_of(document, operation):
    """(where, name, whether it is a path, whether it is in a list) of every text that an operation takes."""
    schemas = document["components"]["schemas"]
    for parameter in operation.get("parameters", []):
        parameter = resolved(document, parameter)
        for schema in strings(parameter["schema"], schemas):
            yield "query", parameter["name"], schema.get("format") == "path", False
    for name, member in members_of(document, operation).items():
        for schema in strings(member, schemas):
            yield "body", name, schema.get("format") == "path", member.get("type") == "array"


def path_parameters():
    for document, path, method, operation in operations():
        for where, name, is_path, in_list in texts_of(document, operation):
            if is_path:
                yield pytest.param(path, method, operation, document, where, name, in_list, id=f"{path}-{name}")


def test_every_text_is_a_path_or_none():
    """What is new in the description has to be told apart, so that none is forgotten below."""
    found = {}
    for document, _, _, operation in operations():
        for _, name, is_path, _ in texts_of(document, operation):
            found.setdefault(name, set()).add(is_path)
    assert {name for name, kinds in found.items() if kinds == {False}} == NO_PATHS
    paths = {name for name, kinds in found.items() if kinds == {True}}
    assert paths == found.keys() - NO_PATHS
    assert {"file", "path", "config", "target_path", "output_path", "layout", "thresholds"} <= paths


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    root = tmp_path_factory.mktemp("paths")
    served = fill(root)
    (root / "outside" / "secret.vis.config").write_text(f'{{"{CALLS[0]}": "{CALLS[0]}"}}')
    (served / "link_secret.vis.config").symlink_to(root / "outside" / "secret.vis.config")
    with serving(served) as server:
        yield server, root


def contents(root):
    """Every file and its bytes, links by where they lead to."""
    found = {}
    for path in sorted(root.rglob("*")):
        found[str(path)] = path.readlink() if path.is_symlink() else path.read_bytes() if path.is_file() else None
    return found


@pytest.mark.parametrize(
    ("path", "method", "operation", "document", "where", "name", "in_list"), list(path_parameters())
)
def test_no_path_leads_out(place, path, method, operation, document, where, name, in_list):
    server, root = place
    before = contents(root)
    needed = [resolved(document, parameter)["name"] for parameter in operation.get("parameters", [])]
    query = {key: value for key, value in {**GRAPH, **VALID}.items() if key in needed}
    body = {key: value for key, value in VALID_BODY.items() if key in members_of(document, operation)}
    more = () if name in MADE else disguised(root / "outside")
    for attack in (*attacks(root / "outside"), *more):
        if where == "query":
            query[name] = attack
        else:
            body[name] = [attack] if in_list else attack
        target = f"{path}?{urllib.parse.urlencode(query, errors='surrogateescape')}"
        reply = server.ask(target, body=body if method == "POST" else None)
        assert reply.status in (400, 404), (attack, reply)
        assert reply.json["error"], attack

    assert server.api("conversion").json["conversion"] is None
    assert contents(root) == before
    assert server.alive()


@pytest.mark.parametrize(
    "target",
    [
        "/../outside/secret.yaml",
        "/%2e%2e/outside/secret.yaml",
        "//etc/passwd",
        "/etc/passwd",
        "/api/../../etc/passwd",
        "/api/%2e%2e/index.html/..",
        "/link/secret.yaml",
        "/map.yaml",
        "/compared.vis.db",
        "/index.html/../map.yaml",
        "/index.html%00.yaml",
    ],
)
def test_the_page_is_no_file_server(place, target):
    server, _ = place
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.putrequest("GET", target, skip_host=True)
    connection.putheader("Host", f"127.0.0.1:{server.port}")
    connection.putheader("X-Msprobe-Token", server.token)
    connection.endheaders()
    reply = connection.getresponse()
    assert reply.status == 404, reply.read()
    connection.close()


def test_graph_files_are_only_read(place):
    """Matches made by hand go to a file beside; the graph file keeps its bytes and its times."""
    server, root = place
    file = root / "served" / "compared.vis.db"
    before, stamp = file.read_bytes(), file.stat().st_mtime_ns
    query = urllib.parse.urlencode(GRAPH)
    assert server.ask(f"/api/match/remove?{query}", body={"npu": CALLS[0]}).status == 200
    assert server.ask(f"/api/match/add?{query}", body={"npu": CALLS[0], "bench": CALLS[0]}).status == 200
    assert (file.read_bytes(), file.stat().st_mtime_ns) == (before, stamp)
    beside = {path.name for path in file.parent.glob("compared*")} - {file.name}
    assert beside == {"compared.vis.match.json"}
