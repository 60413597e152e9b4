#include "diagnose/overflow/mechanism.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "json/value.h"
#include "ops/op_name.h"
#include "tensor/kernels/finfo.h"

namespace msprobe {
namespace {

/// What was recorded of one value: of a tensor, or a number among the arguments.
struct Figure {
  std::string name;  // "input.0"
  DType dtype = DType::kUnknown;
  int64_t elements = -1;  // -1: not known
  int64_t nans = -1;      // likewise
  std::vector<int64_t> shape;
  bool ranged = false;  // max and min are known
  double max = 0, min = 0;

  bool finite() const { return ranged && std::isfinite(max) && std::isfinite(min); }
};

std::optional<double> NumberIn(const JsonValue& v, const char* key) {
  const JsonValue* number = v.Find(key);
  return number && number->IsNumber() ? std::optional(number->Number()) : std::nullopt;
}

std::optional<Figure> FigureOf(const Item& item) {
  if (item.leaf == nullptr || !item.leaf->IsObject()) return std::nullopt;
  const JsonValue& leaf = *item.leaf;
  Figure out;
  out.name = item.suffix.substr(item.suffix.starts_with('.') ? 1 : 0);
  if (const auto value = NumberIn(leaf, "value")) {
    out.max = out.min = *value;
    out.ranged = true;
    out.elements = 1;
    return out;
  }
  const JsonValue *dtype = leaf.Find("dtype"), *shape = leaf.Find("shape");
  if (!dtype || !dtype->IsString() || !shape || !shape->IsArray()) return std::nullopt;
  out.dtype = ParseDType(dtype->Text());
  out.elements = 1;
  for (const JsonValue& d : shape->Items()) {
    out.elements = d.IsInt() && out.elements >= 0 ? out.elements * d.Int() : -1;
    out.shape.push_back(d.IsInt() ? d.Int() : -1);
  }
  if (const JsonValue* nans = leaf.Find("nan_count"); nans && nans->IsInt()) out.nans = nans->Int();
  const auto max = NumberIn(leaf, "Max"), min = NumberIn(leaf, "Min");
  out.ranged = max && min;
  if (out.ranged) out.max = *max, out.min = *min;
  return out;
}

std::optional<Figure> Given(std::span<const Item> items, std::initializer_list<std::string_view> suffixes) {
  for (const std::string_view suffix : suffixes) {
    const auto at = std::ranges::find(items, suffix, &Item::suffix);
    if (at != items.end()) return FigureOf(*at);
  }
  return std::nullopt;
}

std::string Number(double v) { return fmt::format("{:.6g}", v); }

/// With so many digits that it does not read as the number that it is beyond: 1.00000012 of float32.
std::string Beyond(double v, double limit) {
  int digits = 6;
  while (digits < 17 && fmt::format("{:.{}g}", v, digits) == fmt::format("{:.{}g}", limit, digits)) ++digits;
  return fmt::format("{:.{}g}", v, digits == 6 ? digits : digits + 1);
}

bool Is(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

/// "truediv" of "__truediv__", "div" of "div_", "log" of MindSpore's "Log".
std::string WordOf(std::string_view op) {
  std::string word(ApiOrClassOf(op));
  word.erase(0, word.find_first_not_of('_'));
  word.erase(word.find_last_not_of('_') + 1);
  std::ranges::transform(word, word.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return word;
}

Message ZeroIn(const Figure& f) {
  if (f.dtype == DType::kUnknown) return Msg("{} is 0", f.name);
  return f.min == 0 ? Msg("{} has Min 0", f.name) : Msg("{} has Max 0", f.name);
}

/// Zero is known to be in it: it ends there.
bool HasZero(const Figure& f) { return f.finite() && (f.max == 0 || f.min == 0); }

Message OfLabels(const std::string& word, std::span<const Item> items) {
  if (!Is(word, {"cross_entropy", "nll_loss", "crossentropyloss", "nllloss"})) return {};
  const auto labels = Given(items, {".input.1", ".input.target"});
  const auto ignored = Given(items, {".input.ignore_index"});
  const double index = ignored ? ignored->max : -100;
  if (!labels || !IsInteger(labels->dtype) || !labels->finite()) return {};
  if (labels->max != index || labels->min != index) return {};
  return Msg("every label is {}, which is ignored: it is the mean of nothing ({})", Number(index), labels->name);
}

Message OfLogarithm(const std::string& word, std::span<const Item> items) {
  if (!Is(word, {"log", "log2", "log10", "log1p"})) return {};
  const auto x = Given(items, {".input.0", ".input.input"});
  const double zero = word == "log1p" ? -1 : 0;
  if (!x || !x->finite() || x->min > zero) return {};
  return x->min < zero ? Msg("it takes the logarithm of a negative number: {} has Min {}", x->name, Number(x->min))
                       : Msg("it takes the logarithm of zero: {} has Min {}", x->name, Number(x->min));
}

Message OfDivision(const std::string& word, std::span<const Item> items) {
  const bool own = Is(word, {"reciprocal", "rtruediv", "rdiv"});
  if (!own && !Is(word, {"div", "divide", "true_divide", "truediv", "itruediv", "realdiv", "remainder", "fmod"}))
    return {};
  const auto divisor = own ? Given(items, {".input.0", ".input.input"}) : Given(items, {".input.1", ".input.other"});
  if (!divisor || !HasZero(*divisor)) return {};
  return Msg("it divides by zero: {}", ZeroIn(*divisor));
}

Message OfPower(const std::string& word, std::span<const Item> items) {
  if (!Is(word, {"pow", "ipow", "float_power"})) return {};
  const auto base = Given(items, {".input.0", ".input.input"}), power = Given(items, {".input.1", ".input.exponent"});
  if (!base || !power || !base->finite() || !power->finite() || power->max != power->min) return {};
  if (power->max < 0 && HasZero(*base))
    return Msg("it raises zero to the power {}: {}", Number(power->max), ZeroIn(*base));
  if (base->min < 0 && power->max != std::floor(power->max))
    return Msg("it raises a negative number to the power {}: {} has Min {}", Number(power->max), base->name,
               Number(base->min));
  return {};
}

Message OfRoot(const std::string& word, std::span<const Item> items) {
  if (!Is(word, {"sqrt", "rsqrt"})) return {};
  const auto x = Given(items, {".input.0", ".input.input"});
  if (!x || !x->finite()) return {};
  if (x->min < 0) return Msg("it takes the root of a negative number: {} has Min {}", x->name, Number(x->min));
  return word == "rsqrt" && x->min == 0 ? Msg("it divides by the root of zero: {} has Min 0", x->name) : Message();
}

Message OfDomain(const std::string& word, std::span<const Item> items) {
  const bool arc = Is(word, {"acos", "asin", "arccos", "arcsin"}), tanh = Is(word, {"atanh", "arctanh", "erfinv"});
  if (!arc && !tanh) return {};
  const auto x = Given(items, {".input.0", ".input.input"});
  if (!x || !x->finite()) return {};
  const double most = std::max(std::abs(x->max), std::abs(x->min));
  if (arc ? most <= 1 : most < 1) return {};
  const double worst = std::abs(x->max) == most ? x->max : x->min;
  return Msg("{} is not defined there: {} reaches {}", word, x->name,
             most == 1 ? Number(worst) : Beyond(worst, std::copysign(1.0, worst)));
}

Message OfExponential(const std::string& word, std::span<const Item> items, DType result) {
  if (!Is(word, {"exp", "expm1", "exp2", "sinh", "cosh"}) || !IsFloating(result)) return {};
  const auto x = Given(items, {".input.0", ".input.input"});
  if (!x || !x->finite()) return {};
  const double largest = InfoOf(result).largest;
  const bool half = Is(word, {"sinh", "cosh"});  // of a sum of two exponentials
  const double limit = word == "exp2" ? std::log2(largest) : std::log(largest) + (half ? std::log(2.0) : 0);
  const double most = half ? std::max(std::abs(x->max), std::abs(x->min)) : x->max;
  if (most <= limit) return {};
  return Msg("{} of {} is beyond {}, whose largest argument is {:.4g} ({})", word, Number(most), DTypeName(result),
             limit, x->name);
}

Message OfNothing(const std::string& word, std::span<const Item> items) {
  const auto x = Given(items, {".input.0", ".input.input"});
  if (!x || x->elements < 0) return {};
  if (x->elements == 0 && Is(word, {"mean", "nanmean", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "mseloss",
                                    "l1loss", "cross_entropy", "nll_loss", "kl_div", "binary_cross_entropy",
                                    "binary_cross_entropy_with_logits", "var", "std", "var_mean", "std_mean"}))
    return Msg("it is the mean of nothing: {} has no elements", x->name);
  if (x->elements == 1 && Is(word, {"var", "std", "var_mean", "std_mean"}))
    return Msg("it is the variance of a single value, divided by none: {} has one element", x->name);
  return {};
}

/// Of an op whose result is a number of sums and products of finite ones: it left what its type can hold.
Message OfRange(const std::string& word, std::span<const Item> items, const Figure& result, bool backward) {
  const FInfo& info = InfoOf(result.dtype);
  if (!IsFloating(result.dtype) || !result.ranged || (!std::isinf(result.max) && !std::isinf(result.min))) return {};
  double most = 0, terms = 1;
  std::string where;
  for (const Item& item : items) {
    if (item.state == ItemState::kOutput || item.state == ItemState::kParameterGrad) continue;
    const auto f = FigureOf(item);
    if (!f || !f->ranged || f->dtype == DType::kUnknown || !IsFloating(f->dtype)) continue;
    if (!f->finite()) return {};
    const double size = std::max(std::abs(f->max), std::abs(f->min));
    if (where.empty() || size > most) most = size, where = f->name;
    terms = std::max(terms, static_cast<double>(f->elements));
  }
  if (where.empty()) return {};
  if (Is(word, {"to", "half", "type", "bfloat16", "float", "cast"}) && !backward)
    return most > info.largest ? Msg("{} cannot hold {}: its largest number is {} ({})", DTypeName(result.dtype),
                                     Number(most), Number(info.largest), where)
                               : Message();
  if (!Is(word, {"linear",
                 "matmul",
                 "mm",
                 "bmm",
                 "addmm",
                 "baddbmm",
                 "einsum",
                 "rmatmul",
                 "conv1d",
                 "conv2d",
                 "conv3d",
                 "add",
                 "radd",
                 "iadd",
                 "sub",
                 "rsub",
                 "isub",
                 "mul",
                 "rmul",
                 "imul",
                 "multiply",
                 "sum",
                 "cumsum",
                 "prod",
                 "pow",
                 "square",
                 "norm",
                 "vector_norm",
                 "dot",
                 "linalg_norm",
                 "linalg_vector_norm",
                 "mse_loss"}))
    return {};
  // Sums of products of what is given never get there: something else made it, such as a kernel.
  const bool grows = !Is(word, {"prod", "pow"});
  if (grows && 2 * terms * std::max(most, 1.0) * std::max(most, 1.0) < info.largest) return {};
  return Msg("the result is beyond {}, whose largest number is {}: what it is given reaches {} ({})",
             DTypeName(result.dtype), Number(info.largest), Number(most), where);
}

/// Gradients that are infinite where the function ends.
Message OfBackward(const std::string& word, std::span<const Item> forward) {
  const auto x = Given(forward, {".input.0", ".input.input"});
  if (Is(word, {"sqrt", "log", "log2", "log10", "rsqrt", "reciprocal"}) && x && x->finite() && x->min == 0)
    return Msg("the gradient of {} at zero is infinite: {} of its forward call has Min 0", word, x->name);
  if (Is(word, {"std", "var", "std_mean"}) && x && x->finite() && x->max == x->min && word != "var")
    return Msg("the gradient of {} is not defined where all values are equal: {} of its forward call", word, x->name);
  if (Is(word, {"pow", "float_power"})) {
    const auto power = Given(forward, {".input.1", ".input.exponent"});
    if (x && power && HasZero(*x) && power->finite() && power->max == power->min && power->max < 1 && power->max != 0)
      return Msg("the gradient of the power {} at zero is infinite: {} of its forward call", Number(power->max),
                 x->name);
  }
  return {};
}

/// Of a softmax whose scores are masked: it is NaN exactly where a whole row is -inf.
Message OfMaskedRows(const std::string& word, std::span<const Item> items, const Figure& result) {
  if (!Is(word, {"softmax", "log_softmax", "logsoftmax"})) return {};
  const auto scores = Given(items, {".input.0", ".input.input"});
  const auto axis = Given(items, {".input.1", ".input.dim", ".input.axis"});
  if (!scores || !scores->ranged || !axis || axis->dtype != DType::kUnknown || result.nans <= 0) return {};
  const bool masked = scores->min == -std::numeric_limits<double>::infinity();
  if (!masked || scores->max == std::numeric_limits<double>::infinity() || std::isnan(scores->max)) return {};
  const auto rank = static_cast<double>(result.shape.size());
  const double at = axis->max < 0 ? axis->max + rank : axis->max;
  if (at < 0 || at >= rank) return {};
  const int64_t size = result.shape[static_cast<size_t>(at)];
  if (size <= 0 || result.elements <= 0 || result.nans % size != 0) return {};
  const int64_t rows = result.nans / size, all = result.elements / size;
  return rows == 1 ? Msg("{} of its {} rows is masked as a whole: nothing but -inf is left in it ({}, {} in a row)",
                         rows, all, scores->name, size)
                   : Msg("{} of its {} rows are masked as a whole: nothing but -inf is left in them ({}, {} in a row)",
                         rows, all, scores->name, size);
}

/// The first output that is not finite.
std::optional<Figure> BadResult(std::span<const Item> items) {
  for (const Item& item : items) {
    if (item.state != ItemState::kOutput && item.state != ItemState::kParameterGrad) continue;
    const auto f = FigureOf(item);
    if (f && f->ranged && !f->finite()) return f;
  }
  return std::nullopt;
}

}  // namespace

Message MechanismOf(std::string_view op, std::span<const Item> items, std::span<const Item> forward) {
  const auto result = BadResult(items);
  if (!result) return {};
  const std::string word = WordOf(op);
  const bool backward = ParseOpName(op).direction == OpDirection::kBackward;
  if (backward) {
    const Message out = OfBackward(word, forward);
    return out.empty() ? OfRange(word, items, *result, true) : out;
  }
  for (Message out :
       {OfLabels(word, items), OfNothing(word, items), OfLogarithm(word, items), OfDivision(word, items),
        OfPower(word, items), OfRoot(word, items), OfDomain(word, items), OfExponential(word, items, result->dtype),
        OfMaskedRows(word, items, *result), OfRange(word, items, *result, false)}) {
    if (!out.empty()) return out;
  }
  return {};
}

}  // namespace msprobe
