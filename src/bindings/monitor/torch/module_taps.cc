#include "bindings/monitor/torch/module_taps.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "bindings/python/framework.h"
#include "bindings/python/hook_object.h"
#include "bindings/python/runtime.h"
#include "bindings/python/tensor_record.h"
#include "bindings/torch/autograd_graph.h"
#include "bindings/torch/identity.h"
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

std::vector<PyObject*> ItemsOf(PyObject* value) {
  std::vector<PyObject*> items;
  if (PyTuple_Check(value)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); ++i) items.push_back(PyTuple_GET_ITEM(value, i));
  } else if (PyList_Check(value)) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(value); ++i) items.push_back(PyList_GET_ITEM(value, i));
  }
  return items;
}

std::vector<PyObject*> TensorsOf(PyObject* args, PyObject* kwargs) {
  std::vector<PyObject*> tensors = ItemsOf(args);
  PyObject *key = nullptr, *value = nullptr;
  for (Py_ssize_t at = 0; PyDict_Check(kwargs) && PyDict_Next(kwargs, &at, &key, &value);) tensors.push_back(value);
  std::erase_if(tensors, [](PyObject* item) { return !IsTensor(item); });
  return tensors;
}

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
    PyObject* result = nullptr;
    if (taps_->armed && count >= 4) {
      Shielded([&] { result = taps_->After(site_, a[0], a[1], a[2], a[3]); });
    }
    if (result == nullptr) Py_RETURN_NONE;
    return result;
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
  if (options_.by_row && !InBackward()) {
    Rows rows;
    List(site, false, false, 0, TensorsOf(args, kwargs), &rows);
    Take(rows);
  }
  if (!site->backward) return;
  ++depth_;
  site->open.push_back(torch_objects().Grad() ? NextSequence() : 0);
}

PyObject* ModuleTaps::After(TapSite* site, PyObject* module, PyObject* args, PyObject* kwargs, PyObject* output) {
  static PyObject* const training = PyUnicode_InternFromString("training");
  const InTool guard;
  if (site->forward && !InBackward() && (options_.by_row || AttrIsTrue(module, training))) {
    TakeForward(site, args, kwargs, output);
  }
  if (!site->backward || site->open.empty()) return nullptr;
  const uint64_t since = site->open.back();
  site->open.pop_back();
  PyObject* result = torch_objects().Grad() ? HookBackward(site, since, args, output) : nullptr;
  if (--depth_ <= 0) {
    depth_ = 0;
    TapWalk().Forget();
  }
  return result;
}

void ModuleTaps::TakeForward(TapSite* site, PyObject* args, PyObject* kwargs, PyObject* output) {
  if (site->group < 0) site->group = groups_++;
  Rows rows;
  if (!options_.by_row) List(site, false, false, site->forwards, TensorsOf(args, kwargs), &rows);
  List(site, false, true, site->forwards, IsTensor(output) ? std::vector<PyObject*>{output} : ItemsOf(output), &rows);
  Take(rows);
  site->forwards = (site->forwards + 1) % options_.micro_batches;
}

PyObject* ModuleTaps::HookBackward(TapSite* site, uint64_t since, PyObject* args, PyObject* output) {
  const std::vector<PyObject*> outputs = PyTuple_Check(output) ? ItemsOf(output) : std::vector<PyObject*>{output};
  const std::vector<PyObject*> given = ItemsOf(args);
  std::vector<size_t> wanted, positions;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (WantsGradient(outputs[i])) wanted.push_back(i);
  }
  if (wanted.empty()) return nullptr;
  std::vector<GradEdge> from, to;
  for (size_t i = 0; i < given.size(); ++i) {
    if (!WantsGradient(given[i])) continue;
    positions.push_back(i);
    to.push_back(EdgeOf(given[i]));
  }
  const auto call = std::make_shared<TapCall>(shared_from_this(), site, given.size(), outputs.size());
  for (const size_t i : wanted) from.push_back(EdgeOf(outputs[i]));
  if (!to.empty()) {
    std::vector<InputEdge> edges;
    TapWalk().FindEdges(from, since, to, &edges);
    call->HookInputs(edges, positions);  // of one tensor given twice the first place has the gradient
  }
  std::vector<PyObject*> replaced;
  std::vector<Ref> views;
  // A node of its own for each of several: the module may use one output to make another.
  for (size_t k = 0; k < wanted.size(); ++k) {
    PyObject* tensor = outputs[wanted[k]];
    if (wanted.size() > 1 && std::find(given.begin(), given.end(), tensor) == given.end()) {
      Ref view(PyObject_CallMethodOneArg(tensor, torch_names.view_as, tensor));
      if (!view) return PyErr_Clear(), nullptr;
      replaced.push_back(tensor);
      views.push_back(view);
      from[k] = EdgeOf(view.get());
    }
    if (!from[k].is_leaf) call->HookOutput(from[k], wanted[k]);
  }
  if (replaced.empty()) return nullptr;
  PyObject* result = ReplaceTensors(output, replaced, views);
  if (result == nullptr) PyErr_Clear();
  return result;
}

void ModuleTaps::TakeGradients(TapSite* site, const std::vector<Ref>& inputs, const std::vector<Ref>& outputs) {
  const InTool guard;
  const auto items = [](const std::vector<Ref>& gradients) {
    std::vector<PyObject*> out;
    for (const Ref& gradient : gradients) out.push_back(gradient ? gradient.get() : Py_None);
    return out;
  };
  Rows rows;
  List(site, true, false, site->backwards, items(inputs), &rows);
  List(site, true, true, site->backwards, items(outputs), &rows);
  Take(rows);
  site->backwards = (site->backwards + 1) % options_.micro_batches;
}

void ModuleTaps::List(TapSite* site, bool gradient, bool output, int64_t turn, const std::vector<PyObject*>& items,
                      Rows* rows) {
  int64_t place = 0;
  for (PyObject* item : items) {
    if (options_.by_row && !IsTensor(item)) continue;
    rows->numbers.push_back(Number(site, gradient, output, options_.by_row || items.size() > 1 ? place : -1, turn));
    rows->items.push_back(item);
    ++place;
  }
}

uint32_t ModuleTaps::Number(TapSite* site, bool gradient, bool output, int64_t place, int64_t turn) {
  constexpr int kPlaceBits = 24;
  const uint64_t row = (static_cast<uint64_t>(place + 1) << 2) | (gradient ? 2U : 0U) | (output ? 1U : 0U);
  if (options_.by_row) turn = site->seen[row]++;
  const uint64_t key = (static_cast<uint64_t>(turn) << (kPlaceBits + 2)) | row;
  for (const auto& [known, series] : site->few) {
    if (known == key) return series;
  }
  if (const auto known = site->numbers.find(key); known != site->numbers.end()) return known->second;
  Ref made(PyObject_CallFunction(options_.declare.get(), "nOOLLL", static_cast<Py_ssize_t>(site->index),
                                 gradient ? Py_True : Py_False, output ? Py_True : Py_False,
                                 static_cast<long long>(place), static_cast<long long>(turn),
                                 static_cast<long long>(std::max<int64_t>(site->group, 0))));
  const auto number = made ? PyLong_AsLong(made.get()) : -1;
  if (number < 0) throw std::runtime_error(TakeError());
  constexpr size_t kFew = 8;
  const auto series = static_cast<uint32_t>(number);
  if (site->few.size() < kFew) return site->few.emplace_back(key, series).second;
  return site->numbers.emplace(key, series).first->second;
}

void ModuleTaps::Take(const Rows& rows) {
  if (rows.items.empty()) return;
  const std::vector<size_t> left = options_.journal->TakeItems(rows.numbers, rows.items, options_.threads, true);
  if (left.empty() || !options_.otherwise) return;
  Ref numbers(PyList_New(0)), tensors(PyList_New(0));
  for (const size_t i : left) {
    Ref number(PyLong_FromUnsignedLong(rows.numbers[i]));
    if (!numbers || !tensors || !number) return PyErr_Clear();
    if (PyList_Append(numbers.get(), number.get()) != 0 || PyList_Append(tensors.get(), rows.items[i]) != 0) {
      return PyErr_Clear();
    }
  }
  // Guarded there.
  Ref done(PyObject_CallFunctionObjArgs(options_.otherwise.get(), numbers.get(), tensors.get(), nullptr));
  if (!done) PyErr_Clear();
}

void ModuleTaps::Finish() {
  const auto unfinished = std::exchange(unfinished_, {});
  for (const auto& call : unfinished) call->Finish();
}

void ModuleTaps::NextStep() {
  unfinished_.clear();
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
