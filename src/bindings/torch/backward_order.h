// When the backward of a module is over: autograd runs the node with the highest number that is ready, so what a module
// has of nodes is behind it when one runs that is older than its forward.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

namespace msprobe {

/// Of the backward pass that this thread runs; -1 outside of one, and in older releases.
int64_t CurrentPass();

/// A call whose backward has a place in the order. Numbers of nodes are those of `thread`; each beginning and each end
/// of a call has one number, of all calls.
class OrderedCall {
 public:
  explicit OrderedCall(uint64_t thread);
  virtual ~OrderedCall() = default;
  /// The forward is over.
  void SetReturned();
  uint64_t began() const { return began_; }
  uint64_t returned() const { return returned_; }
  uint64_t thread() const { return thread_; }
  /// From here on its own nodes run: what runs is inside it.
  virtual void Open() = 0;
  /// Nothing more comes in this pass.
  virtual void End() = 0;

 private:
  uint64_t began_, returned_ = 0, thread_;
};

/// What waits for its turn in the backward pass. Each thread that runs nodes has an order of its own, for autograd has
/// a queue for each: several passes at a time, or devices, know nothing of each other.
class BackwardOrder {
 public:
  static BackwardOrder& Get();

  /// What is to be done when nodes older than this run. Where several things are, for calls may have no nodes of their
  /// own, each is done in the place that the other end of the call had in the forward, from the last to the first.
  enum class What : uint8_t { kOpen, kEnd };
  void Add(uint64_t sequence, What what, std::shared_ptr<OrderedCall> call);
  /// A node that this thread made with this number is running, or has run last: what comes before it in the order of
  /// autograd has had its turn. Numbers say nothing of what other threads made.
  void Reach(uint64_t sequence, uint64_t thread);
  /// The same for a call that opens, whose nodes are older than `last`: what it called itself comes later.
  void ReachCall(uint64_t last, const OrderedCall& call);
  /// An op begins, maybe within a backward (recomputation, custom functions), maybe after it.
  void OnForward();
  /// This backward pass is over.
  void EndPass(int64_t pass);
  /// All are.
  void Finish();

 private:
  struct Turn {
    uint64_t sequence;
    What what;
    std::shared_ptr<OrderedCall> call;
    int64_t pass = -1;
    uint64_t place() const { return what == What::kOpen ? call->returned() : call->began(); }
    bool operator<(const Turn& other) const;  // comes later
  };
  using Turns = std::vector<Turn>;  // the next one last
  template <typename Wanted>
  bool RunLast(uint64_t thread, Wanted wanted);

  size_t waiting_ = 0;
  std::map<uint64_t, Turns> turns_;  // by thread
  std::set<int64_t> passes_;         // that tell when they are over
};

}  // namespace msprobe
