#include "bindings/backward/param_grads.h"

#include <utility>
#include <vector>

#include "bindings/python/kept.h"
#include "bindings/python/runtime.h"
#include "bindings/python/tensor_record.h"
#include "bindings/python/values.h"

namespace msprobe {
namespace {

std::vector<std::weak_ptr<ParamGrads>>& OpenGrads() {
  static auto* open = new std::vector<std::weak_ptr<ParamGrads>>;
  return *open;
}

}  // namespace

void ParamGrads::Add(PyObject* parameter, const char* name, const std::function<Ref()>& read) {
  Runtime& r = rt();
  const bool wanted = r.aside == 0 && called == r.generation && !r.options.structure && r.options.backward &&
                      (!r.filter.has_names() || r.filter.CheckName(OpName{base, 0, NameForm::kPlain}));
  // Read first, for another thread may bring the gradient of another parameter meanwhile.
  Record part;
  if (wanted) {
    const Ref grad = read();
    if (r.recorder->save_policy().saves()) part.save = SaveMode::kDeferred;  // its name is known below
    part.Key(name);
    part.BeginList();
    RecordValue(&part, grad ? grad.get() : Py_None, nullptr, 1);
    part.EndList();
  }
  if (generation != r.generation) {
    generation = r.generation;
    seen = 0;
    record = nullptr;  // the recorder took it back at the end of its step
  } else if (first == parameter) {
    Finish();
  }
  if (!wanted) return;
  if (record == nullptr) {
    first = parameter;
    record = r.recorder->Acquire({base, counts->param_grads.Next(), NameForm::kParamGrad});
    record->keep_unfinished = !r.trigger.active();
  }
  record->Append(part);
  part.held.clear();
  if (record->save == SaveMode::kNow) SavePending(record);
  if (record->save == SaveMode::kNone) DropPending(record);
  if (++seen >= expected) Finish();
}

void ParamGrads::Finish() {
  seen = 0;
  if (record == nullptr || generation != rt().generation) return;
  InTool guard;
  FinishRecord(std::exchange(record, nullptr));
}

void ListParamGrads(const ParamGradsPtr& grads) {
  if (!std::exchange(grads->listed, true)) OpenGrads().push_back(grads);
}

void FinishParamGrads() {
  auto& open = OpenGrads();
  std::erase_if(open, [](const std::weak_ptr<ParamGrads>& g) { return g.expired(); });
  for (const auto& weak : open) {
    if (auto grads = weak.lock()) grads->Finish();
  }
}

}  // namespace msprobe
