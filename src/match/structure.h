// The structure of a model as one run saw it: its modules, and the calls in them in order of execution. Of a dump of
// any task: construct.json says who contains whom, dump.json adds ops that it does not list and the shapes of
// parameters.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/big_array.h"
#include "dump/reader.h"
#include "match/layer_match.h"
#include "ops/op_name.h"

namespace msprobe {

inline constexpr uint32_t kNoModule = UINT32_MAX;
inline constexpr uint32_t kNoCall = UINT32_MAX;

/// Calls one after the other, linked by StructureCall::next: a list of them costs nothing of its own.
struct CallChain {
  uint32_t first = kNoCall, last = kNoCall, count = 0;
  bool empty() const { return count == 0; }
  size_t size() const { return count; }
};

/// A place in the model: module 0 is the top, whose name is empty.
struct ModuleNode {
  std::string_view name;  // last part of its path
  std::string_view type;  // its class; "" of what only contains others (ModuleList), and of the top
  std::string_view kind;  // the class, as both frameworks call it where names are common
  bool layer = false;     // of the framework: what is in it says nothing (common names only)
  uint32_t parent = kNoModule;
  uint32_t depth = 0;
  std::vector<uint32_t> children;  // in the order in which they ran first
  CallChain calls;                 // of the module itself
  CallChain functions;             // calls of functions in it
  uint64_t contents = 0;           // alike for two modules with the same inside, whatever the names in it
  uint64_t size = 0;               // modules in it and below
  uint64_t below = 0;              // calls in it and below
  std::string parameters;          // "weight [8, 8], bias [8]"; "" where the dump does not say
  double norm = 0;                 // of them together; 0 where the dump does not say, and of constants
  int64_t elements = 0;            // of its first output; 0 where the dump does not say
  uint32_t results = 0;            // tensors among its outputs
};

struct StructureCall {
  std::string_view name;      // as dumps have it
  std::string_view function;  // "linear" of Functional.linear.0.forward; "" of modules
  bool moves = false;         // the function only moves elements (common names only)
  std::string_view caller;    // the entry of construct.json that contains it; ""
  uint32_t module = 0;        // the module that is called, or in which the function runs
  OpDirection direction = OpDirection::kNone;
  uint32_t op = UINT32_MAX;  // in dump.json
  uint32_t next = kNoCall;   // in its chain
};

/// Names as a dump has them, or as PyTorch and MindSpore both have them; kImplementations as kCommon, for two programs
/// of one framework that compute one model.
enum class Vocabulary : uint8_t { kOwn, kCommon, kImplementations };

/// Elements of a tensor of a dump; 0 where that is not known.
int64_t ElementsOf(const JsonValue& leaf);

class Structure {
 public:
  /// kBadInput when neither construct.json nor dump.json holds a call, or modules nest too deep. With common names,
  /// classes, functions and parameters of two frameworks can be held against each other.
  static StatusOr<Structure> Read(const DumpFile& dump, Vocabulary vocabulary = Vocabulary::kOwn);

  Vocabulary vocabulary() const { return vocabulary_; }
  bool implementations() const { return vocabulary_ == Vocabulary::kImplementations; }

  const std::vector<ModuleNode>& modules() const { return modules_; }
  const BigArray<StructureCall>& calls() const { return calls_; }
  /// Calls visit(index) for the calls of a chain until it returns false.
  template <typename Visit>
  void ForEachCall(const CallChain& chain, const Visit& visit) const {
    for (uint32_t c = chain.first; c != kNoCall; c = calls_[c].next) {
      if (!visit(c)) return;
    }
  }
  /// "model.layers.0.mlp"; "" for the top.
  std::string PathOf(uint32_t module) const { return PathBelow(module, 0); }
  /// Of `module` seen from `above`, which contains it: "0.mlp".
  std::string PathBelow(uint32_t module, uint32_t above) const;
  /// True when `above` is `module` or contains it.
  bool IsIn(uint32_t module, uint32_t above) const;
  /// What layer mappings work with.
  LayerSide Side() const;

 private:
  struct ChildKey {
    uint32_t parent;
    std::string_view name;
    bool operator==(const ChildKey&) const = default;
  };
  struct ChildHash {
    size_t operator()(const ChildKey& key) const {
      return std::hash<std::string_view>()(key.name) ^ (key.parent + size_t{1}) * 0x9E3779B97F4A7C15ull;
    }
  };
  uint32_t Child(uint32_t parent, std::string_view name);
  uint32_t ModuleOf(std::string_view base, bool called);
  void AddCall(std::string_view name, uint32_t op);
  void NameFunction(std::string_view base, StructureCall* call);
  void NameModules();
  /// The call that is added next joins the chain.
  void Link(CallChain* chain);
  void Summarize();
  Status ReadParameters(const DumpFile& dump);

  Vocabulary vocabulary_ = Vocabulary::kOwn;
  /// Common names, which stand in no dump. Nodes stay where they are, also when the object moves.
  struct Named {
    std::string name;
    bool flag = false;
  };
  std::unordered_map<std::string_view, Named> common_functions_, common_classes_;  // by the dump's own names
  std::shared_ptr<const ParentIndex> parents_;
  std::vector<ModuleNode> modules_{1};
  BigArray<StructureCall> calls_;
  std::unordered_map<std::string_view, uint32_t> by_path_;  // "Module.a.b" without the class
  std::unordered_map<ChildKey, uint32_t, ChildHash> child_of_;
  bool too_deep_ = false;
};

}  // namespace msprobe
