// Primitives: operators that are attributes of Cells. All of one class share its __call__, which is hooked; which of
// them is called tells the name of the entry.
#pragma once

#include <string>

#include "bindings/python/py.h"

namespace msprobe {

/// Calls of this object are entries of `base`; the object is kept, so that its address means it. `attributes`: a dict
/// of what it was made with that entries say, or null.
void NamePrimitive(PyObject* primitive, const char* base, PyObject* attributes);
/// For ApiSpec::name_of.
const std::string* NameOfPrimitive(PyObject* primitive);
/// For ApiSpec::attributes_of.
PyObject* AttributesOfPrimitive(PyObject* primitive);
bool IsPrimitiveName(const std::string& base);

}  // namespace msprobe
