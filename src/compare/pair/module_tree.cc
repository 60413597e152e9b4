#include "compare/pair/module_tree.h"

#include "base/message.h"
#include "base/text.h"

namespace msprobe {
namespace {

std::string_view WithoutLast(std::string_view s) {
  return s.substr(0, s.rfind('.') == std::string_view::npos ? 0 : s.rfind('.'));
}

}  // namespace

std::string ForwardNameOf(const NameParts& op) {
  std::string out(op.base);
  if (op.number_last) return out + ".forward." + std::string(op.number);
  return out + "." + std::string(op.number) + ".forward";
}

ModuleTree ModuleTree::Open(const DumpFile& dump, Message* warning) {
  ModuleTree tree;
  StatusOr<std::shared_ptr<const ParentIndex>> index = dump.Parents();
  if (!index.ok()) {
    *warning = Msg("{} (modules are recognised by their names instead)", index.status().text());
  } else if (*index) {
    *warning = (*index)->truncated();
    tree.index_ = std::move(*index);
  }
  return tree;
}

std::shared_ptr<const ModuleTree> PairTrees::Side::Get(Message* told) {
  std::lock_guard lock(mutex);
  if (!tree) tree = std::make_shared<const ModuleTree>(ModuleTree::Open(dump, &warning));
  *told = warning;
  return tree;
}

std::shared_ptr<const ModuleTree> PairTrees::Target(Message* warning) { return target_.Get(warning); }
std::shared_ptr<const ModuleTree> PairTrees::Golden(Message* warning) { return golden_.Get(warning); }

void Containers::AddAncestorsOf(const NameParts& op) {
  tree_.ForEachAround(op.full, [&](std::string_view name) { return names_.Insert(name); });
  // Module.a.b.Linear: the path is all but the class, and "a" contains "a.b".
  if (!IsModuleName(op.full)) return;
  for (std::string_view path = WithoutLast(op.base); path.find('.') != std::string_view::npos;) {
    path = WithoutLast(path);
    if (!paths_[static_cast<size_t>(op.direction)].Insert(path)) break;
  }
}

bool Containers::Contains(const NameParts& op) const {
  if (names_.Has(op.full)) return true;
  if (!IsModuleName(op.full)) return false;
  return paths_[static_cast<size_t>(op.direction)].Has(WithoutLast(op.base));
}

}  // namespace msprobe
