#include "bindings/monitor/torch/module_taps.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "bindings/python/framework.h"
#include "bindings/python/hook_object.h"
#include "bindings/python/runtime.h"
#include "bindings/python/tensor_record.h"
#include "bindings/torch/autograd_graph.h"
#include "bindings/torch/torch_objects.h"

namespace msprobe {
namespace {

// Inside a backward pass: a forward is a recomputation, whose values were there before.
bool InBackward() {
  const TorchObjects& o = torch_objects();
  Ref pass(o.current_pass != nullptr ? PyObject_CallNoArgs(o.current_pass) : nullptr);
  const bool inside = pass && PyLong_AsLongLong(pass.get()) != -1;
  if (PyErr_Occurred()) PyErr_Clear();
  return inside;
}

template <typename Item = PyObject*>
std::vector<Item> ItemsOf(PyObject* value) {
  std::vector<Item> items;
  if (PyTuple_Check(value)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); ++i) items.emplace_back(PyTuple_GET_ITEM(value, i));
  } else if (PyList_Check(value)) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(value); ++i) items.emplace_back(PyList_GET_ITEM(value, i));
  }
  return items;
}

template <typename Item>
std::vector<Item> TensorsOf(PyObject* args, PyObject* kwargs) {
  std::vector<Item> tensors = ItemsOf<Item>(args);
  PyObject *key = nullptr, *value = nullptr;
  for (Py_ssize_t at = 0; PyDict_Check(kwargs) && PyDict_Next(kwargs, &at, &key, &value);) tensors.emplace_back(value);
  std::erase_if(tensors, [](const Item& one) { return !IsTensor(one.item); });
  return tensors;
}

constexpr size_t kMostRows = 16384;
constexpr int64_t kNoMoreCalls = int64_t{1} << 32;  // of a row that has no series for a further one
constexpr uint32_t kNoSeries = ~0U;

bool WantsGradient(PyObject* item) { return IsTensor(item) && AttrIsTrue(item, torch_names.requires_grad); }

class Tap : public Hook {
 public:
  Tap(std::shared_ptr<ModuleTaps> taps, TapSite* site) : taps_(std::move(taps)), site_(site) {}

 protected:
  std::shared_ptr<ModuleTaps> taps_;
  TapSite* site_;
};

class BeforeTap final : public Tap {
 public:
  using Tap::Tap;
  // module, args, kwargs
  PyObject* Call(PyObject* const* a, Py_ssize_t count) override {
    if (taps_->armed && count >= 3) Shielded([&] { taps_->Before(site_, a[1], a[2]); });
    Py_RETURN_NONE;
  }
};

class AfterTap final : public Tap {
 public:
  using Tap::Tap;
  // module, args, kwargs, output
  PyObject* Call(PyObject* const* a, Py_ssize_t count) override {
    if (taps_->armed && count >= 4) Shielded([&] { taps_->After(site_, a[0], a[1], a[2], a[3]); });
    Py_RETURN_NONE;
  }
};

}  // namespace

TapSite* ModuleTaps::Add(bool forward, bool backward) {
  auto site = std::make_unique<TapSite>();
  site->index = sites_.size();
  site->forward = forward;
  site->backward = backward;
  return sites_.emplace_back(std::move(site)).get();
}

void ModuleTaps::Before(TapSite* site, PyObject* args, PyObject* kwargs) {
  const InTool guard;
  // Within a backward pass a forward is computed again, which may be left before it ends.
  const bool again = InBackward();
  if (options_.by_row && !again) {
    Unread unread;
    Note(site, false, false, 0, TensorsOf<Value>(args, kwargs), &unread);
    TakeOtherwise(unread);
  }
  if (!site->backward) return;
  if (!again) {
    if (depth_ > 0 && site == outermost_) {
      // An exception left it, and modules within it, open.
      depth_ = 0;
      HookOpenCalls();
    }
    if (depth_ == 0) outermost_ = site, calls_ = 0;
  }
  site->open.push_back({torch_objects().Grad() ? NextSequence() : 0, depth_, again});
  if (!again) ++depth_;
}

void ModuleTaps::After(TapSite* site, PyObject* module, PyObject* args, PyObject* kwargs, PyObject* output) {
  static PyObject* const training = PyUnicode_InternFromString("training");
  const InTool guard;
  if (site->forward && !InBackward() && (options_.by_row || AttrIsTrue(module, training))) {
    TakeForward(site, args, kwargs, output);
  }
  if (!site->backward || site->open.empty()) return;
  const TapSite::Open open = site->open.back();
  site->open.pop_back();
  if (torch_objects().Grad()) HookBackward(site, open, args, output);
  if (!open.again) {
    depth_ = open.depth;
    if (depth_ > 0) return;
    if (!open_calls_.empty()) ++forwards_;
  }
  HookOpenCalls();
}

void ModuleTaps::TakeForward(TapSite* site, PyObject* args, PyObject* kwargs, PyObject* output) {
  if (site->group < 0) site->group = groups_++;
  Unread unread;
  if (!options_.by_row) Note(site, false, false, site->forwards, TensorsOf<Value>(args, kwargs), &unread);
  Note(site, false, true, site->forwards, IsTensor(output) ? std::vector<Value>{output} : ItemsOf<Value>(output),
       &unread);
  TakeOtherwise(unread);
  site->forwards = (site->forwards + 1) % options_.micro_batches;
}

void ModuleTaps::HookBackward(TapSite* site, const TapSite::Open& open, PyObject* args, PyObject* output) {
  const std::vector<PyObject*> outputs = PyTuple_Check(output) ? ItemsOf(output) : std::vector<PyObject*>{output};
  const std::vector<PyObject*> given = ItemsOf(args);
  std::vector<size_t> wanted, positions;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (WantsGradient(outputs[i])) wanted.push_back(i);
  }
  if (wanted.empty()) return;
  std::vector<GradEdge> from, to;
  for (size_t i = 0; i < given.size(); ++i) {
    if (!WantsGradient(given[i])) continue;
    positions.push_back(i);
    to.push_back(EdgeOf(given[i]));
  }
  const auto call = std::make_shared<TapCall>(shared_from_this(), site, given.size(), outputs.size());
  for (const size_t i : wanted) from.push_back(EdgeOf(outputs[i]));
  constexpr int64_t kFirstForwards = 2, kOneOf = 8;
  constexpr size_t kFew = 16;  // of these it costs little
  // Others in each forward.
  const bool now = at_once_ || open.again || sites_.size() <= kFew || forwards_ < kFirstForwards ||
                   (forwards_ + calls_++) % kOneOf == 0 || wanted.size() > 1;
  open_calls_.push_back({call, site, open.since, std::move(from), std::move(to), wanted, std::move(positions), now});
  if (now) HookOutputs(open_calls_.back());
}

// Outputs that nodes of the call itself lead to: at their nodes more arrives than what came from outside.
void ModuleTaps::HookOutputs(const OpenCall& one) {
  std::vector<bool> left(one.outputs.size());
  if (one.outputs.size() > 1) {
    std::vector<InputEdge> inside;
    TapWalk().FindEdges(one.outputs, one.since, one.outputs, &inside);
    for (const InputEdge& edge : inside) left[edge.input] = true;
    for (size_t k = 0; k < one.outputs.size(); ++k) {
      // Of one tensor given twice nobody knows which place it came by, and what was given to the call has other users.
      left[k] = left[k] || std::count(one.outputs.begin(), one.outputs.end(), one.outputs[k]) > 1 ||
                std::find(one.inputs.begin(), one.inputs.end(), one.outputs[k]) != one.inputs.end();
    }
  }
  for (size_t k = 0; k < one.outputs.size(); ++k) {
    if (left[k]) {
      left_out_.emplace(one.site->index, one.output_positions[k]);
    } else if (!one.outputs[k].is_leaf) {
      one.call->HookOutput(one.outputs[k], one.output_positions[k]);
    }
  }
}

void ModuleTaps::HookOpenCalls() {
  const auto calls = std::exchange(open_calls_, {});
  for (const OpenCall& one : calls) {
    if (!one.outputs_hooked) HookOutputs(one);
    if (one.inputs.empty()) continue;
    std::vector<InputEdge> edges;
    TapWalk().FindEdges(one.outputs, one.since, one.inputs, &edges);
    one.call->HookInputs(edges, one.input_positions);  // of one tensor given twice the first place has the gradient
  }
  // Of this thread: a backward pass may run on another than the forward.
  TapWalk().Forget();
}

void ModuleTaps::PassBegins() {
  if (open_calls_.empty()) return;
  surprise_ |= std::any_of(open_calls_.begin(), open_calls_.end(), [](const auto& one) { return !one.outputs_hooked; });
  at_once_ = true;
  HookOpenCalls();
}

TapGradient ModuleTaps::Read(PyObject* gradient) {
  TapGradient out;
  if (gradient == Py_None) return out;
  const InTool guard;
  TensorReading reading;
  if (options_.journal->Read(gradient, options_.threads, &reading)) {
    out.reading = std::move(reading);
  } else {
    out.tensor = Ref::Borrow(gradient);
  }
  return out;
}

TensorReading ModuleTaps::ReadMemory(const TensorView& sum) {
  return options_.journal->ReadMemory(sum, options_.threads);
}

void ModuleTaps::TakeGradients(TapSite* site, const std::vector<TapGradient>& inputs,
                               const std::vector<TapGradient>& outputs) {
  const InTool guard;
  Unread unread;
  for (const bool output : {false, true}) {
    std::vector<Value> values;
    for (const TapGradient& one : output ? outputs : inputs) {
      values.emplace_back(one.tensor ? one.tensor.get() : Py_None, one.reading ? &*one.reading : nullptr);
    }
    Note(site, true, output, site->backwards, values, &unread);
  }
  TakeOtherwise(unread);
  site->backwards = (site->backwards + 1) % options_.micro_batches;
}

void ModuleTaps::Note(TapSite* site, bool gradient, bool output, int64_t turn, const std::vector<Value>& values,
                      Unread* unread) {
  const bool numbered = options_.by_row || values.size() > 1;
  int64_t place = 0;
  for (const Value& value : values) {
    const bool is_tensor = value.reading != nullptr || IsTensor(value.item);
    if (options_.by_row && !is_tensor) continue;
    Row row{site, gradient, output, numbered ? place : -1, turn, {}};
    ++place;
    if (value.reading != nullptr) {
      row.reading = *value.reading;
    } else if (is_tensor) {
      TensorReading reading;
      if (!options_.journal->Read(value.item, options_.threads, &reading)) {
        SettleRows();  // series are declared in the order in which they come
        const uint32_t number = Number(row);
        if (number == kNoSeries) continue;
        options_.journal->journal().Announce({&number, 1});
        unread->numbers.push_back(number);
        unread->items.push_back(value.item);
        continue;
      }
      row.reading = std::move(reading);
    }
    rows_.push_back(std::move(row));
    if (rows_.size() >= kMostRows) SettleRows();  // of many forwards without a step
  }
}

void ModuleTaps::SettleRows() {
  const auto rows = std::exchange(rows_, {});
  if (rows.empty()) return;
  rows_.reserve(rows.size());  // the next step is like this one
  const InTool guard;
  for (const Row& row : rows) {
    // Each for itself: one without a series takes no others with it.
    Shielded([&] {
      const uint32_t number = Number(row);
      if (number == kNoSeries) return;
      if (row.reading) {
        options_.journal->PutReading(number, *row.reading);
      } else {
        options_.journal->journal().Put(number, {});
      }
    });
  }
}

uint32_t ModuleTaps::Number(const Row& r) {
  constexpr int kPlaceBits = 24;
  TapSite* site = r.site;
  const uint64_t row = (static_cast<uint64_t>(r.place + 1) << 2) | (r.gradient ? 2U : 0U) | (r.output ? 1U : 0U);
  const int64_t turn = options_.by_row ? site->seen[row]++ : r.turn;
  if (turn >= kNoMoreCalls) return kNoSeries;
  const uint64_t key = (static_cast<uint64_t>(turn) << (kPlaceBits + 2)) | row;
  for (const auto& [known, series] : site->few) {
    if (known == key) return series;
  }
  if (const auto known = site->numbers.find(key); known != site->numbers.end()) return known->second;
  Ref made(PyObject_CallFunction(options_.declare.get(), "nOOLLL", static_cast<Py_ssize_t>(site->index),
                                 r.gradient ? Py_True : Py_False, r.output ? Py_True : Py_False,
                                 static_cast<long long>(r.place), static_cast<long long>(turn),
                                 static_cast<long long>(std::max<int64_t>(site->group, 0))));
  if (made.get() == Py_None) {
    site->seen[row] = kNoMoreCalls;
    return kNoSeries;
  }
  const auto number = made ? PyLong_AsLong(made.get()) : -1;
  if (number < 0) throw std::runtime_error(TakeError());
  constexpr size_t kFew = 8;
  const auto series = static_cast<uint32_t>(number);
  if (site->few.size() < kFew) return site->few.emplace_back(key, series).second;
  return site->numbers.emplace(key, series).first->second;
}

void ModuleTaps::TakeOtherwise(const Unread& unread) {
  if (unread.items.empty() || !options_.otherwise) return;
  Ref numbers(PyList_New(0)), tensors(PyList_New(0));
  for (size_t i = 0; i < unread.items.size(); ++i) {
    Ref number(PyLong_FromUnsignedLong(unread.numbers[i]));
    if (!numbers || !tensors || !number) return PyErr_Clear();
    if (PyList_Append(numbers.get(), number.get()) != 0 || PyList_Append(tensors.get(), unread.items[i]) != 0) {
      return PyErr_Clear();
    }
  }
  // Guarded there.
  Ref done(PyObject_CallFunctionObjArgs(options_.otherwise.get(), numbers.get(), tensors.get(), nullptr));
  if (!done) PyErr_Clear();
}

void ModuleTaps::Attach() {
  options_.journal->before_use = [weak = weak_from_this()] {
    if (const auto taps = weak.lock()) Shielded([&] { taps->SettleRows(); });
  };
}

void ModuleTaps::Finish() {
  const auto unfinished = std::exchange(unfinished_, {});
  for (const auto& call : unfinished) call->Finish();
}

void ModuleTaps::NextStep() {
  // Freeing a graph may run code of the user, which may call modules.
  const auto unfinished = std::exchange(unfinished_, {});
  const auto calls = std::exchange(open_calls_, {});
  rows_.clear();
  depth_ = 0;
  TapWalk().Forget();
  for (const auto& site : sites_) {
    site->forwards = site->backwards = 0;
    site->open.clear();
    site->seen.clear();
  }
}

void ModuleTaps::Remove() {
  armed = false;
  NextStep();
  options_.declare = options_.otherwise = Ref();
}

void ModuleTaps::Forget(const TapCall* call) {
  std::erase_if(unfinished_, [&](const auto& one) { return one.get() == call; });
}

PyObject* NewBeforeTap(std::shared_ptr<ModuleTaps> taps, TapSite* site) {
  return NewHookObject(std::make_unique<BeforeTap>(std::move(taps), site));
}

PyObject* NewAfterTap(std::shared_ptr<ModuleTaps> taps, TapSite* site) {
  return NewHookObject(std::make_unique<AfterTap>(std::move(taps), site));
}

}  // namespace msprobe
