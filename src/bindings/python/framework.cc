#include "bindings/python/framework.h"

namespace msprobe {
namespace {

CaptureFramework& None() {
  static auto* none = new CaptureFramework;  // never destroyed, as the hooks that ask it
  return *none;
}

}  // namespace

CaptureFramework* current_framework = &None();

void SetFramework(CaptureFramework* chosen) { current_framework = chosen; }

}  // namespace msprobe
