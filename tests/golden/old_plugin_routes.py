"""Run by the Python of an environment that has an earlier TensorBoard plugin: `old_plugin_routes.py LOGDIR`. Asks each of
the plugin's routes about every graph file below LOGDIR and prints {"version": .., "routes": [..], "answers": {run: [[what, answer], ..]}}."""

import json
import os
import sys
import time
from importlib.metadata import entry_points
from types import SimpleNamespace

from werkzeug.test import Client

TAG = "graph"
EVERY = 40  # of the nodes, one in so many is asked for by itself


class Session:
    """One user of the page, who opens the file of `run`."""

    def __init__(self, routes, run):
        self.routes, self.run, self.answers = routes, run, []
        self.meta = {"run": run, "tag": TAG, "type": "db", "lang": "en", "microStep": -1, "step": 0, "rank": 0}

    def ask(self, route, fails=False, **more):
        reply = Client(self.routes["/" + route]).post("/", json={"metaData": self.meta, **more})
        assert reply.status_code == 200, (self.run, route, more, reply.status_code)
        answer = reply.get_json(force=True)
        answer = json.loads(answer) if isinstance(answer, str) else answer
        assert fails is None or answer["success"] is not fails, (self.run, route, more, answer)
        self.answers.append([[route, more], answer])
        return answer.get("data")

    def node(self, name, side):
        return self.ask("getNodeInfo", nodeInfo={"nodeName": name, "nodeType": side})

    def expand(self, name, side):
        return self.ask("changeNodeExpandState", nodeInfo={"nodeName": name, "nodeType": side})

    def relations(self, nodes):
        return self.ask("loadGraphMatchedRelations") if "/loadGraphMatchedRelations" in self.routes else nodes

    def filters(self):
        if "/filterNodes" in self.routes:
            for values in (["pass"], ["warning"], ["error"], [-1], ["pass", "error", -1]):
                self.ask("filterNodes", type="precision", values=values)
        else:
            for values in ([[0, 0.3]], [[0.3, 0.6]], [[0.6, 1]], [-1], [[0, 0.3], [0.6, 1], -1]):
                self.ask("screen", type="precision", values=values)
        for route in {"screen", "filterNodes"} & {r[1:] for r in self.routes}:
            for level in ("medium", "high", "critical"):
                self.ask(route, type="overflow", values=[level])

    def look(self, config):
        """Everything that changes nothing, for each step, rank and micro step."""
        single = config["isSingleGraph"]
        sides = ["Single"] if single else ["NPU", "Bench"]
        for step in config["steps"]:
            for rank in config["ranks"]:
                for micro in (-1, 0):
                    self.meta.update(step=step, rank=rank, microStep=micro)
                    nodes = self.ask("loadGraphAllNodeList")
                    self.relations(nodes)
                    self.filters()
                    for side in sides:
                        names = nodes["benchNodeList" if side == "Bench" else "npuNodeList"]
                        self.expand("root", side)
                        if micro < 0 and names:
                            for name in [names[0], names[len(names) // 2], names[0]]:
                                self.expand(name, side)
                            for name in names[::EVERY]:
                                self.node(name, side)
                        if not single:
                            self.ask("updateHierarchyData", graphType=side)
        self.meta.update(step=config["steps"][0], rank=config["ranks"][0], microStep=-1)

    def change(self, config):
        """Matches by hand, and what follows from them."""
        nodes = self.ask("loadGraphAllNodeList")
        pairs = self.relations(nodes)["npuMatchNodes"]
        parts = [n for n in nodes["npuNodeList"] if n in pairs and n.startswith("Functional.linear.")]
        modules = [
            n for n in nodes["npuNodeList"] if n in pairs and ".layers." in n and n.split(".")[-3].endswith("Layer")
        ]
        values = ["summary", "md5"] + ["all"] * ("/filterNodes" in self.routes)  # by which it matches
        fails = config["task"] not in values
        for name in parts[:2] + modules[:1]:
            below = name in modules
            if below and config["task"] == "all":  # their query lacks a column then
                continue
            bench = pairs[name]
            self.ask("deleteMatchNodes", fails, npuNodeName=name, benchNodeName=bench, isUnMatchChildren=below)
            self.node(name, "NPU")
            self.ask("addMatchNodes", fails, npuNodeName=name, benchNodeName=bench, isMatchChildren=below)
            self.node(name, "NPU")
            self.node(bench, "Bench")
        file = self.ask("saveMatchedRelations")
        if not fails and config["task"] != "all":
            self.ask("addMatchNodesByConfig", configFile=file)
            self.node(parts[0], "NPU")
        self.ask("updatePrecisionError", None, filterValue=["0", "3"])  # one of them refuses structures
        self.filters()
        colors = {
            "#FFFCF3": {"value": [0, 0.5], "description": "a"},
            "#FF704D": {"value": [0.5, 1], "description": "b"},
        }
        self.ask("updateColors", colors=json.dumps(colors))

    def walk(self):
        query = {key: self.meta[key] for key in ("run", "tag", "type", "lang")}
        reply = Client(self.routes["/loadGraphData"]).get("/", query_string=query)
        assert reply.status_code == 200
        self.answers.append(["loadGraphData", reply.get_data(as_text=True)])
        config = self.ask("loadGraphConfigInfo")
        self.look(config)
        if not config["isSingleGraph"]:
            self.change(config)
        self.ask("loadGraphConfigInfo")
        return self.answers


def convert(routes, logdir):
    """The later page starts `msprobe` itself and follows its progress."""
    dirs = Client(routes["/loadConvertedGraphData"]).get("/").get_json()["data"]["dirs"]
    assert "dumps/target/step0" in dirs
    two = {"rank_size": 2, "tp": 2, "pp": 1, "vpp": 1, "order": "tp-cp-ep-dp-pp"}
    jobs = {
        "made_build": {},
        "made_compare": {"bench_path": "dumps/golden/step0", "overflow_check": True, "fuzzy_match": True},
        "made_merged": {"bench_path": "dumps/golden/step0", "parallel_merge": {"npu": two, "bench": two}},
    }
    said = {}
    for out, more in jobs.items():
        ask = {"npu_path": "dumps/target/step0", "output_path": out, "is_print_compare_log": False, **more}
        answer = Client(routes["/convertToGraph"]).post("/", json=ask).get_json()
        assert answer["success"], answer
        for _ in range(600):  # the thread that starts the command may be late
            text = Client(routes["/getConvertProgress"]).get("/").get_data(as_text=True)
            said[out] = json.loads(text.strip().rsplit("data: ", 1)[1])
            if said[out]["progress"] == 100 or said[out]["status"] == "error":
                break
            time.sleep(0.1)
        (file,) = os.listdir(os.path.join(logdir, out))
        os.rename(os.path.join(logdir, out, file), os.path.join(logdir, out, f"{TAG}.vis.db"))
    return said


def runs_of(routes):
    runs = Client(routes["/load_meta_dir"]).get("/").get_json()
    assert not runs["error"], runs
    assert all(found == {"type": "db", "tags": [TAG]} for found in runs["data"].values()), runs
    return list(runs["data"])


def main():
    logdir = sys.argv[1]
    (plugin,) = [p for p in entry_points(group="tensorboard_plugins") if p.name == "graph_ascend"]
    routes = plugin.load()(SimpleNamespace(logdir=logdir)).get_plugin_apps()
    out = {"version": plugin.dist.version, "routes": sorted(routes)}
    for page in ("/index.html", "/index.js"):
        assert Client(routes[page]).get(page).status_code == 200
    if "/convertToGraph" in routes:
        out["converted"] = convert(routes, logdir)
    out["answers"] = {}
    for run in runs_of(routes):
        # What it keeps of one file, colours for example, would show in the next.
        routes = plugin.load()(SimpleNamespace(logdir=logdir)).get_plugin_apps()
        runs_of(routes)
        out["answers"][run] = Session(routes, run).walk()
    print(json.dumps(out))


if __name__ == "__main__":
    main()
