// The modules around an op.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/message.h"
#include "base/slot_table.h"
#include "dump/reader.h"
#include "ops/op_name.h"

namespace msprobe {

/// "Functional.linear.3.forward" for "Functional.linear.3.backward".
std::string ForwardNameOf(const NameParts& op);

/// The hierarchy of a run: construct.json, or the paths in the names of modules where there is none.
class ModuleTree {
 public:
  /// A construct.json that cannot be used is a warning: the table does not need it.
  static ModuleTree Open(const DumpFile& dump, Message* warning);

  /// The module that calls `name`; "" if not known.
  std::string_view ParentOf(std::string_view name) const {
    return index_ ? index_->ParentOf(name) : std::string_view();
  }
  /// Calls `visit` with what is around `name`, innermost first, until it returns false. A construct.json may lead in a
  /// circle: so many steps are not a model's.
  template <typename Visit>
  void ForEachAround(std::string_view name, const Visit& visit) const {
    constexpr int kMostSteps = 4096;
    for (int step = 0; step < kMostSteps; ++step) {
      name = ParentOf(name);
      if (name.empty() || !visit(name)) return;
    }
  }
  bool empty() const { return !index_ || index_->empty(); }

 private:
  std::shared_ptr<const ParentIndex> index_;
};

/// The hierarchies of both runs, each read when it is first asked for. Thread-safe.
class PairTrees {
 public:
  /// Both outlive the object.
  PairTrees(const DumpFile& target, const DumpFile& golden) : target_(target), golden_(golden) {}
  /// `warning` as of ModuleTree::Open.
  std::shared_ptr<const ModuleTree> Target(Message* warning);
  std::shared_ptr<const ModuleTree> Golden(Message* warning);

 private:
  struct Side {
    explicit Side(const DumpFile& file) : dump(file) {}
    std::shared_ptr<const ModuleTree> Get(Message* told);
    const DumpFile& dump;
    std::mutex mutex;
    std::shared_ptr<const ModuleTree> tree;
    Message warning;
  };
  Side target_, golden_;
};

/// Names of everything that contains an op which differs: these pass a difference on.
class Containers {
 public:
  explicit Containers(const ModuleTree& tree) : tree_(tree) {}
  void AddAncestorsOf(const NameParts& op);
  bool Contains(const NameParts& op) const;

 private:
  const ModuleTree& tree_;
  TextIds names_;
  TextIds paths_[4];
};

}  // namespace msprobe
