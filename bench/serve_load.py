"""Questions to a running `msprobe serve` at a steady rate: what it answers, how quickly, and what memory it holds meanwhile.

.venv/bin/python bench/serve_load.py FILE.vis.db --seconds 60 --rate 200
"""

import argparse
import http.client
import itertools
import json
import os
import pathlib
import subprocess
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from measure import command_of

CLIENTS = 8


def questions(file, names, wrong):
    """Endless targets of the page's own kinds; `wrong` ones are refused, which is an answer as well."""
    key = {"file": file, "step": 0, "rank": 0}

    def target(what, **more):
        return f"/api/{what}?{urllib.parse.urlencode({**key, **more})}"

    for i in itertools.count():
        name = names[i % len(names)]
        yield 200, target("node", name=name)
        yield 200, target("children", limit=100)
        yield 200, target("search", q=name[-12:], limit=20)
        yield 200, target("links", name=name)
        yield 200, target("seek", level="error", **{"from": name})
        yield 200, target("path", name=name, side="Bench")
        yield 200, target("summary")
        yield 200, "/api/files"
        if wrong:
            yield 404, target("node", name=f"nothing.{i}")
            yield 400, target("children", limit="x")
            yield 400, f"/api/config?file=..%2F{i}"
            yield 404, f"/api/nothing{i}"


class Client(threading.Thread):
    """Asks at its own beat; every second client makes a new connection for each question."""

    def __init__(self, number, server, share, seconds, asked):
        super().__init__(daemon=True)
        self.server, self.share, self.seconds, self.asked = server, share, seconds, asked
        self.keeps = number % 2 == 0
        self.offset = number / CLIENTS * share
        self.times, self.refused, self.faults = [], [], []

    def run(self):
        port, token = self.server
        connection = None
        start = time.perf_counter() + self.offset
        for i in itertools.count():
            at = start + i * self.share
            if at - start > self.seconds:
                break
            time.sleep(max(0.0, at - time.perf_counter()))
            expected, target = next(self.asked)
            begin = time.perf_counter()
            if connection is None:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request("GET", target, headers={"X-Msprobe-Token": token})
            reply = connection.getresponse()
            body = reply.read()
            (self.times if expected == 200 else self.refused).append(time.perf_counter() - begin)
            if reply.status != expected:
                self.faults.append((reply.status, target, body[:200]))
            if not self.keeps or reply.will_close:
                connection.close()
                connection = None


def memory_mb(pid):
    return int(pathlib.Path(f"/proc/{pid}/status").read_text().split("VmRSS:")[1].split()[0]) / 1024


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] if values else 0.0


def load(server, pid, file, names, *, seconds, rate, warm=2.0, wrong=True):
    """`server` is its port and token. Latencies in ms; memory in MB, once a second from the end of the warm-up on."""

    def phase(length):
        share = CLIENTS / rate
        # Each client starts somewhere else in the round.
        asked = [itertools.islice(questions(file, names, wrong), 5 * i, None) for i in range(CLIENTS)]
        clients = [Client(i, server, share, length, asked[i]) for i in range(CLIENTS)]
        start = time.perf_counter()
        for client in clients:
            client.start()
        held = [memory_mb(pid)]
        while any(client.is_alive() for client in clients):
            time.sleep(min(1.0, length / 5))
            held.append(memory_mb(pid))
        took = time.perf_counter() - start
        return clients, held, took

    phase(warm)
    clients, held, took = phase(seconds)
    times = [t * 1e3 for client in clients for t in client.times]
    refused = [t * 1e3 for client in clients for t in client.refused]
    return {
        "asked": len(times) + len(refused),
        "seconds": took,
        "faults": [fault for client in clients for fault in client.faults],
        "p50_ms": percentile(times, 0.5),
        "p99_ms": percentile(times, 0.99),
        "refused_p50_ms": percentile(refused, 0.5),
        "refused_p99_ms": percentile(refused, 0.99),
        "first_mb": held[0],
        "last_mb": held[-1],
        "most_mb": max(held),
    }


def start(path):
    command = [command_of("ours"), "serve", str(path), "--port", "0", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    said = json.loads(process.stdout.readline())
    return process, (said["port"], said["token"])


def some_names(server, file):
    port, token = server
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    query = urllib.parse.urlencode({"file": file, "step": 0, "rank": 0, "leaf": 1, "limit": 5000, "q": "forward"})
    connection.request("GET", f"/api/search?{query}", headers={"X-Msprobe-Token": token})
    hits = json.loads(connection.getresponse().read())["hits"]
    connection.close()
    return [hit["name"] for hit in hits if hit["matched"]][::50] or [hit["name"] for hit in hits][:1]


def serve_load(path, seconds, rate):
    process, server = start(path)
    try:
        file = os.path.basename(path)
        return load(server, process.pid, file, some_names(server, file), seconds=seconds, rate=rate)
    finally:
        process.terminate()
        process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rate", type=float, default=200)
    args = parser.parse_args()
    result = serve_load(args.file, args.seconds, args.rate)
    print(json.dumps(result, indent=1))
    sys.exit(1 if result["faults"] else 0)


if __name__ == "__main__":
    main()
