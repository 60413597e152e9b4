"""Many questions in a short time: all are answered, and the server holds no more memory afterwards."""

import os
import sys
import threading

from launch import REPO
from served import CALLS, MODULE, fill, serving

sys.path.insert(0, str(REPO / "bench"))

from serve_load import load

SECONDS = float(os.environ.get("MSPROBE_LOAD_SECONDS", "3"))


def test_two_hundred_questions_a_second(tmp_path):
    with serving(fill(tmp_path)) as server:
        result = load(
            (server.port, server.token),
            server.process.pid,
            "compared.vis.db",
            [MODULE, *CALLS],
            seconds=SECONDS,
            rate=200,
            warm=1.0,
        )
        assert not result["faults"]
        assert result["asked"] >= 190 * SECONDS
        assert result["last_mb"] < result["first_mb"] + 8
        assert server.alive()


def test_two_clients_in_different_views(tmp_path):
    """What one looks at, another does not see: every answer is that of its own question."""
    served = fill(tmp_path)
    with serving(served) as server:
        views = [
            ("node", {"file": "compared.vis.db", "step": 0, "rank": 0, "name": CALLS[0]}),
            ("node", {"file": "compared.vis.db", "step": 1, "rank": 0, "name": CALLS[0]}),
            ("children", {"file": "single.vis.db", "step": 1, "rank": 0, "name": MODULE}),
            ("search", {"file": "tensors.vis.db", "step": 0, "rank": 0, "side": "Bench", "q": "relu"}),
        ]
        alone = [server.api(what, **parameters) for what, parameters in views]
        assert len({reply.body for reply in alone}) == len(views)
        wrong = []

        def look(what, parameters, expected):
            for _ in range(60):
                if server.api(what, **parameters) != expected:
                    wrong.append((what, parameters))

        looking = [
            threading.Thread(target=look, args=(*view, expected)) for view, expected in zip(views, alone, strict=True)
        ]
        for one in looking:
            one.start()
        for one in looking:
            one.join()
        assert not wrong
