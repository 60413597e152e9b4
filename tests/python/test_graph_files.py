"""Cells of a graph: what MindSpore's operators dumped becomes the files of a step."""

import json

import numpy as np
from msprobe.mindspore.graph_files import collect, directory_of


def loaded(step):
    return [json.loads((step / name).read_text()) for name in ("dump.json", "construct.json", "stack.json")]


def test_tensors(tmp_path):
    cells = directory_of(tmp_path)
    np_files = {
        "Cell.a.Dense.forward.input.0_float32_3": np.array([1.0, -2.0], np.float32),
        "Cell.a.act.ReLU.forward.input.0_int64_4": np.array([[5]]),
        "Cell.a.Dense.forward.output.0_bfloat16_5": np.array(3.0, np.float32),
        "Cell.a.Dense.forward.input.0_in_float32_11": np.array([7.0, 7.0], np.float32),
        "Cell.a.Dense.backward.input.1_bool_12": np.array([True, False]),
    }
    (tmp_path / "cells").mkdir()
    for name, array in np_files.items():
        path = f"{cells}/{name}.npy"
        tmp_path.joinpath(cells).mkdir(parents=True, exist_ok=True)
        np.save(path, array)
    step = tmp_path / "step0" / "rank"
    assert collect(tmp_path, str(step), "tensor", "L0") == 4
    dump, construct, stack = loaded(step)
    data = dump["data"]
    first, again = data["Cell.a.Dense.forward.0"], data["Cell.a.Dense.forward.1"]
    assert first["input_args"] == [
        {"type": "mindspore.Tensor", "dtype": "Float32", "shape": [2], "Max": 1.0, "Min": -2.0, "Mean": -0.5}
        | {"Norm": 5**0.5, "data_name": "Cell.a.Dense.forward.0.input.0.npy"}
    ]
    assert first["output"][0]["dtype"] == "BFloat16" and first["output"][0]["shape"] == []
    assert again["input_args"][0]["Max"] == 7 and again["output"] == []
    assert data["Cell.a.Dense.backward.0"]["input"][0] is None
    assert (
        data["Cell.a.Dense.backward.0"]["input"][1] | {"Max": True, "Min": False, "Mean": None}
        == (data["Cell.a.Dense.backward.0"]["input"][1])
    )
    assert data["Cell.a.act.ReLU.forward.0"]["input_args"][0]["Max"] == 5
    assert construct["Cell.a.act.ReLU.forward.0"] == "Cell.a.Dense.forward.0"
    assert construct["Cell.a.Dense.forward.0"] is None and set(stack) == {"0", "1", "2", "3"}
    saved = np.load(f"{dump['dump_data_dir']}/{again['input_args'][0]['data_name']}")
    assert saved.tolist() == [7.0, 7.0] and not list(tmp_path.joinpath(cells).iterdir())


def test_statistics(tmp_path):
    table = tmp_path / "rank_0" / "Net" / "0" / "0" / "statistic.csv"
    table.parent.mkdir(parents=True)
    head = "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,Max Value,Min Value,Avg Value,L2Norm Value"
    name = "Default/TensorDump-op3//dump/cells/rank/dump_tensor_data/Cell-fc-Dense-forward-{}-0|x"
    rows = [
        f'TensorDump,{name.format("output")},0,0,30,input,1,8,float32,"(2, 3)",4,1,2,nan',
        f"TensorDump,{name.format('input')},0,0,20,input,1,8,bfloat16,(2),3,1,2,9",
        f"TensorDump,{name.format('input')},0,0,20,input,0,8,int8,(2),3,1,2,9",
        "MatMul,Default/MatMul-op1,0,0,10,input,1,8,float32,(2),3,1,2,9",
    ]
    table.write_text("\n".join([head, *rows]) + "\n")
    step = tmp_path / "step0" / "rank"
    assert collect(tmp_path, str(step), "statistics", "L0") == 1 and not table.exists()
    (dump, _, _) = loaded(step)
    entry = dump["data"]["Cell.fc.Dense.forward.0"]
    assert entry["input_args"][0] == {"type": "mindspore.Tensor", "dtype": "BFloat16", "shape": [2]} | {
        "Max": 3.0,
        "Min": 1.0,
        "Mean": 2.0,
        "Norm": 9.0,
    }
    assert entry["output"][0]["shape"] == [2, 3] and dump["dump_data_dir"] is None
