#include "diagnose/communication_sides.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/text.h"

namespace msprobe {
namespace {

/// Arguments that results are written to, by name.
constexpr std::array<std::string_view, 7> kBuffers{"gather_list",   "tensor_list",        "output",
                                                   "output_tensor", "output_tensor_list", "output_tensor_lists",
                                                   "output_list"};

/// Whether this tensor is written by the call before anyone reads it.
bool IsBuffer(std::string_view suffix) {
  constexpr std::string_view kInput = ".input.";
  if (!StartsWith(suffix, kInput)) return false;
  std::string_view name = suffix.substr(kInput.size());
  name = name.substr(0, name.find('.'));
  return std::find(kBuffers.begin(), kBuffers.end(), name) != kBuffers.end();
}

bool IsTensor(const ItemView& item) {
  return !StartsWith(item.dtype, "<class") && item.dtype != "N/A" && item.shape != "N/A" &&
         StartsWith(item.shape, "[") && item.dtype.find("ProcessGroup") == std::string_view::npos;
}

/// The last number of ".input.0.3".
size_t LastIndex(std::string_view suffix) {
  size_t out = 0;
  const std::string_view last = suffix.substr(suffix.rfind('.') + 1);
  const auto r = std::from_chars(last.data(), last.data() + last.size(), out);
  return r.ec == std::errc() ? out : std::numeric_limits<size_t>::max();
}

/// Whether a row holds a value that the call gives (input side) or takes (output side).
bool Counts(const ItemView& item, const std::vector<CommTransfer>& transfers) {
  if (!IsTensor(item)) return !IsResult(item.state);  // arguments as they come back say nothing new
  const auto fits = [&](const CommTransfer& t) { return IsResult(item.state) ? t.takes : t.gives; };
  if (transfers.size() > 1) {  // a batch
    const size_t i = LastIndex(item.suffix);
    return i < transfers.size() && fits(transfers[i]);
  }
  if (transfers.empty()) return true;
  return fits(transfers[0]) && !IsBuffer(item.suffix);
}

}  // namespace

Status JudgeCalls(const DumpPair& pair, const RankCalls& calls, OpDistances* distances) {
  // Those of merged graphs are judged already, by what their parts are.
  if (pair.options.layouts) return OkStatus();
  JsonDoc target, golden;
  OpDiff diff;
  for (size_t c = 0; c < calls.rank.calls.size(); ++c) {
    const size_t op = calls.rank.calls[c].op;
    OpDistance& distance = (*distances)[op];
    if (distance.input == 0 && distance.output == 0) continue;
    MSP_RETURN_IF_ERROR(DiffOpAt(pair, op, &target, &golden, &diff));
    const auto counts = [&](size_t row) { return Counts(diff.target[row], calls.transfers[c]); };
    distance = DistanceOf(diff, pair.options.mode, counts);
  }
  return OkStatus();
}

}  // namespace msprobe
