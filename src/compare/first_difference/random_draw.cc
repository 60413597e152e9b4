#include "compare/first_difference/random_draw.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "compare/round_off/ruler.h"
#include "compare/values/item_views.h"
#include "ops/op_name.h"
#include "ops/op_traits.h"

namespace msprobe {
namespace {

constexpr double kSigmas = 6;  // of the norm of what is left by a draw
constexpr double kRoomOfGuess = 0.1;
constexpr double kRoom = 1e-3;  // rounding of halves

double NumberOr(const StatValue& v, double otherwise) {
  return v.IsNumber() && std::isfinite(v.AsDouble()) ? v.AsDouble() : otherwise;
}

/// What is dropped of the elements; 0 where the call drops none, negative where it does not say.
double DroppedOf(const ItemViews& call) {
  double out = -1;
  for (const ItemView& item : call.items()) {
    if (item.tensor || !item.stats[kMax].IsNumber() || item.dtype != "<class 'float'>") continue;
    const bool named = item.suffix.ends_with(".p") || item.suffix.ends_with(".dropout_p");
    if (named || item.suffix == ".input.1") out = item.stats[kMax].AsDouble();
    if (named) break;
  }
  return out;
}

const ItemView* First(const ItemViews& call, bool result) {
  for (const ItemView& item : call.items()) {
    if (item.tensor && IsResult(item.state) == result) return &item;
  }
  return nullptr;
}

/// The rest of what is dropped is scaled up, so that the square of the norm is that of the input over what is kept.
bool IsDroppedFrom(const ItemView& input, const ItemView& output, double dropped, double room) {
  const double norm = NumberOr(input.stats[kNorm], 0), result = NumberOr(output.stats[kNorm], 0);
  const double largest = Amplitude(input), kept = 1 - dropped;
  if (norm == 0 || kept <= 0) return true;
  const double mean = norm * norm / kept;
  const double deviation = std::sqrt(dropped / (kept * kept * kept)) * largest * norm;
  return std::fabs(result * result - mean) <= kSigmas * deviation + kRoom * mean &&
         Amplitude(output) <= largest / kept * (1 + room);
}

/// What was drawn: nothing where the results are the input.
bool IsDrawn(const ItemView& input, const ItemView& output) {
  const auto same = [&](Stat k) { return SameValue(input.stats[k], output.stats[k]); };
  return !(same(kMax) && same(kMin) && same(kNorm));
}

/// As the golden run has it.
double DroppedBy(const ItemView& input, const ItemView& output) {
  const double norm = NumberOr(input.stats[kNorm], 0), result = NumberOr(output.stats[kNorm], 0);
  return result > 0 ? std::clamp(1 - norm * norm / (result * result), 0.0, 0.95) : 0;
}

}  // namespace

bool DrawsRandomly(std::string_view op_name) {
  return DrawsRandomNumbers(op_name) || ArithmeticOf(op_name) == Arithmetic::kAttention;
}

Status Draws::NoteEqual(size_t op) {
  if (alike_ || !DrawsRandomNumbers(in_.pair.target->ops().NameAt(op))) return OkStatus();
  ItemViews call(*in_.pair.target, in_.pair.options.mode);
  MSP_RETURN_IF_ERROR(call.Read(op));
  const ItemView *input = First(call, false), *result = First(call, true);
  alike_ = input && result && result->stats[kNorm].IsNumber() && IsDrawn(*input, *result);
  return OkStatus();
}

StatusOr<bool> Draws::AreOthers(size_t op) const {
  const DumpPair& pair = in_.pair;
  const OpDistance& d = in_.distances[op];
  if (alike_ || !(d.output > 1) || d.rounded > 1 || d.argument || d.shapes) return false;
  const uint32_t golden_op = in_.plan.golden_of[op];
  const std::string_view name = pair.target->ops().NameAt(op);
  if (!DrawsRandomly(name)) return false;
  ItemViews target(*pair.target, pair.options.mode), golden(*pair.golden, pair.options.mode);
  MSP_RETURN_IF_ERROR(target.Read(op));
  MSP_RETURN_IF_ERROR(golden.Read(golden_op));
  double dropped = DroppedOf(target);
  if (ArithmeticOf(name) == Arithmetic::kAttention) return dropped > 0;
  const ItemView *input = First(target, false), *a = First(target, true), *b = First(golden, true);
  if (!a || !b) return false;
  // Numbers drawn for a shape, or into a tensor, say nothing by themselves; channels and affine draws no simple law.
  const std::string_view api = ApiOrClassOf(name);
  const bool plain = api == "dropout" || api == "dropout_" || api == "Dropout";
  if (!input || !a->stats[kNorm].IsNumber() || !plain) return true;
  if (!IsDrawn(*input, *a) || !IsDrawn(*input, *b)) return false;
  // Dumps of modules do not say how much is dropped: the golden run's results do, about.
  const double room = dropped < 0 ? kRoomOfGuess : kRoom;
  if (dropped < 0) dropped = DroppedBy(*input, *b);
  return dropped > 0 && IsDroppedFrom(*input, *a, dropped, room) && IsDroppedFrom(*input, *b, dropped, room);
}

}  // namespace msprobe
