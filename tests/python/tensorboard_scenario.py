"""Runs in an environment with TensorBoard: makes its WSGI application with every plugin found there, and asks it.

Usage: tensorboard_scenario.py LOGDIR PREFIX PLUGIN. Prints what came back as one JSON object.
"""

import json
import logging
import re
import sys

from msprobe.tensorboard.plugin import may_convert
from tensorboard import default, program
from tensorboard.backend import application
from tensorboard.util import tb_logging
from werkzeug.test import Client


class Log(logging.Handler):
    texts = []

    def emit(self, record):
        self.texts.append(record.getMessage())


def main():
    logdir, prefix, plugin = sys.argv[1:]
    tb_logging.get_logger().addHandler(Log())
    board = program.TensorBoard(plugins=default.get_plugins())
    board.configure(["tensorboard", "--logdir", logdir, "--path_prefix", prefix, "--load_fast", "false"])
    client = Client(application.TensorBoardWSGIApp(board.flags, board.plugin_loaders))
    loaded = sorted(name for name in sys.modules if name.startswith("msprobe"))

    def ask(path, method="GET", token=None, **more):
        headers = {"X-Msprobe-Token": token} if token else {}
        reply = client.open(f"{prefix}/data/{path}", method=method, headers=headers, **more)
        return {"status": reply.status_code, "headers": dict(reply.headers), "body": reply.get_data(as_text=True)}

    forbidding = program.TensorBoard(plugins=default.get_plugins())
    forbidding.configure(["tensorboard", "--logdir", logdir, "--msprobe_no_convert"])
    base = f"plugin/{plugin}"
    page = ask(f"{base}/index.html")
    token = re.search(r'msprobe-token" content="(\w+)"', page["body"])[1]
    files = ask(f"{base}/api/files", token=token)
    name = json.loads(files["body"])["files"][0]["file"]
    graph = {"file": name, "step": "0", "rank": "0"}
    said = {
        "loaded_at_start": loaded,
        "plugins": ask("plugins_listing"),
        "entry": ask(f"{base}/index.js"),
        "frame": ask(f"plugin_entry.html?name={plugin}"),
        "page": page,
        "files": files,
        "children": ask(f"{base}/api/children", token=token, query_string={**graph, "side": "NPU"}),
        "unknown_node": ask(f"{base}/api/node", token=token, query_string={**graph, "name": "不在 这里"}),
        "head": ask(f"{base}/api/files", "HEAD", token),
        "no_token": ask(f"{base}/api/files"),
        "other_token": ask(f"{base}/api/files", token="0" * 32),
        "climb": ask(f"{base}/api/config", token=token, query_string={"file": "../secret.vis.db"}),
        "climb_path": ask(f"{base}/..%2F..%2Fsecret.vis.db", token=token),
        "file_itself": ask(f"{base}/{name.replace(' ', '%20')}", token=token),
        "conversion": ask(f"{base}/api/conversion", token=token),
        "convert": ask(f"{base}/api/convert", "POST", token, json={"target_path": "..", "output_path": "out"}),
        "flag": may_convert(forbidding.flags),
        "large_body": ask(f"{base}/api/files", "POST", token, data=b"x" * (3 << 20)),
        "log": Log.texts,
    }
    print(json.dumps(said))


main()
