#include "jobs/kernel_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/interrupt.h"
#include "base/message.h"
#include "base/parallel.h"
#include "base/text.h"
#include "import/execution_order.h"
#include "import/ir_code.h"
#include "import/kernel_dump.h"
#include "jobs/kernel_rows.h"
#include "json/writer.h"

namespace msprobe {
namespace {

using Warning = std::function<void(const Message&)>;

/// "Gradients/Default/network-Net/fc-Dense/Grad_MatMul/MatMul-op3" taken apart.
struct KernelScope {
  std::vector<std::pair<std::string, std::string>> cells;  // attribute and class: {"network", "Net"}, {"fc", "Dense"}
  std::string group;                                       // "SumExt" of "Expand/_SumExt/ReduceSum-op0"
  std::string type, number;                                // "MatMul", "3"
  bool backward = false;
};

/// "MatMul-op3" to type and number.
void SplitKernel(std::string_view kernel, KernelScope* out) {
  constexpr std::string_view kNumber = "-op";
  const size_t at = kernel.rfind(kNumber);
  const bool numbered = at != std::string_view::npos && IsDigits(kernel.substr(at + kNumber.size()));
  out->type = kernel.substr(0, numbered ? at : kernel.size());
  out->number = numbered ? kernel.substr(at + kNumber.size()) : "0";
}

KernelScope ScopeOf(std::string_view scope) {
  KernelScope out;
  const std::vector<std::string_view> parts = Split(scope, '/');
  out.backward = parts[0] == "Gradients";
  SplitKernel(parts.back(), &out);
  for (size_t i = 1; i + 1 < parts.size(); ++i) {
    const size_t dash = parts[i].rfind('-');
    if (dash != std::string_view::npos && dash > 0 && dash + 1 < parts[i].size()) {
      out.cells.emplace_back(parts[i].substr(0, dash), parts[i].substr(dash + 1));
    } else if (StartsWith(parts[i], "_")) {
      out.group = parts[i].substr(1);
    }
  }
  return out;
}

/// Of a name whose scope nobody tells: what its end says.
KernelScope ScopeOfFileName(const KernelTensor& t) {
  KernelScope out;
  const std::string_view kernel = KernelOf(t);
  out.backward = StartsWith(kernel, "Gradients");
  SplitKernel(kernel, &out);
  if (!t.type.empty()) out.type = t.type;
  return out;
}

struct MeasuredTensor {
  const KernelTensor* tensor = nullptr;
  std::optional<KernelFigures> figures;  // nothing when the file cannot be read
};

/// One run of a kernel with its tensors, inputs first.
struct KernelNode {
  std::string name, parent;
  std::vector<std::string> frames;
  const MeasuredTensor *begin = nullptr, *end = nullptr;
};

/// What the graphs of a run say of its kernels.
struct KernelGraphs {
  ExecutionOrders orders;
  std::map<std::string, IrFile> code;

  const IrNode* CodeOf(const KernelTensor& t) const {
    const auto graph = code.find(t.graph);
    return graph == code.end() ? nullptr : graph->second.Find(KernelOf(t));
  }
  std::optional<KernelScope> Scope(const KernelTensor& t) const {
    const auto order = orders.find(t.graph);
    if (order != orders.end()) {
      if (const auto place = order->second.PlaceOf(KernelOf(t))) return ScopeOf(order->second.scopes()[*place]);
    }
    if (const IrNode* node = CodeOf(t)) return ScopeOf(node->scope);
    if (order == orders.end() || !IsKernelName(KernelOf(t))) return std::nullopt;
    // In the scope of a kernel that the order does list.
    const std::string_view kernel = KernelOf(t);
    const size_t under = kernel.rfind('_');
    if (under == std::string_view::npos) return std::nullopt;
    for (const std::string& scope : order->second.scopes()) {
      const std::string_view outer = std::string_view(scope).substr(0, scope.rfind('/'));
      if (outer.size() == under && KernelFileName(outer) == kernel.substr(0, under))
        return ScopeOf(fmt::format("{}/{}", outer, kernel.substr(under + 1)));
    }
    return std::nullopt;
  }
};

/// "In file PATH:81~83, 8~64/CODE/" as a line of stack.json; "" for other lines.
std::string FrameOf(std::string_view line, const std::string& scope) {
  constexpr std::string_view kFile = "In file ";
  const size_t comma = line.find(", ");
  if (!StartsWith(line, kFile) || comma == std::string_view::npos) return "";
  const std::string_view place = line.substr(kFile.size(), comma - kFile.size());
  const size_t colon = place.rfind(':');
  const size_t slash = line.find('/', comma);
  if (colon == std::string_view::npos || slash == std::string_view::npos) return "";
  std::string_view number = place.substr(colon + 1), code = line.substr(slash + 1);
  number = number.substr(0, number.find('~'));
  if (EndsWith(code, "/")) code.remove_suffix(1);
  return fmt::format("File {}, line {}, in {}, \n {}", place.substr(0, colon), number, scope,
                     code.substr(std::min(code.find_first_not_of(' '), code.size())));
}

/// Names of ops and Cells as dumps have them.
class KernelTree {
 public:
  explicit KernelTree(const KernelGraphs& graphs) : graphs_(graphs) {}

  void Add(const MeasuredTensor* begin, const MeasuredTensor* end) {
    const KernelTensor& t = *begin->tensor;
    const std::optional<KernelScope> known = graphs_.Scope(t);
    const KernelScope scope = known ? *known : ScopeOfFileName(t);
    KernelNode node;
    node.begin = begin;
    node.end = end;
    node.parent = AddCells(scope);
    if (!known && !IsKernelName(KernelOf(t))) {  // an input or a constant of the graph
      node.name = Unique("Parameter.", std::string(KernelOf(t)) + ".0.forward", t);
    } else {
      std::string path;
      for (const auto& [attribute, kind] : scope.cells) path += attribute + ".";
      if (!scope.group.empty()) path += scope.group + ".";  // operators that MindSpore expanded have no Cell
      path += fmt::format("{}.{}.{}", scope.type, scope.number, scope.backward ? "backward" : "forward");
      node.name = Unique("Kernel.", path, t);
      without_scope_ += !known;
    }
    if (const IrNode* code = graphs_.CodeOf(t)) {
      const std::string in = scope.cells.empty() ? "construct" : scope.cells.back().second;
      for (auto line = code->lines.rbegin(); line != code->lines.rend(); ++line) {
        if (std::string frame = FrameOf(*line, in); !frame.empty()) node.frames.push_back(std::move(frame));
      }
    }
    construct_.emplace_back(node.name, node.parent);
    nodes_.push_back(std::move(node));
  }
  const std::vector<KernelNode>& nodes() const { return nodes_; }
  /// Child and parent, "" at the top; parents first.
  const std::vector<std::pair<std::string, std::string>>& construct() const { return construct_; }
  size_t without_scope() const { return without_scope_; }

 private:
  /// The innermost of the Cells of a scope, which are there then; "" without one.
  std::string AddCells(const KernelScope& scope) {
    std::string path = "Cell.", parent;
    for (const auto& [attribute, kind] : scope.cells) {
      path += attribute + ".";
      std::string name = path + kind + (scope.backward ? ".backward.0" : ".forward.0");
      if (names_.insert(name).second) construct_.emplace_back(name, parent);
      parent = std::move(name);
    }
    return parent;
  }
  std::string Unique(std::string_view prefix, const std::string& path, const KernelTensor& t) {
    std::string name = fmt::format("{}{}", prefix, path);
    for (uint32_t run = t.run; !names_.insert(name).second; ++run) {
      name = fmt::format("{}graph{}.run{}.{}", prefix, BaseName(t.graph), run, path);
    }
    return name;
  }

  const KernelGraphs& graphs_;
  std::vector<KernelNode> nodes_;
  std::vector<std::pair<std::string, std::string>> construct_;
  std::unordered_set<std::string> names_;
  size_t without_scope_ = 0;
};

Status WriteJson(const std::string& path, JsonWriter* json) {
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  MSP_RETURN_IF_ERROR(file.Write(json->Take()));
  return file.Commit();
}

void WriteTensors(const KernelNode& node, std::string_view key, bool outputs, JsonWriter* json) {
  json->Key(key);
  json->BeginArray();
  for (const MeasuredTensor* t = node.begin; t != node.end; ++t) {
    if (IsOutput(*t->tensor) != outputs) continue;
    t->figures ? WriteFigures(*t->figures, json) : json->Null();
  }
  json->EndArray();
}

Status WriteFiles(const KernelTree& tree, const std::string& directory) {
  const JsonStyle style{.ascii = false, .not_finite = JsonStyle::NotFinite::kPython};
  JsonWriter dump(style), construct(style), stack(style);
  dump.Object([&] {
    dump.Member("task", "statistics");
    dump.Member("level", "mix");
    dump.Member("framework", "mindspore");
    dump.Key("dump_data_dir");
    dump.Null();
    dump.ObjectMember("data", [&] {
      for (const KernelNode& node : tree.nodes()) {
        dump.ObjectMember(node.name, [&] {
          const bool forward = EndsWith(node.name, ".forward");
          WriteTensors(node, forward ? "input_args" : "input", false, &dump);
          if (forward) dump.ObjectMember("input_kwargs", [] {});
          WriteTensors(node, "output", true, &dump);
        });
      }
    });
  });
  construct.Object([&] {
    for (const auto& [name, parent] : tree.construct()) {
      construct.Key(name);
      parent.empty() ? construct.Null() : construct.String(parent);
    }
  });
  std::map<std::vector<std::string>, std::vector<std::string>> by_frames;
  for (const KernelNode& node : tree.nodes()) by_frames[node.frames].push_back(node.name);
  size_t number = 0;
  stack.Object([&] {
    for (const auto& [frames, names] : by_frames) {
      if (frames.empty()) continue;
      stack.Key(std::to_string(number++));
      stack.BeginArray();
      for (const auto* list : {&names, &frames}) {
        stack.BeginArray();
        for (const std::string& text : *list) stack.String(text);
        stack.EndArray();
      }
      stack.EndArray();
    }
  });
  MSP_RETURN_IF_ERROR(WriteJson(JoinPath(directory, "construct.json"), &construct));
  MSP_RETURN_IF_ERROR(WriteJson(JoinPath(directory, "stack.json"), &stack));
  return WriteJson(JoinPath(directory, "dump.json"), &dump);
}

StatusOr<std::vector<MeasuredTensor>> Measure(const std::vector<KernelTensor>& tensors, size_t* unread) {
  std::vector<MeasuredTensor> out(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) out[i].tensor = &tensors[i];
  std::sort(out.begin(), out.end(), [](const MeasuredTensor& a, const MeasuredTensor& b) {
    return std::forward_as_tuple(a.tensor->place, IsOutput(*a.tensor), SlotOf(*a.tensor)) <
           std::forward_as_tuple(b.tensor->place, IsOutput(*b.tensor), SlotOf(*b.tensor));
  });
  constexpr size_t kBlock = 64;
  MSP_RETURN_IF_ERROR(ParallelFor((out.size() + kBlock - 1) / kBlock, [&](size_t block) -> Status {
    if (InterruptRequested()) return Interrupted();
    for (size_t i = block * kBlock; i < std::min(out.size(), (block + 1) * kBlock); ++i) {
      StatusOr<KernelFigures> figures = MeasureKernel(*out[i].tensor);
      if (figures.ok()) out[i].figures = std::move(*figures);
    }
    return OkStatus();
  }));
  *unread = static_cast<size_t>(
      std::count_if(out.begin(), out.end(), [](const MeasuredTensor& t) { return !t.figures.has_value(); }));
  return out;
}

Status WritePlace(const std::vector<const KernelDirectory*>& directories, const std::string& out,
                  const Warning& warning) {
  KernelList list;
  for (const KernelDirectory* d : directories) MSP_RETURN_IF_ERROR(ReadKernels(*d, &list));
  std::vector<Message> warnings;
  KernelGraphs graphs;
  graphs.orders = ReadExecutionOrders(directories, &warnings);
  graphs.code = ReadGraphCode(directories, &warnings);
  PlaceKernels(graphs.orders, &list);
  size_t unread = 0;
  MSP_ASSIGN_OR_RETURN(const std::vector<MeasuredTensor> measured, Measure(list.tensors, &unread));
  KernelTree tree(graphs);
  for (size_t i = 0, end = 0; i < measured.size(); i = end) {
    while (end < measured.size() && measured[end].tensor->place == measured[i].tensor->place) ++end;
    tree.Add(&measured[i], measured.data() + end);
  }
  const std::string& where = directories.front()->path;
  if (unread > 0) warnings.push_back(Msg("{} tensors of kernels below {} cannot be read", unread, where));
  if (tree.without_scope() > 0) {
    warnings.push_back(
        Msg("{} kernels below {} stand at the top: neither an execution order nor a saved graph "
            "(rank_N/execution_order, rank_N/graphs) tells their Cells",
            tree.without_scope(), where));
  }
  for (const Message& text : warnings) warning(text);
  MSP_RETURN_IF_ERROR(MakeOutputDir(out));
  return WriteFiles(tree, out);
}

}  // namespace

Status WriteKernelsAsDump(const std::string& root, const std::string& out, const Warning& warning) {
  MSP_ASSIGN_OR_RETURN(const std::vector<KernelDirectory> all, FindKernels(root));
  std::map<std::pair<int, int>, std::vector<const KernelDirectory*>> places;  // by step and rank
  for (const KernelDirectory& d : all) {
    if (!d.constants) places[{d.step, d.rank}].push_back(&d);
  }
  if (places.empty()) return BadInput(Msg("{} holds no kernels", root));
  for (auto& [at, directories] : places) {
    for (const KernelDirectory& d : all) {
      const auto of_graph = [&](const KernelDirectory* step) { return step->graph == d.graph; };
      if (d.constants && d.rank == at.second && std::any_of(directories.begin(), directories.end(), of_graph))
        directories.push_back(&d);
    }
    const std::string directory = fmt::format("{}/step{}/rank{}", out, at.first, at.second);
    MSP_RETURN_IF_ERROR(WritePlace(directories, directory, warning));
  }
  return OkStatus();
}

}  // namespace msprobe
