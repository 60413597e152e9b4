// Inputs and outputs of the modules of PyTorch and their gradients, for the series of a monitor.
//
// The graph of the backward pass is not changed: a full backward hook of PyTorch puts a node at the inputs of the
// module, which sums the gradients of their uses inside before those from outside join them, and so changes bits of the
// training. Here the gradients of inputs are read at the edges that lead from the module to them, and summed apart.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bindings/monitor/monitor_journal.h"
#include "bindings/monitor/torch/tap_call.h"
#include "bindings/python/py.h"

namespace msprobe {

/// A module that is watched.
struct TapSite {
  size_t index = 0;
  bool forward = true, backward = true;
  int64_t group = -1;  // in the order of first calls
  int64_t forwards = 0, backwards = 0;
  struct Open {
    uint64_t since;  // the number of the next node of the graph
    int64_t depth;
    bool again;  // in a backward pass
  };
  std::vector<Open> open;                          // the calls that have begun
  std::vector<std::pair<uint64_t, uint32_t>> few;  // row -> series, of the first: these are most of what is asked for
  std::unordered_map<uint64_t, uint32_t> numbers;  // row -> series, of all others
  std::unordered_map<uint64_t, int64_t> seen;      // row -> how often in this step
};

class ModuleTaps final : public TapOwner, public std::enable_shared_from_this<ModuleTaps> {
 public:
  struct Options {
    Ref owner;  // of the journal
    MonitorJournal* journal = nullptr;
    int64_t micro_batches = 1;  // after so many calls rows count from 0 again
    int threads = 1;
    Ref declare;    // (site, is gradient, is output, place or -1, turn, group) -> the number of a series
    Ref otherwise;  // (numbers, tensors): takes what cannot be read here
    /// Rows as TrainerMonitorV2 has them: inputs when the module begins, only tensors, each row counted for itself.
    bool by_row = false;
  };

  explicit ModuleTaps(Options options) : options_(std::move(options)) {}
  /// Gives the journal what was read whenever somebody asks it.
  void Attach();

  TapSite* Add(bool forward, bool backward);
  /// Before and after a module's forward.
  void Before(TapSite* site, PyObject* args, PyObject* kwargs);
  void After(TapSite* site, PyObject* module, PyObject* args, PyObject* kwargs, PyObject* output);
  /// Takes what is left of gradients of which some never came.
  void Finish();
  /// The optimizer has stepped: calls count from 0 again.
  void NextStep();
  /// A backward pass began within the forward of a module for the first time when hooks had long been put off: of the
  /// step so far gradients may be missing. Tells it once.
  bool TakeSurprise() { return std::exchange(surprise_, false); }
  /// (site, place) of outputs whose gradient nobody knows, for the module uses them itself or gives them twice.
  std::set<std::pair<size_t, size_t>> TakeLeftOut() { return std::exchange(left_out_, {}); }
  /// Lets go of what it calls.
  void Remove();

  void Begun(std::shared_ptr<TapCall> call) override { unfinished_.push_back(std::move(call)); }
  void PassBegins() override;
  TapGradient Read(PyObject* gradient) override;
  TensorReading ReadMemory(const TensorView& sum) override;
  void TakeGradients(TapSite* site, const std::vector<TapGradient>& inputs,
                     const std::vector<TapGradient>& outputs) override;
  void Forget(const TapCall* call) override;

 private:
  struct Value {
    Value(PyObject* item, const TensorReading* reading = nullptr) : item(item), reading(reading) {}
    PyObject* item;                // borrowed
    const TensorReading* reading;  // of what was here
  };
  struct Row {
    TapSite* site;
    bool gradient, output;
    int64_t place, turn;
    std::optional<TensorReading> reading;  // empty: the row has no values
  };
  /// A call that is to be hooked, when the outermost module ends.
  struct OpenCall {
    std::shared_ptr<TapCall> call;
    TapSite* site;
    uint64_t since;
    std::vector<GradEdge> outputs, inputs;
    std::vector<size_t> output_positions, input_positions;
    bool outputs_hooked;
  };
  void HookOpenCalls();
  void HookOutputs(const OpenCall& one);
  /// What cannot be read here.
  struct Unread {
    std::vector<uint32_t> numbers;
    std::vector<PyObject*> items;
  };
  void Note(TapSite* site, bool gradient, bool output, int64_t turn, const std::vector<Value>& values, Unread* unread);
  void TakeOtherwise(const Unread& unread);
  void SettleRows();
  uint32_t Number(const Row& row);
  void TakeForward(TapSite* site, PyObject* args, PyObject* kwargs, PyObject* output);
  void HookBackward(TapSite* site, const TapSite::Open& open, PyObject* args, PyObject* output);

  Options options_;
  std::vector<std::unique_ptr<TapSite>> sites_;
  std::vector<std::shared_ptr<TapCall>> unfinished_;
  // Done together: between two modules the caches belong to the training, which makes each piece several times dearer.
  std::vector<Row> rows_;
  std::vector<OpenCall> open_calls_;
  int64_t groups_ = 0;
  int64_t depth_ = 0;  // of watched modules that run
  // Some models differentiate within a forward, before the outermost module has ended: theirs are hooked at once. That
  // shows in the first forwards, in which all are; later one of several is, to notice it.
  bool at_once_ = false, surprise_ = false;
  std::set<std::pair<size_t, size_t>> left_out_;
  int64_t forwards_ = 0;  // of outermost modules, with calls to hook
  TapSite* outermost_ = nullptr;
  int64_t calls_ = 0;
};

/// Callables for register_forward_pre_hook() and register_forward_hook(), both with kwargs. New references; null with
/// an error.
PyObject* NewBeforeTap(std::shared_ptr<ModuleTaps> taps, TapSite* site);
PyObject* NewAfterTap(std::shared_ptr<ModuleTaps> taps, TapSite* site);

}  // namespace msprobe
