#include "bindings/torch/backward_order.h"

#include <algorithm>
#include <utility>

#include "bindings/backward/node_hook.h"
#include "bindings/python/runtime.h"
#include "bindings/torch/leaf_memo.h"
#include "bindings/torch/torch_objects.h"

namespace msprobe {
namespace {

uint64_t next_place = 1;  // under the GIL

// Told by autograd when the pass of this number is over.
class EndOfPassHook final : public NodeHook {
 public:
  explicit EndOfPassHook(int64_t pass) : pass_(pass) {}
  void Run(PyObject* const*, Py_ssize_t count) override {
    BackwardOrder::Get().EndPass(pass_);
    if (!t_flags.in_tool && count >= 1) LeafMemo::OfThread().End();
  }

 private:
  int64_t pass_;
};

}  // namespace

OrderedCall::OrderedCall(uint64_t thread) : began_(next_place++), thread_(thread) {}

void OrderedCall::SetReturned() { returned_ = next_place++; }

int64_t CurrentPass() {
  const TorchObjects& o = torch_objects();
  if (o.current_pass == nullptr || o.at_end_of_pass == nullptr) return -1;
  Ref pass(PyObject_CallNoArgs(o.current_pass));
  const int64_t number = pass ? PyLong_AsLongLong(pass.get()) : -1;
  PyErr_Clear();
  return number;
}

BackwardOrder& BackwardOrder::Get() {
  static auto* order = new BackwardOrder;  // never destroyed: it holds Python objects
  return *order;
}

bool BackwardOrder::Turn::operator<(const Turn& other) const {
  return sequence != other.sequence ? sequence < other.sequence : place() < other.place();
}

void BackwardOrder::Add(uint64_t sequence, What what, std::shared_ptr<OrderedCall> call) {
  Turn turn{sequence, what, std::move(call), CurrentPass()};
  if (turn.pass >= 0 && passes_.insert(turn.pass).second) {
    Ref hook(NewHookObject(std::make_unique<EndOfPassHook>(turn.pass)));
    Ref done(hook ? PyObject_CallOneArg(torch_objects().at_end_of_pass, hook.get()) : nullptr);
    PyErr_Clear();  // told by the next op, or at stop()
  }
  Turns& turns = turns_[ThreadNumber()];
  turns.insert(std::upper_bound(turns.begin(), turns.end(), turn), std::move(turn));
  ++waiting_;
}

// Of this thread's turns that are `wanted` the next. They may change while one runs.
template <typename Wanted>
bool BackwardOrder::RunLast(uint64_t thread, Wanted wanted) {
  const auto mine = turns_.find(thread);
  if (mine == turns_.end()) return false;
  Turns& turns = mine->second;
  const auto found = std::find_if(turns.rbegin(), turns.rend(), wanted);
  if (found == turns.rend()) return false;
  const Turn turn = std::move(*found);
  turns.erase(std::next(found).base());
  if (turns.empty()) turns_.erase(mine);
  --waiting_;
  turn.what == What::kOpen ? turn.call->Open() : turn.call->End();
  return true;
}

void BackwardOrder::Reach(uint64_t sequence, uint64_t thread) {
  if (waiting_ == 0) return;
  const int64_t pass = CurrentPass();
  const auto before = [&](const Turn& t) {
    return t.sequence > sequence && t.pass == pass && thread == t.call->thread();
  };
  while (RunLast(ThreadNumber(), before)) {
  }
}

void BackwardOrder::ReachCall(uint64_t last, const OrderedCall& call) {
  if (waiting_ == 0) return;
  const int64_t pass = CurrentPass();
  const auto before = [&](const Turn& t) {
    const bool first = t.sequence > last || (t.sequence == last && t.place() > call.returned());
    return first && t.pass == pass && call.thread() == t.call->thread();
  };
  while (RunLast(ThreadNumber(), before)) {
  }
}

void BackwardOrder::OnForward() {
  if (waiting_ == 0) return;
  PyObject* current = torch_objects().current_node;
  if (current == nullptr) return;  // an older release: told by the next node of the backward, or at stop()
  Ref node(PyObject_CallNoArgs(current));
  if (!node) return PyErr_Clear();
  const uint64_t thread = ThreadNumber();
  if (node.get() != Py_None) return Reach(SequenceOf(node.get()), thread);
  while (RunLast(thread, [](const Turn&) { return true; })) {
  }
}

void BackwardOrder::EndPass(int64_t pass) {
  passes_.erase(pass);
  std::vector<uint64_t> threads;
  for (const auto& [thread, turns] : turns_) threads.push_back(thread);
  for (const uint64_t thread : threads) {
    while (RunLast(thread, [&](const Turn& t) { return t.pass == pass; })) {
    }
  }
}

void BackwardOrder::Finish() {
  while (!turns_.empty()) {
    const auto first = turns_.begin();
    if (first->second.empty()) {
      turns_.erase(first);
    } else {
      Shielded([&] { RunLast(first->first, [](const Turn&) { return true; }); });
    }
  }
  passes_.clear();
}

}  // namespace msprobe
