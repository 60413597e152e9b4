"""Error messages in the language of the locale. The English text is the key of its Chinese."""

from typing import Any

from .._environment import is_chinese

CHINESE = {
    # what is wrong, and where
    "%(name)s is %(value)s; allowed: %(allowed)s (%(place)s)": "%(name)s 为 %(value)s；允许：%(allowed)s（%(place)s）",
    "%(name)s is %(value)s; allowed: %(allowed)s": "%(name)s 为 %(value)s；允许：%(allowed)s",
    "%(path)s, line %(line)s": "%(path)s，第 %(line)s 行",
    "argument %(name)s": "参数 %(name)s",
    "config_path: %(place)s: the file %(why)s": "config_path：%(place)s：该文件%(why)s",
    "custom_apis: %(file)s: the file %(why)s (%(place)s)": "custom_apis：%(file)s：该文件%(why)s（%(place)s）",
    "bench_path is missing; task diff_check compares with an earlier md5 dump (%(place)s)": (
        "缺少 bench_path；diff_check 任务与先前的 md5 数据比较（%(place)s）"
    ),
    "bench_path is %(path)s: %(why)s (%(place)s)": "bench_path 为 %(path)s：%(why)s（%(place)s）",
    "level %(level)s needs the model: call start(model=...) or PrecisionDebugger(model=...)": (
        "%(level)s 级别需要模型：请调用 start(model=...) 或 PrecisionDebugger(model=...)"
    ),
    "token_range and load need the model: call start(model=...) or PrecisionDebugger(model=...)": (
        "token_range 和 load 需要模型：请调用 start(model=...) 或 PrecisionDebugger(model=...)"
    ),
    "nothing is sent to a checker: %(why)s": "没有向检查端发送任何数据：%(why)s",
    "nothing is sent to the checker: %(why)s": "没有向检查端发送任何数据：%(why)s",
    "the checker is not there, it is tried again: %(why)s": "检查端不在线，将重试：%(why)s",
    "steps are not recorded while more than %(most)s MB wait to be sent to the checker": (
        "待发送给检查端的数据超过 %(most)s MB 期间，不采集 step"
    ),
    "%(steps)s steps were not recorded: no checker takes them": "%(steps)s 个 step 没有采集：没有检查端接收",
    "online check: %(acked)s calls are kept by the checker, %(left)s are not, %(steps)s steps were not recorded": (
        "在线检查：检查端已保存 %(acked)s 次调用，未保存 %(left)s 次，%(steps)s 个 step 没有采集"
    ),
    "%(name)s cannot be recorded: %(why)s": "无法采集 %(name)s：%(why)s",
    "%(owner)s has no function of this name": "%(owner)s 没有此名称的函数",
    "PrecisionDebugger instance is not created.": "尚未创建 PrecisionDebugger 实例（PrecisionDebugger instance is not created.）",
    "SingleSave has no directory yet: construct it once, SingleSave(dump_path)": (
        "SingleSave 还没有目录：请先构造一次，SingleSave(dump_path)"
    ),
    "monitor_gnorm_with_ad: there is no optimizer: call set_wrapped_optimizer() first or give one": (
        "monitor_gnorm_with_ad：没有优化器：请先调用 set_wrapped_optimizer()，或传入一个优化器"
    ),
    "the monitor needs FSDP with use_orig_params=True: without it parameters have no names": (
        "监控需要 FSDP 的 use_orig_params=True：否则参数没有名称"
    ),
    "no parameter of the model requires a gradient: give set_monitor() the model that is trained": (
        "模型中没有需要梯度的参数：请把正在训练的模型传给 set_monitor()"
    ),
    "the model is a %(kind)s; allowed: a mindspore.nn.Cell": "模型是 %(kind)s；允许：mindspore.nn.Cell",
    "the optimizer is a %(kind)s; allowed: one of mindspore.nn or mindspore.mint.optim": (
        "优化器是 %(kind)s；允许：mindspore.nn 或 mindspore.mint.optim 中的优化器"
    ),
    "the optimizer has no parameter of the model: give set_monitor() the two that train": (
        "优化器中没有该模型的参数：请把一起训练的模型和优化器传给 set_monitor()"
    ),
    # what is allowed
    "a number of megabytes from 1": "不小于 1 的兆字节数",
    "seconds from 0 to 3600": "0 到 3600 的秒数",
    "a directory that both sides have": "两侧都能访问的目录",
    "the address of the checker": "检查端的地址",
    "a port from 1 to 65535": "1 到 65535 的端口",
    'a directory of client.key, client.crt and ca.crt, or "" for none': (
        '含 client.key、client.crt 和 ca.crt 的目录，或表示不用的 ""'
    ),
    "the file of the token": "令牌文件",
    "given for a checker on another machine, or token_path": "检查端在其他机器上时须给出，或给出 token_path",
    "L1, mix with online_run_ut": "online_run_ut 为 true 时可为 L1、mix",
    "cpu with pert_mode to_cpu, else npu": "pert_mode 为 to_cpu 时用 cpu，否则用 npu",
    "a whole number above 0": "大于 0 的整数",
    "false with handler_type fix": "handler_type 为 fix 时只能为 false",
    "forward with handler_type fix": "handler_type 为 fix 时只能为 forward",
    "improve_precision with handler_type fix": "handler_type 为 fix 时只能为 improve_precision",
    "improve_precision, to_cpu with handler_type fix": "handler_type 为 fix 时可为 improve_precision、to_cpu",
    "[] at level L2": "L2 级别下为 []",
    "tensor at level L2": "L2 级别下为 tensor",
    "[] in GRAPH_MODE": "GRAPH_MODE 下为 []",
    "one of all, forward, backward in GRAPH_MODE": "GRAPH_MODE 下为 all、forward、backward 之一",
    "statistics in GRAPH_MODE": "GRAPH_MODE 下为 statistics",
    "statistics, tensor in GRAPH_MODE": "GRAPH_MODE 下为 statistics 或 tensor",
    "the path of a JSON file": "JSON 文件的路径",
    "an object { ... }": "对象 { ... }",
    "true or false": "true 或 false",
    "True or False": "True 或 False",
    "a list of strings": "字符串列表",
    "a string": "字符串",
    "text": "文本",
    "text, and True or False": "文本，以及 True 或 False",
    "an integer from 0": "不小于 0 的整数",
    "an integer from %(least)s to %(most)s": "%(least)s 到 %(most)s 的整数",
    "an integer from 1, or -1 for no limit": "不小于 1 的整数，或表示不限的 -1",
    'a list of numbers and ranges such as [0, "3-5"]': '数字和范围的列表，例如 [0, "3-5"]',
    'numbers from 0 to %(most)s and ranges such as "3-5"': '0 到 %(most)s 的数字，以及 "3-5" 这样的范围',
    'a range "A-B" with A not above B': '范围 "A-B"，A 不大于 B',
    'an object such as {"path": "dump", "modules": ["Module.fc.Linear.forward.0"]}': (
        '对象，例如 {"path": "dump", "modules": ["Module.fc.Linear.forward.0"]}'
    ),
    "a directory of an earlier dump, the one that holds step0": "先前数据的目录，即 step0 所在的目录",
    "a list of different names of module forwards, such as Module.fc.Linear.forward.0": (
        "互不相同的模块前向名称的列表，例如 Module.fc.Linear.forward.0"
    ),
    "the path of a directory, which is created if it is not there": "目录的路径，不存在时会创建",
    "the path of a directory": "目录的路径",
    "at most 4096 characters, and 255 in each name": "不超过 4096 个字符，每级名称不超过 255 个",
    "the path of an earlier dump made with summary_mode md5": "先前用 summary_mode md5 采集的数据的路径",
    "[] or exactly two full names, the first and the last to record": "[]，或恰好两个完整名称：要采集的第一个和最后一个",
    "full names as level %(level)s records them, such as %(example)s": "%(level)s 级别采集的完整名称，例如 %(example)s",
    '["all"], or some of %(names)s': '["all"]，或其中若干个：%(names)s',
    'a list of objects with integers, such as [{"dim": 0, "begin": 0, "end": 16}]': (
        '由整数组成的对象的列表，例如 [{"dim": 0, "begin": 0, "end": 16}]'
    ),
    '"dim" not below 0': '"dim" 不小于 0',
    "numbers, each above the one before it": "数字，每个都大于前一个",
    'an object {"module.path": ["function", ...]}, or the path of a JSON or YAML file that holds one': (
        '对象 {"module.path": ["function", ...]}，或含有这种对象的 JSON 或 YAML 文件的路径'
    ),
    "statistics, because async_dump is true": "statistics，因为 async_dump 为 true",
    "a list that is not empty, because async_dump is true in task tensor": "非空列表，因为 tensor 任务中 async_dump 为 true",
    'an object such as {"disk": "20GB", "slowdown": 1.5}': '对象，例如 {"disk": "20GB", "slowdown": 1.5}',
    'a size such as "20GB" or "500MiB", or a number of bytes': '大小，例如 "20GB" 或 "500MiB"，或字节数',
    "a number above 1, such as 1.5": "大于 1 的数，例如 1.5",
    "torch.nn.Module (not a ScriptModule), or a list of them": "torch.nn.Module（不能是 ScriptModule），或其列表",
    "[first, last], counted from 0, both included": "[第一个, 最后一个]，从 0 计数，两端都包含",
    "L0, L1, mix with task %(task)s": "%(task)s 任务可用 L0、L1、mix",
    "statistics, md5, because overflow_check looks at these": "statistics、md5，因为 overflow_check 检查的是这些",
    'md5, because bench_path compares checksums: set "summary_mode": "md5"': (
        'md5，因为 bench_path 比较校验和：请设置 "summary_mode": "md5"'
    ),
    "a directory that SingleSave wrote, with `data` in it": "SingleSave 写出的目录，其中有 `data`",
    # what is wrong with a file
    "is not a regular file": "不是普通文件",
    "cannot be read: %(why)s": "无法读取：%(why)s",
    "is larger than %(most)s MB": "大于 %(most)s MB",
    "is not UTF-8 text (byte %(at)s)": "不是 UTF-8 文本（第 %(at)s 字节）",
    "has to hold one JSON object { ... }": "应包含一个 JSON 对象 { ... }",
    "is not valid JSON: %(why)s": "不是有效的 JSON：%(why)s",
    "text after the end of the JSON value": "JSON 值结束后还有文本",
    "nested deeper than %(most)s levels": "嵌套超过 %(most)s 层",
    "expected a value, found %(found)s": "此处应为值，却是 %(found)s",
    "the file ends in the middle of a value": "文件在一个值的中间结束",
    "a number of more than 400 digits": "超过 400 位的数字",
    "expected ',' or ']' in a list": "列表中此处应为 ',' 或 ']'",
    'key "%(found)s" is unknown: did you mean "%(key)s"? (%(place)s)': '未知的键 "%(found)s"：是否应为 "%(key)s"？（%(place)s）',
    '%(allowed)s; did you mean "%(near)s"?': '%(allowed)s；是否应为 "%(near)s"？',
    "JSON has no comments: remove this one": "JSON 没有注释：请删除它",
    'expected a key in double quotes or "}"': '此处应为双引号中的键或 "}"',
    'expected ":" after the key "%(key)s"': '键 "%(key)s" 之后应为 ":"',
    'expected "," or "}" in an object': '对象中此处应为 "," 或 "}"',
    "expected 'module.path:' or '- function', found %(found)s": "此处应为 'module.path:' 或 '- function'，却是 %(found)s",
    "expected a list of functions, found %(found)s": "此处应为函数列表，却是 %(found)s",
    "there is no .npy file of it, and MindSpore reads no other": "没有对应的 .npy 文件，而 MindSpore 只读取这种文件",
    # what this release does not have
    "%(name)s records graphs that run on an Ascend NPU and needs %(package)s, which is installed, but this release does not "
    "record such graphs: %(instead)s": (
        "%(name)s 采集在昇腾 NPU 上执行的图，需要 %(package)s（已安装），但本版本不采集这种图：%(instead)s"
    ),
    "%(name)s records graphs that run on an Ascend NPU and needs %(package)s, which is not installed, and this release does "
    "not record such graphs: %(instead)s": (
        "%(name)s 采集在昇腾 NPU 上执行的图，需要 %(package)s（未安装），且本版本不采集这种图：%(instead)s"
    ),
    "run the model without the graph compiler and use PrecisionDebugger": "请不使用图编译器运行模型，并使用 PrecisionDebugger",
    "use PrecisionDebugger.save at level debug outside of the graph": "请在图之外以 debug 级别使用 PrecisionDebugger.save",
    "%(name)s %(value)s needs an NPU with torch_npu and its compiled nan_check extension; task overflow_check finds NaN and "
    "infinities on any device (%(place)s)": (
        "%(name)s %(value)s 需要装有 torch_npu 及其 nan_check 扩展的 NPU；overflow_check 任务可在任何设备上查找 NaN 和无穷（%(place)s）"
    ),
    "%(name)s %(value)s calls single functions again and is not a capture; capture task tensor and run msprobe acc_check on its "
    "dump.json (%(place)s)": (
        "%(name)s %(value)s 再次调用单个函数，不是采集；请采集 tensor 任务，再对其 dump.json 运行 msprobe acc_check（%(place)s）"
    ),
    "%(name)s %(value)s records kernels through the runtime of an NPU, and here is %(lacks)s; level mix records modules and "
    "functions on any device (%(place)s)": (
        "%(name)s %(value)s 通过 NPU 的运行时采集 kernel，而这里%(lacks)s；mix 级别可在任何设备上采集模块和函数（%(place)s）"
    ),
    "no NPU": "没有 NPU",
    "one name of a call at level L2, as Functional.linear.0.forward": (
        "（在 L2 级别）一次调用的名称，如 Functional.linear.0.forward"
    ),
    "list holds %(name)s: there is no function of this name (%(place)s)": (
        "list 中有 %(name)s：没有这个名称的函数（%(place)s）"
    ),
    "a .npy file needs NumPy, which %(python)s does not have": ".npy 文件需要 NumPy，而 %(python)s 中没有",
    # of MindSpore
    "%(what)s needs MindSpore %(since)s or newer, this is %(release)s (%(place)s)": (
        "%(what)s 需要 MindSpore %(since)s 或更高版本，当前为 %(release)s（%(place)s）"
    ),
    "task overflow_check at level L2": "L2 级别的 overflow_check 任务",
    "mindspore.nn.Cell, or a list of them": "mindspore.nn.Cell，或其列表",
    "task %(value)s replays single functions and is not a capture; capture task tensor on both sides and run msprobe compare "
    "(%(place)s)": "%(value)s 任务重放单个函数，不是采集；请在两边采集 tensor 任务，再运行 msprobe compare（%(place)s）",
    "%(name)s compares while the training runs, which is for PyTorch; capture two runs and run msprobe compare (%(place)s)": (
        "%(name)s 在训练运行时比较，只用于 PyTorch；请采集两次运行后用 msprobe compare（%(place)s）"
    ),
    "task %(value)s needs an NPU; task overflow_check finds NaN and infinities on any device (%(place)s)": (
        "%(value)s 任务需要 NPU；overflow_check 任务可在任何设备上查找 NaN 和无穷（%(place)s）"
    ),
    "enable_dataloader is for PyTorch; call start(), stop() and step() (%(place)s)": (
        "enable_dataloader 只用于 PyTorch；请调用 start()、stop() 和 step()（%(place)s）"
    ),
    "level %(level)s records in PyNative mode, and the mode is GRAPH_MODE: use level L2, or "
    "mindspore.set_context(mode=mindspore.PYNATIVE_MODE) (start)": (
        "%(level)s 级别在 PyNative 模式下采集，而当前模式是 GRAPH_MODE：请使用 L2 级别，或 "
        "mindspore.set_context(mode=mindspore.PYNATIVE_MODE)（start）"
    ),
    "level %(level)s in GRAPH_MODE needs an Ascend, for TensorDump is an operator of it: use level L2, or "
    "mindspore.set_context(mode=mindspore.PYNATIVE_MODE) (start)": (
        "GRAPH_MODE 下的 %(level)s 级别需要昇腾，因为 TensorDump 是昇腾的算子：请使用 L2 级别，或 "
        "mindspore.set_context(mode=mindspore.PYNATIVE_MODE)（start）"
    ),
    "dump_path: %(path)s cannot be written (%(why)s): choose another one (%(place)s)": (
        "dump_path：无法写入 %(path)s（%(why)s）：请另选一个（%(place)s）"
    ),
    "dump_path: MindSpore writes only to paths of letters, digits, - and _, which %(path)s is not: choose another one "
    "(%(place)s)": (
        "dump_path：MindSpore 只写入由字母、数字、- 和 _ 组成的路径，%(path)s 不是这样的路径：请另选一个（%(place)s）"
    ),
    "list holds %(name)s: the regular expression is wrong, %(why)s (%(place)s)": (
        "list 中有 %(name)s：正则表达式有误，%(why)s（%(place)s）"
    ),
    # load
    "load: the model has no module %(name)s; its inputs are not replaced.": "load：模型中没有模块 %(name)s；不替换其输入。",
    "load: these calls did not happen or had no input that fits: %(names)s": (
        "load：这些调用没有发生，或没有与文件相符的输入：%(names)s"
    ),
    "load: %(name)s cannot be written: %(why)s": "load：%(name)s 无法写入：%(why)s",
    "load: %(path)s is not used, the input stays as it is: %(why)s": "load：未使用 %(path)s，输入保持不变：%(why)s",
    "load: there is no dump_tensor_data for step %(step)s below %(path)s; no input is replaced.": (
        "load：%(path)s 下没有 step %(step)s 的 dump_tensor_data；不替换任何输入。"
    ),
    "%(name)s holds %(found)s, the input is %(value)s": "%(name)s 中是 %(found)s，而输入是 %(value)s",
    "on a CPU": "（在 CPU 上）",
    "at level L2": "（在 L2 级别）",
    "the changed call gives another shape": "改动后的调用得到的形状不同",
    # of PtdbgDispatch
    'a list of names of operators, such as ["matmul"]': '算子名称的列表，如 ["matmul"]',
    "letters, digits, _ and -": "字母、数字、_ 和 -",
    "api_list: no operator of torch is named %(name)s; it has no files": (
        "api_list：torch 没有名为 %(name)s 的算子；不会为它写文件"
    ),
    "PtdbgDispatch: %(name)s is not judged: %(why)s": "PtdbgDispatch：没有判定 %(name)s：%(why)s",
    "the CPU has no kernel for it": "CPU 上没有它的 kernel",
    "PtdbgDispatch: the files of %(name)s are not written: %(why)s": "PtdbgDispatch：没有写出 %(name)s 的文件：%(why)s",
    "PtdbgDispatch: %(judged)s calls judged, %(failed)s fail%(names)s; %(unjudged)s could not be judged; in %(path)s": (
        "PtdbgDispatch：判定 %(judged)s 次调用，%(failed)s 次未通过%(names)s；%(unjudged)s 次无法判定；位于 %(path)s"
    ),
}


def say(text: str, **values: Any) -> str:
    """Puts the values into a text, in the language of the locale.

    Args:
        text: The English text, a key of CHINESE; what has no Chinese (names, lists of choices) stays as it is.
        **values: What its `%(name)s` stand for.

    Returns:
        The text.
    """
    if is_chinese():
        text = CHINESE.get(text, text)
    return text % values if values else text


def wrong(name: str, value: str, allowed: str, place: str) -> str:
    """Says which value is wrong, what is allowed, and where it is.

    Args:
        name: The key or argument.
        value: The value as text.
        allowed: The English text of what is allowed.
        place: The file and line, or the function.

    Returns:
        The text, in the language of the locale.
    """
    text = "%(name)s is %(value)s; allowed: %(allowed)s (%(place)s)"
    return say(text, name=name, value=value, allowed=say(allowed), place=place)
