#include "import/execution_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <tuple>
#include <utility>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"

namespace msprobe {
namespace {

constexpr std::string_view kOrderTitle = "NodeExecutionOrder-FullNameWithScope";
constexpr size_t kMostKernels = 5'000'000;

/// Calls `take` for each line that is not empty; stops at the first error.
template <typename Take>
Status EachLine(std::string_view text, Take take) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (EndsWith(line, "\r")) line.remove_suffix(1);
    if (!line.empty()) MSP_RETURN_IF_ERROR(take(line));
  }
  return OkStatus();
}

/// A kernel in one of its runs.
struct KernelRun {
  uint32_t run = 0;
  uint64_t graph_time = 0;
  std::string_view graph;
  size_t place = 0;
  uint64_t time = 0;
  std::string_view kernel;
  size_t first = 0, last = 0;  // of the sorted tensors

  auto Key() const { return std::tie(run, graph_time, graph, place, time, kernel); }
};

/// "{op name}.{task}" of a key.
std::string_view KernelAndTask(const KernelTensor& t) {
  return std::string_view(t.key).substr(0, t.key.rfind('.', t.key.rfind('.') - 1));
}

/// Tensors of one name in the order of time are those of the first run, the second, and so on.
void CountRuns(std::vector<KernelTensor>* tensors) {
  std::vector<KernelTensor*> by_key;
  by_key.reserve(tensors->size());
  for (KernelTensor& t : *tensors) by_key.push_back(&t);
  std::stable_sort(by_key.begin(), by_key.end(), [](const KernelTensor* a, const KernelTensor* b) {
    return std::tie(a->graph, a->key, a->time) < std::tie(b->graph, b->key, b->time);
  });
  for (size_t i = 1; i < by_key.size(); ++i) {
    const KernelTensor &before = *by_key[i - 1], &t = *by_key[i];
    by_key[i]->run = before.graph == t.graph && before.key == t.key ? before.run + 1 : 0;
  }
}

std::vector<KernelRun> RunsOf(const std::vector<KernelTensor*>& sorted, const ExecutionOrders& orders,
                              const std::map<std::string_view, uint64_t>& graph_times) {
  std::vector<KernelRun> out;
  for (size_t i = 0; i < sorted.size(); ++i) {
    const KernelTensor& t = *sorted[i];
    const std::string_view kernel = KernelAndTask(t);
    if (!out.empty() && out.back().run == t.run && out.back().graph == t.graph && out.back().kernel == kernel) {
      out.back().last = i + 1;
      out.back().time = std::min(out.back().time, t.time);
      continue;
    }
    KernelRun run;
    run.run = t.run;
    run.graph = t.graph;
    run.graph_time = graph_times.at(t.graph);
    run.time = t.time;
    run.kernel = kernel;
    run.first = i;
    run.last = i + 1;
    // 0: before all; even: in the execution order; odd: behind one of these
    const auto order = orders.find(t.graph);
    const std::optional<size_t> place = order == orders.end() ? std::nullopt : order->second.PlaceOf(KernelOf(t));
    run.place = place ? 2 * (*place + 1) : t.constant ? 0 : 1;
    out.push_back(run);
  }
  return out;
}

/// Kernels that the order does not list go behind the last listed one that ran before them.
void PlaceUnlisted(std::vector<KernelRun>* runs) {
  std::vector<KernelRun*> by_time;
  by_time.reserve(runs->size());
  for (KernelRun& run : *runs) by_time.push_back(&run);
  std::stable_sort(by_time.begin(), by_time.end(), [](const KernelRun* a, const KernelRun* b) {
    return std::tie(a->run, a->graph, a->time) < std::tie(b->run, b->graph, b->time);
  });
  size_t last = 0;
  for (size_t i = 0; i < by_time.size(); ++i) {
    KernelRun& run = *by_time[i];
    if (i == 0 || by_time[i - 1]->run != run.run || by_time[i - 1]->graph != run.graph) last = 0;
    if (run.place % 2 == 1) {
      run.place = last + 1;
    } else {
      last = run.place;
    }
  }
}

}  // namespace

bool IsKernelName(std::string_view name) {
  constexpr std::string_view kNumber = "-op";
  const size_t at = name.rfind(kNumber);
  return at != std::string_view::npos && IsDigits(name.substr(at + kNumber.size()));
}

std::string KernelFileName(std::string_view scope) {
  std::string out(scope);
  for (char& c : out) {
    if (c == '.' || c == '/' || c == '\\' || c == ' ') c = '_';
  }
  return out;
}

StatusOr<ExecutionOrder> ExecutionOrder::Parse(std::string_view text, const std::string& path) {
  ExecutionOrder out;
  bool titled = false;
  MSP_RETURN_IF_ERROR(EachLine(text, [&](std::string_view line) -> Status {
    if (!std::exchange(titled, true)) {
      if (line == kOrderTitle) return OkStatus();
      return BadInput(Msg("{} is no execution order of MindSpore: its first line is not {}", path, kOrderTitle));
    }
    if (out.scopes_.size() == kMostKernels) return BadInput(Msg("{} lists more kernels than any graph", path));
    out.places_.try_emplace(KernelFileName(line), out.scopes_.size());
    out.scopes_.emplace_back(line);
    return OkStatus();
  }));
  if (titled) return out;
  return BadInput(Msg("{} is empty: the run ended before it wrote the execution order", path));
}

StatusOr<ExecutionOrder> ExecutionOrder::Open(const std::string& path) {
  MSP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  return Parse(file.text(), path);
}

std::optional<size_t> ExecutionOrder::PlaceOf(std::string_view kernel) const {
  const auto found = places_.find(std::string(kernel));
  return found == places_.end() ? std::nullopt : std::optional(found->second);
}

StatusOr<std::vector<uint64_t>> ParseIterations(std::string_view text, const std::string& path) {
  std::vector<uint64_t> out;
  MSP_RETURN_IF_ERROR(EachLine(text, [&](std::string_view line) -> Status {
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
    if (error != std::errc() || end != line.data() + line.size()) {
      return BadInput(Msg("{} is no list of iterations: a line of it is no number", path));
    }
    if (out.size() == kMostKernels) return BadInput(Msg("{} lists more iterations than any run", path));
    out.push_back(number);
    return OkStatus();
  }));
  return out;
}

ExecutionOrders ReadExecutionOrders(const std::vector<const KernelDirectory*>& directories,
                                    std::vector<Message>* warnings) {
  ExecutionOrders out;
  for (const KernelDirectory* d : directories) {
    const std::string_view graph = DirName(d->path), rank = DirName(DirName(graph));
    const std::string folder = fmt::format("{}/execution_order/", rank), end = fmt::format("_{}.csv", BaseName(graph));
    const std::string path = folder + "ms_execution_order_graph" + end;
    if (d->graph.empty() || out.contains(d->graph) || !IsRegularFile(path)) continue;
    StatusOr<ExecutionOrder> order = ExecutionOrder::Open(path);
    if (!order.ok()) {
      warnings->push_back(Msg("no execution order: {}", order.status().text()));
      continue;
    }
    if (const std::string list = folder + "ms_global_execution_order_graph" + end; IsRegularFile(list)) {
      const StatusOr<MappedFile> file = MappedFile::Open(list);
      StatusOr<std::vector<uint64_t>> read = file.ok() ? ParseIterations(file->text(), list) : file.status();
      if (read.ok()) {
        order->iterations = std::move(*read);
      } else {
        warnings->push_back(read.status().text());
      }
    }
    out.emplace(d->graph, std::move(*order));
  }
  return out;
}

void PlaceKernels(const ExecutionOrders& orders, KernelList* list) {
  CountRuns(&list->tensors);
  std::map<std::string_view, uint64_t> graph_times;
  for (const KernelTensor& t : list->tensors) {
    uint64_t& first = graph_times.try_emplace(t.graph, std::numeric_limits<uint64_t>::max()).first->second;
    first = std::min(first, t.constant ? first : t.time);
  }
  std::vector<KernelTensor*> sorted;
  sorted.reserve(list->tensors.size());
  for (KernelTensor& t : list->tensors) sorted.push_back(&t);
  std::sort(sorted.begin(), sorted.end(), [](const KernelTensor* a, const KernelTensor* b) {
    return std::forward_as_tuple(a->run, a->graph, KernelAndTask(*a)) <
           std::forward_as_tuple(b->run, b->graph, KernelAndTask(*b));
  });
  std::vector<KernelRun> runs = RunsOf(sorted, orders, graph_times);
  PlaceUnlisted(&runs);
  std::sort(runs.begin(), runs.end(), [](const KernelRun& a, const KernelRun& b) { return a.Key() < b.Key(); });
  for (size_t i = 0; i < runs.size(); ++i) {
    for (size_t k = runs[i].first; k < runs[i].last; ++k) sorted[k]->place = static_cast<uint32_t>(i);
  }
}

}  // namespace msprobe
