// What the server says when it refuses something, in Chinese: its lines are written in English for programs and logs, too.
// server_said.test.ts holds this table to the sources.

/** A server's line, and what stands for it; `$1` is what the line names. */
const LINES: [RegExp, string][] = [
  // searches
  [/^(\w+): is not a field: use verdict, result, overflow, type, op, dtype, error, side or rank, or put the word in quotation marks$/, '$1: 不是搜索字段：可用 verdict、result、overflow、type、op、dtype、error、side、rank，或用引号括起该词'],
  [/^op: needs the name of an op or a class: op:linear or op:\*norm\*$/, 'op: 需要算子名或类名：如 op:linear 或 op:*norm*'],
  [/^error: needs a comparison with a number: error>0.1, error>=10% or error<1e-3$/, 'error: 需要与一个数值比较：如 error>0.1、error>=10% 或 error<1e-3'],
  [/^error: no errors are known in this graph: compare two runs with msprobe graph_visualize$/, 'error: 此图中没有已知的误差：请用 msprobe graph_visualize 比对两次运行'],
  [/^dtype: no dtypes are known in this graph: make it from a dump of statistics or tensors$/, 'dtype: 此图中没有 dtype 信息：请用统计量或张量的 dump 数据生成图'],
  [/^rank: needs the number of one rank: rank:2$/, 'rank: 需要单个 rank 的编号：如 rank:2'],
  [/^rank: there is no rank (.+) in this file: it has (.+)$/, 'rank: 此文件中没有 rank $1：已有 $2'],
  [/^a search is of one rank: use one rank:$/, '一次搜索只针对一个 rank：请只用一个 rank:'],
  [/^(\w+): needs a value: (.+)$/, '$1: 需要取值：$2'],
  [/^(.+) is not a value of (\w+): (.+)$/, '$1 不是 $2 的取值，可用：$3'],
  [/^a quotation mark is not closed: add another one$/, '引号未闭合：请补上另一个引号'],
  [/^a search is of one side: use side:target or side:golden$/, '一次搜索只针对一侧：请用 side:target 或 side:golden'],
  [/^the search has more than (.+) words: use fewer$/, '搜索词超过 $1 个：请减少'],
  // files and graphs
  [/^(.+) does not exist: choose from the list of files$/, '$1 不存在：请从文件列表中选择'],
  [/^(.+) is not one of the files here: choose from the list of files$/, '$1 不在文件列表中：请从文件列表中选择'],
  [/^(.+) is no table of acc_check: choose from the list of files$/, '$1 不是 acc_check 的表格：请从文件列表中选择'],
  [/^(.+) is larger than (.+) MiB: open it in a program for tables$/, '$1 超过 $2 MiB：请用表格软件打开'],
  [/^(.+) is not a regular file: choose from the list of files$/, '$1 不是普通文件：请从文件列表中选择'],
  [/^file is not a relative path: choose from the list of files$/, '文件不是相对路径：请从文件列表中选择'],
  [/^(.+) points out of the directory: choose from the list of files$/, '$1 指向服务目录之外：请从文件列表中选择'],
  [/^(.+) is a link out of the directory: serve the directory it points to$/, '$1 是指向服务目录之外的链接：请在其指向的目录启动服务'],
  [/^(.+) has no graph of step (.+) rank (.+): choose from the steps and ranks that it lists$/, '$1 中没有 step $2、rank $3 的图：请从已有的 step 和 rank 中选择'],
  [/^(.+) has no (?:target|golden) side at step (.+) rank (.+): it is a single graph$/, '$1 的 step $2、rank $3 是单图，没有这一侧'],
  [/^(.+) has no target node (.+) at step (.+) rank (.+): check its name, or search for it$/, '$1 的 step $3、rank $4 中，调试侧没有节点 $2'],
  [/^no graph of (.+) has a node (.+): check its name, or search for it$/, '$1 的任何图中都没有节点 $2'],
  [/^(.+) has no golden node (.+) at step (.+) rank (.+): check its name, or search for it$/, '$1 的 step $3、rank $4 中，标杆侧没有节点 $2'],
  [/^(.+) is still being written \(its -wal file is not empty\): wait for the writer to end$/, '$1 仍在写入（-wal 文件不为空）：请等待写入结束'],
  [/^(.+) is not a graph of msprobe \((.+)\): graph_visualize writes graphs$/, '$1 不是 msprobe 的图（$2）：图由 graph_visualize 生成'],
  [/^(.+) is not a graph database \((.+)\): graph_visualize of msprobe writes such files$/, '$1 不是图数据文件（$2）：此类文件由 msprobe graph_visualize 生成'],
  [/^(.+) has no row in tb_config: its writer was interrupted, write it again$/, '$1 不完整（tb_config 为空）：写入曾被中断，请重新生成'],
  [/^(.+) is not a SQLite database: write it again with msprobe graph_visualize$/, '$1 不是 SQLite 数据库：请用 msprobe graph_visualize 重新生成'],
  [/^(.+) is damaged or still being written \((.+)\): wait for the writer to end, or write it again$/, '$1 已损坏或仍在写入（$2）：请等待写入结束，或重新生成'],
  [/^(.+) ends at byte (.+) in the middle of its text: wait for the writer to end, or write it again$/, '$1 在第 $2 字节处中断：请等待写入结束，或重新生成'],
  [/^(.+) is damaged at byte (.+): expected (.+) but found (.+), write it again$/, '$1 在第 $2 字节处损坏（应为 $3，实为 $4）：请重新生成'],
  [/^(.+) cannot be read \((.+)\): check the file and its permissions$/, '$1 无法读取（$2）：请检查文件及其权限'],
  [/^(.+) changed while it was read: load the page again$/, '$1 在读取时发生了变化：请刷新页面'],
  [/^out of memory while reading (.+): close other programs$/, '读取 $1 时内存不足：请关闭其他程序'],
  [/^(.+) holds a value larger than (.+) MiB: it was not written by a graph tool$/, '$1 含有超过 $2 MiB 的值：它不是由图工具生成的'],
  [/^(.+) has more than 16 million nodes in one rank: split the dump by step$/, '$1 的单个 rank 超过 1600 万个节点：请按 step 拆分 dump 数据'],
  [/^(.+) holds a node name longer than 64 KiB: it was not written by a graph tool$/, '$1 含有超过 64 KiB 的节点名称：它不是由图工具生成的'],
  [/^(.+) holds more than 4 GiB of node names: it was not written by a graph tool$/, '$1 的节点名称超过 4 GiB：它不是由图工具生成的'],
  // trends
  [/^(.+) is not a trend file: msprobe data2db writes such files$/, '$1 不是趋势数据文件：此类文件由 msprobe data2db 生成'],
  [/^(.+) holds more than (.+) targets: collect fewer steps or modules$/, '$1 含有超过 $2 个名称：请减少采集的 step 或模块'],
  [/^(.+) holds more than (.+) ranks or steps: collect fewer of them$/, '$1 含有超过 $2 个 rank 或 step：请减少采集数量'],
  [/^(.+) has no statistic (.+) of (.+): choose one that the file has$/, '$1 的 $3 没有统计量 $2：请从已有的中选择'],
  [/^(.+) has no metric (.+): choose one that the file has$/, '$1 没有指标 $2：请从已有的中选择'],
  [/^(.+) has no tag (.+): choose one that the file has$/, '$1 没有标签 $2：请从已有的中选择'],
  [/^(.+) has no such step or rank \((.+)\): choose one that the file has$/, '$1 没有此 step 或 rank（$2）：请从已有的中选择'],
  [/^(.+) has no target (.+): choose one that the file has$/, '$1 没有此名称（$2）：请从已有的中选择'],
  [/^(.+) has no target (.+) with (.+)$/, '$1 的 $3 中没有名称 $2'],
  [/^(.+) has (.+) rows of (.+) values here, too many to sort: narrow them by a name or a tag$/, '$1 此处有 $2 行、每行 $3 个值，过多而无法排序：请按名称或标签筛选'],
  // monitored runs
  [/^the rank has no metric (.+) with (.+): choose one that the run has$/, '此 rank 没有指标 $1 的统计量 $2：请从已有的中选择'],
  [/^(.+) holds neither monitor\.series nor csv files of a monitor: choose another rank$/, '$1 中既没有 monitor.series 也没有监控的 csv 文件：请选择其他 rank'],
  [/^(.+) holds no monitored run \(no monitor\.series\): give the directory that msprobe monitor wrote$/, '$1 中没有监控记录（没有 monitor.series）：请给出 msprobe monitor 写出的目录'],
  [/^the run has no rank (.+): choose one that it has$/, '此运行没有 rank $1：请从已有的中选择'],
  [/^it has no columns name and step: is it a file of a training monitor\?$/, '没有 name 和 step 列：这是训练监控的文件吗？'],
  [/^(.+) cannot be made: set TMPDIR to a directory with space$/, '$1 无法创建：请将 TMPDIR 设为有空间的目录'],
  // tensors
  [/^(.+) does not hold one tensor: it is not shown$/, '$1 不是单个张量，不予显示'],
  [/^(.+) repeats the elements it holds too often: it is not shown$/, '$1 的元素重复过多，不予显示'],
  [/^(.+) names no directory of tensors: it is not a tensor dump$/, '$1 没有张量目录：它不是 tensor 任务的 dump 数据'],
  [/^the graph names a tensor by what is not a file name: it is not opened$/, '图中的张量名称不是文件名，未打开'],
  [/^(.+) has no item (.+): use a name that the node lists$/, '$1 没有数据项 $2：请从节点已有的中选择'],
  [/^no tensor of (.+) was saved: dump with task tensor$/, '没有保存 $1 的张量：请使用 tensor 任务采集'],
  [/^only a file is served, and no tensors beside it: serve the directory that holds graph and dump$/, '当前只服务单个文件，不含张量：请在同时包含图和 dump 数据的目录启动服务'],
  [/^(.+) is not there any more: keep the dump where it was when the graph was made$/, '$1 已不存在：请将 dump 数据保留在生成图时的位置'],
  [/^(.+) lies outside of the served directory: serve a directory that holds the graph and the dump$/, '$1 位于服务目录之外：请在同时包含图和 dump 数据的目录启动服务'],
  // paths of conversions
  [/^(.+) is not a path: browse the served directory and choose again$/, '$1 不是路径：请浏览服务目录并重新选择'],
  [/^(.+) is an absolute path: browse the served directory and choose again$/, '$1 是绝对路径：请浏览服务目录并重新选择'],
  [/^(.+) is too deep: browse the served directory and choose again$/, '$1 的目录层级过深：请浏览服务目录并重新选择'],
  [/^(.+) points out of the directory: browse the served directory and choose again$/, '$1 指向服务目录之外：请浏览服务目录并重新选择'],
  [/^(.+) cannot be opened \((.+)\): browse the served directory and choose again$/, '$1 无法打开（$2）：请浏览服务目录并重新选择'],
  [/^(.+) is not a directory: browse the served directory and choose again$/, '$1 不是目录：请浏览服务目录并重新选择'],
  [/^(.+) is not a file: browse the served directory and choose again$/, '$1 不是文件：请浏览服务目录并重新选择'],
  [/^(.+) is or lies behind a link: serve the directory it points to$/, '$1 是链接或位于链接之后：请在其指向的目录启动服务'],
  [/^(.+) has a hidden part: give a name that does not begin with a dot$/, '$1 含有隐藏的部分：名称不能以点开头'],
  [/^(.+) cannot be used \((.+)\): give another name$/, '$1 无法使用（$2）：请换一个名称'],
  [/^(.+) goes through what is not a directory \(links are not followed\): give another name$/, '$1 的路径中有不是目录的部分（不跟随链接）：请换一个名称'],
  [/^(.+) cannot be read \((.+)\): check its permissions$/, '$1 无法读取（$2）：请检查其权限'],
  [/^(\w+) must be a directory, and that is a file: correct it, then start again$/, '此处需要目录，而所填的是文件：请修改后重试'],
  [/^(\w+) must be a file name that ends in \.yaml: correct it, then start again$/, '文件名必须以 .yaml 结尾：请修改后重试'],
  [/^(\w+) must be a file that does not exist yet: correct it, then start again$/, '此文件已存在，需要新的文件名：请修改后重试'],
  [/^(\w+) must be a YAML file: correct it, then start again$/, '此处需要 YAML 文件：请修改后重试'],
  [/^(\w+) must be as tp-cp-ep-dp-pp: correct it, then start again$/, '格式应如 tp-cp-ep-dp-pp：请修改后重试'],
  [/^(\w+) must be (.+): correct it, then start again$/, '$1 应为 $2：请修改后重试'],
  [/^(\w+) is missing: choose one$/, '缺少 $1：请选择'],
  [/^there is no layer mapping template "(.+)": --template takes (.+), or list$/, '没有名为 "$1" 的模板：可用的模板有 $2'],
  [/^dumps are not converted here: start msprobe serve or TensorBoard with a directory .+$/, '此处不能转换 dump 数据：请以目录启动 msprobe serve 或 TensorBoard，并且不要使用禁止转换的选项（--no_convert、--msprobe_no_convert、MSPROBE_NO_CONVERT）'],
  [/^that conversion does not run any more: load the page again$/, '该转换已不在运行：请刷新页面'],
  [/^another conversion runs: wait for it, or cancel it$/, '另一个转换正在进行：请等待其结束，或取消它'],
  // conversions that failed
  [/^(.+) does not exist: give a dump\.json or a dump directory$/, '$1 不存在：请给出 dump.json 或 dump 数据目录'],
  [/^(.+) is neither a file nor a directory: give a dump\.json or a dump directory$/, '$1 既不是文件也不是目录：请给出 dump.json 或 dump 数据目录'],
  [/^(.+) is not a dump \((.+)\): expected dump\.json, .+$/, '$1 不是 dump 数据（$2）：应包含 dump.json、rank*/proc* 目录，或含有这些目录的 step* 目录'],
  [/^(.+) is JSON but not a dump: it has no object "data", give a dump\.json or debug\.json$/, '$1 是 JSON 但不是 dump 数据（没有 "data" 对象）：请给出 dump.json 或 debug.json'],
  [/^(.+) was dumped with task (.+), but (.+) with task (.+): compare dumps of the same task.*$/, '$1 的采集任务是 $2，而 $3 是 $4：请比对相同任务的 dump 数据'],
  [/^only (.+) has checksums \(md5\), (.+) has none: compare two dumps with the same summary_mode.*$/, '只有 $1 含有校验值（md5），$2 没有：请比对 summary_mode 相同的 dump 数据'],
  [/^(.+) is a dump of (.+), but (.+) of (.+): specify -lm with a layer mapping to compare across frameworks$/, '$1 是 $2 的 dump 数据，而 $3 是 $4 的：跨框架比对请用 -lm 指定层映射'],
  // findings about ranks
  [/^ranks? (.+?) stops? after (\d+) collective calls in the group of ranks (.+), rank (\d+) goes on with (.+): its dump is cut, the run hung or was killed there$/, 'rank $1 在 rank $3 的组内执行 $2 次集合通信后停止，rank $4 继续执行 $5：其 dump 数据被截断，运行在此处挂起或被终止'],
  [/^ranks? (.+?) stops? after (\d+) collective calls in the group of ranks (.+), rank (\d+) goes on with (.+): the others wait for it and hang$/, 'rank $1 在 rank $3 的组内执行 $2 次集合通信后停止，rank $4 继续执行 $5：其余 rank 因等待而挂起'],
  [/^ranks? (.+?) calls? (\S+) (\d+) times in the group of ranks (.+) and not (\d+) times: the first call without a counterpart is (.+) of rank (\d+)$/, 'rank $1 在 rank $4 的组内调用 $2 共 $3 次，而不是 $5 次：第一个没有对应的调用是 rank $7 的 $6'],
  [/^collective call (\d+) in the group of ranks (.+) is (.+) of rank (\d+) but (.+) of rank (\d+): the ranks make their calls in a different order$/, 'rank $2 的组内第 $1 次集合通信在 rank $4 上是 $3，在 rank $6 上是 $5：各 rank 的调用顺序不同'],
  [/^rank (\d+) sends (\d+) times to rank (\d+) \(tag (.+)\), which receives (\d+) times: (.+) of rank (\d+) has no partner$/, 'rank $1 向 rank $3 发送 $2 次（tag $4），而后者接收 $5 次：rank $7 的 $6 没有对端'],
  [/^(.+) of rank (\d+) and (.+) of rank (\d+) are one exchange, but dtypes are (.+) and (.+)$/, 'rank $2 的 $1 与 rank $4 的 $3 属于同一次通信，但 dtype 分别为 $5 和 $6'],
  [/^(.+) of rank (\d+) and (.+) of rank (\d+) are one exchange, but shapes are (.+) and (.+)$/, 'rank $2 的 $1 与 rank $4 的 $3 属于同一次通信，但 shape 分别为 $5 和 $6'],
  [/^(.+) of rank (\d+) and (.+) of rank (\d+) are one exchange, but reductions are (.+) and (.+)$/, 'rank $2 的 $1 与 rank $4 的 $3 属于同一次通信，但归约方式分别为 $5 和 $6'],
  [/^(.+) of rank (\d+) and (.+) of rank (\d+) are one exchange, but roots are rank (\d+) and rank (\d+)$/, 'rank $2 的 $1 与 rank $4 的 $3 属于同一次通信，但 root 分别为 rank $5 和 rank $6'],
  [/^(.+) should be the same on rank \[(.+)\] \((.+)\), but rank (\d+) has (.+) and rank (\d+) has (.+)$/, '$1 在 rank [$2]（$3）上应相同，但 rank $4 为 $5，rank $6 为 $7'],
  [/^rank (\d+) has no tensor (.+) where rank (\d+) has one$/, 'rank $1 没有张量 $2，而 rank $3 有'],
  [/^(.+) has (\d+) dimensions, but line (\d+) of the layout gives it (\d+)$/, '$1 有 $2 维，而布局文件第 $3 行给出 $4 维'],
  [/^(.+): the part of rank (.+) stands out$/, '$1：rank $2 的部分与其余明显不同'],
  // matches by hand
  [/^(.+) is not a list of matches \((.+)\): remove it, or write it again$/, '$1 不是匹配列表（$2）：请删除或重新生成'],
  [/^(.+) is not a configuration of matches \((.+)\): it holds (.+)$/, '$1 不是匹配配置（$2）：其内容应为 $3'],
  [/^(.+) cannot be read \((.+)\): check it$/, '$1 无法读取（$2）：请检查'],
  [/^(.+) is not a regular file: remove it$/, '$1 不是普通文件：请删除'],
  [/^(.+) is larger than 32 MiB: it is not a list of matches$/, '$1 超过 32 MiB：它不是匹配列表'],
  [/^the matches could not be saved \((.+)\): make the directory of the graph file writable, or copy the file to one that is$/, '无法保存匹配关系（$1）：请使图文件所在的目录可写，或将文件复制到可写的目录'],
  [/^these are more matches than a file holds: match fewer nodes$/, '匹配数量超过文件所能容纳的上限：请减少匹配的节点'],
  [/^config is not the name of a \.vis\.config file beside the graph file: choose from the list$/, '所选不是图文件旁的 .vis.config 文件：请从列表中选择'],
];

/** What the operating system says, in parentheses. */
const REASONS: [string, string][] = [
  ['No such file or directory', '文件或目录不存在'],
  ['Permission denied', '权限不足'],
  ['Not a directory', '不是目录'],
  ['Is a directory', '是目录'],
  ['Read-only file system', '文件系统只读'],
  ['No space left on device', '磁盘空间不足'],
];

/** A line of the server in the reader's language, and which language it is in; one that is not known stays as it is. */
export function translateServerLine(language: 'en' | 'zh', line: string): { text: string; lang: 'en' | 'zh' } {
  if (language === 'zh') {
    for (const [pattern, chinese] of LINES) {
      if (!pattern.test(line)) continue;
      const text = line.replace(pattern, chinese);
      return { text: REASONS.reduce((said, [from, to]) => said.replace(`（${from}）`, `（${to}）`), text), lang: 'zh' };
    }
  }
  return { text: line, lang: 'en' };
}
