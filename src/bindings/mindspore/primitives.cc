#include "bindings/mindspore/primitives.h"

#include <unordered_map>
#include <utility>

#include "capture/op_name.h"

namespace msprobe {
namespace {

struct Named {
  Ref object;
  const std::string* base;
  Ref attributes;  // null: none
};

std::unordered_map<PyObject*, Named>& NamedPrimitives() {
  static auto* names = new std::unordered_map<PyObject*, Named>;  // never destroyed: it holds Python objects
  return *names;
}

}  // namespace

void NamePrimitive(PyObject* primitive, const char* base, PyObject* attributes) {
  Named named{Ref::Borrow(primitive), InternName(base), attributes == nullptr ? Ref() : Ref::Borrow(attributes)};
  NamedPrimitives().try_emplace(primitive, std::move(named));
}

const std::string* NameOfPrimitive(PyObject* primitive) {
  const auto found = NamedPrimitives().find(primitive);
  return found == NamedPrimitives().end() ? nullptr : found->second.base;
}

PyObject* AttributesOfPrimitive(PyObject* primitive) {
  const auto found = NamedPrimitives().find(primitive);
  return found == NamedPrimitives().end() ? nullptr : found->second.attributes.get();
}

bool IsPrimitiveName(const std::string& base) { return base.starts_with("Primitive."); }

}  // namespace msprobe
