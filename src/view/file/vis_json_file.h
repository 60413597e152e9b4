// A graph as releases up to 8.1.1 wrote it: one JSON text ".vis" of one rank and step. It stays mapped; nothing of it
// is kept but where its nodes are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "compare/values/verdict.h"
#include "view/file/tree.h"
#include "view/file/vis_records.h"

namespace msprobe::view {

/// "graph.vis", as opposed to "graph.vis.db".
bool IsVisJsonName(std::string_view path);

/// Thread-safe.
class VisJsonFile {
 public:
  /// `shown` is how errors name the file. Fills `settings`; step and rank are those of its name
  /// ("compare_step2_rank1_TIME.vis"), 0 where that has none. kBadInput when it is no such graph; the text says why.
  static StatusOr<std::unique_ptr<VisJsonFile>> Open(const std::string& path, std::string_view shown,
                                                     VisSettings* settings);
  /// Nodes of a side ("NPU", "Bench"), children before their parents. Their row ids are their places in the file.
  Status LoadSide(std::string_view side, Tree* out) const;
  StatusOr<NodeRecord> LoadRecord(int64_t row) const;
  /// "" when it names none.
  const std::string& DataDirectory(bool target) const { return target ? target_.data : golden_.data; }

 private:
  /// The object of one run.
  struct Side {
    size_t nodes = 0;  // where they begin, behind '{'
    std::string data;
  };
  /// The values that have one colour, of both ends, and what it says of them; kNone: its place among the others does.
  struct Shade {
    double from = 0, to = 0;
    Verdict level = Verdict::kNone;
  };
  struct Node;
  struct Nodes;

  VisJsonFile(MappedFile file, std::string_view shown) : file_(std::move(file)), shown_(shown) {}
  Status ReadSettings(VisSettings* settings);
  /// From behind its '{'; `end` is behind its '}'.
  Status ReadSide(size_t begin, Side* side, size_t* end) const;
  void ReadLegend(std::string_view colors);
  Status ReadNodes(const Side& side, Nodes* out) const;
  Status ReadNode(size_t begin, Nodes* nodes, Node* out) const;
  Verdict LevelOf(double index) const;
  Status Cut() const;
  Status Bad(size_t at, std::string_view expected) const;

  MappedFile file_;
  std::string shown_;
  std::string_view text_;
  Side target_, golden_;
  std::vector<Shade> legend_;  // from the best to the worst
};

}  // namespace msprobe::view
