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

// A step begins.
void ParamGrads::Renew() {
  if (generation == rt().generation) return;
  generation = rt().generation;
  seen = 0;
  record = nullptr;  // the recorder took it back at the end of its step
  awaited.clear();
  waiting = 0;
}

void ParamGrads::Await(size_t slot) {
  Renew();
  if (slot >= awaited.size()) awaited.resize(slot + 1);
  if (!awaited[slot]) ++waiting;
  awaited[slot] = true;
}

// Of those that the pass brings.
bool ParamGrads::IsLast(size_t slot) {
  if (slot >= awaited.size() || !awaited[slot]) return false;
  awaited[slot] = false;
  return --waiting == 0 && foreseen;
}

void ParamGrads::Add(size_t slot, const char* name, const std::function<Ref()>& read) {
  Runtime& r = rt();
  const bool wanted = r.aside == 0 && !r.options.structure && r.options.backward &&
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
  Renew();
  if (record != nullptr && slot < told.size() && told[slot]) Finish();
  const bool last = IsLast(slot);
  if (!wanted) return;
  if (record == nullptr) {
    told.clear();
    record = r.recorder->Acquire({base, counts->param_grads.Next(), NameForm::kParamGrad});
    record->keep_unfinished = !r.trigger.active();
  }
  if (slot >= told.size()) told.resize(slot + 1);
  told[slot] = true;
  record->Append(part);
  part.held.clear();
  if (record->save == SaveMode::kNow) SavePending(record);
  if (record->save == SaveMode::kNone) DropPending(record);
  if (++seen >= expected || last) Finish();
}

void ParamGrads::Finish() {
  seen = 0;
  told.clear();
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
