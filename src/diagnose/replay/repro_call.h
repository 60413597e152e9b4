// The call of an op as Python text.
#pragma once

#include <string>

#include "diagnose/replay/op_call.h"

namespace msprobe {

/// An expression of t(key), which gives a tensor: "F.linear(t('input.0'), t('input.1'), None)". Text of the dump is in
/// it only as quoted text or where it is a plain identifier.
std::string PythonText(const OpCall& call);

}  // namespace msprobe
