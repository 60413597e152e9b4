#include "bindings/mindspore/primitives.h"

#include <unordered_map>

#include "capture/op_name.h"

namespace msprobe {
namespace {

struct Named {
  Ref object;
  const std::string* base;
};

std::unordered_map<PyObject*, Named>& Names() {
  static auto* names = new std::unordered_map<PyObject*, Named>;  // never destroyed: it holds Python objects
  return *names;
}

}  // namespace

void NamePrimitive(PyObject* primitive, const char* base) {
  Names().try_emplace(primitive, Named{Ref::Borrow(primitive), InternName(base)});
}

const std::string* NameOfPrimitive(PyObject* primitive) {
  const auto found = Names().find(primitive);
  return found == Names().end() ? nullptr : found->second.base;
}

bool IsPrimitiveName(const std::string& base) { return base.starts_with("Primitive."); }

}  // namespace msprobe
