#include "bindings/torch/late_outputs.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "bindings/python/framework.h"
#include "bindings/python/kept.h"
#include "bindings/python/runtime.h"
#include "bindings/python/values.h"

namespace msprobe {
namespace {

struct LateOutput {
  Record* record;
  uint64_t generation;
  std::unique_ptr<Record> behind;
  Ref output;
};
std::vector<LateOutput>& Late() {
  static auto* late = new std::vector<LateOutput>;  // under the GIL
  return *late;
}

// A list may hold itself.
constexpr int kMostNested = 8;

bool IsLate(PyObject* output, int depth = 0) {
  if (!PyTuple_Check(output) && !PyList_Check(output)) return framework().IsAwaited(output);
  for (Py_ssize_t i = 0; depth < kMostNested && i < PySequence_Fast_GET_SIZE(output); ++i) {
    if (IsLate(PySequence_Fast_GET_ITEM(output, i), depth + 1)) return true;
  }
  return false;
}

void RecordLate(const LateOutput& late) {
  if (late.generation != rt().generation) return;  // the recorder has taken the record back
  InTool guard;
  late.record->KeyLiteral("output");
  RecordAsList(late.record, late.output.get());
  if (late.behind != nullptr) late.record->Append(*late.behind);
  FinishRecord(late.record);
}

}  // namespace

bool KeepUntilArrived(Record* record, std::unique_ptr<Record>* behind, PyObject* output) {
  if (!IsLate(output) || rt().trigger.active()) return false;
  rt().recorder->Reserve(record);
  Late().push_back({record, rt().generation, std::move(*behind), Ref::Borrow(output)});
  return true;
}

void RecordArrived() {
  if (Late().empty()) return;
  std::vector<LateOutput> arrived;
  for (LateOutput& late : Late()) {
    if (!IsLate(late.output.get())) arrived.push_back(std::move(late));
  }
  std::erase_if(Late(), [](const LateOutput& late) { return !late.output; });
  for (const LateOutput& late : arrived) RecordLate(late);
}

void GiveUpLateOutputs() {
  RecordArrived();
  for (const LateOutput& late : std::exchange(Late(), {})) RecordLate(late);
}

}  // namespace msprobe
