// The way of NaN and infinities through a step: where they come from, who carries them on, who absorbs them, and
// through which call they reach another rank.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/communication.h"
#include "diagnose/overflow/overflow_scan.h"

namespace msprobe {

/// Where an op is: position of the rank in the step, index in its dump.
struct OpPlace {
  uint32_t rank = 0, op = 0;
  auto operator<=>(const OpPlace&) const = default;
};

/// A place where bad values begin, and what becomes of them.
struct OverflowSource {
  enum class Kind : uint8_t {
    kOp,             // clean inputs, bad output
    kCommunication,  // as kOp, but what all ranks put in is clean: the reduction overflows, or the transport fails
    kParameter,      // a module's parameter was bad before
    kInput,          // came in from outside: the batch, or a tensor that no op of the dump made
    kUninitialised,  // memory of empty() and its kind that was read before it was written
    kMissingRank,    // received from a rank whose dump is not there
    kMask,           // -inf that was put in on purpose, as masks do
  };
  Kind kind = Kind::kOp;
  std::vector<OpPlace> places;  // one; of a collective all ranks that got a bad result
  OpPlace reader;               // kParameter, kInput, kUninitialised: the op that first took it in; else places[0]
  CommTime time;                // of the reader
  uint8_t kinds = 0;            // BadKind
  uint8_t carried = 0;          // BadKind of everything that came of it
  uint32_t item = 0;            // of the reader's or the op's items (FlattenOp): the first that is bad
  int mask = -1;                // the source of -inf (kMask, or a mask from outside) that this one made NaN of
  bool constant = false;        // an argument of the op is NaN or infinite itself
  bool freed =
      false;  // kUninitialised: it wants a gradient, and nothing but functions outside of modules carried it on
  bool leaf_grad = false;  // kInput: it wants a gradient, as parameters do
  bool own = false;        // kOp: a function of plain tensors that are clean; no other rank has a part in it
  std::string_view api;    // of an own one: "Torch.exp"; called again it is the same fault
  bool weak = false;       // seen in gradients or from outside only: may have come through an unrecorded exchange

  size_t carriers = 0, absorbers = 0;                                     // ops
  std::vector<OpPlace> absorbed_at;                                       // the first few
  std::map<uint32_t, OpPlace> reached;                                    // rank -> the call that brought it there
  size_t open = 0;                                                        // bad outputs that nobody was seen to read
  size_t by_identity = 0, by_statistics = 0, by_shape = 0, by_order = 0;  // how its links were told
  bool absorbed() const { return open == 0 && absorbers > 0; }
  /// An infinity that nothing uses: somebody made finite values of all that came of it, and none of it was NaN.
  bool unused() const { return absorbed() && ((kinds | carried) & kBadNaN) == 0; }
};

/// What the flow needs of a rank.
struct OverflowRank {
  const DumpFile* dump = nullptr;
  OverflowScan scan;
};

/// All sources of a step in logical time. The result depends on the dumps only, not on the number of threads.
std::vector<OverflowSource> FollowOverflow(const std::vector<OverflowRank>& ranks, const CommGraph& graph);

/// Positions of those to name, in logical time: no source that another one may have caused; the best that there is of:
/// lasting ones, absorbed ones. Masks that are absorbed, and memory that nobody used, are not named.
std::vector<size_t> FirstSources(const std::vector<OverflowSource>& sources, const CommGraph& graph);

}  // namespace msprobe
