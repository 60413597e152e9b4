// Graphs as JSON texts: what is accepted can be shown, down to the figures of every node; the rest is refused in one
// line.
#include "fuzz_file.h"
#include "view/file/load_graph.h"
#include "view/file/vis_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace msprobe;
  const auto refused = [](const Status& status) {
    fuzz::CheckRefusal(status);
    fuzz::Check(status.message().find('\n') == std::string::npos, "a refusal is one line");
  };
  const fuzz::MemoryFile input(data, size);
  const auto file = view::VisFile::Open(input.path(), "step1_rank2.vis");
  if (!file.ok()) {
    refused(file.status());
    return 0;
  }
  const auto graph = view::LoadGraph(**file, 1, 2);
  if (!graph.ok()) {
    refused(graph.status());
    return 0;
  }
  for (const view::Tree* tree : {&graph->target, &graph->golden}) {
    fuzz::Check(tree->size() <= size, "a node comes from the text");
    uint64_t children = 0;
    for (uint32_t i = 0; i < tree->size(); ++i) {
      const view::TreeNode node = (*tree)[i];
      children += node.children;
      fuzz::Check(node.parent != view::kNoNode || i == tree->root(), "a node hangs somewhere");
      fuzz::Check(node.order == i, "nodes are numbered");
      const auto record = (*file)->LoadRecord(node.rowid);
      fuzz::Check(record.ok(), "a node of the graph has a record");
      fuzz::Check(record->inputs.size() + record->outputs.size() + record->stack.size() <= size, "of the text");
    }
    fuzz::Check(tree->empty() || children + 1 == tree->size(), "each node but the root is a child");
  }
  return 0;
}
