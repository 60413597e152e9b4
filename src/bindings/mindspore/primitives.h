// Primitives: operators that are attributes of Cells. All of one class share its __call__, which is hooked; which of
// them is called tells the name of the entry.
#pragma once

#include <string>

#include "bindings/python/py.h"

namespace msprobe {

/// Calls of this object are entries of `base`; the object is kept, so that its address means it.
void NamePrimitive(PyObject* primitive, const char* base);
/// For ApiSpec::name_of.
const std::string* NameOfPrimitive(PyObject* primitive);
bool IsPrimitiveName(const std::string& base);

}  // namespace msprobe
