#include "diagnose/anatomy/factor_name.h"

#include <algorithm>
#include <cmath>

namespace msprobe {
namespace {

constexpr int64_t kMostWhole = 4096, kMostUnderRoot = 1024, kMostOfFraction = 12;
constexpr int kLossScale = 8;  // powers of two from 2^8 on are more likely a loss scale than a count

bool Near(double a, double b, double error) { return std::fabs(a - b) <= error * std::fabs(b); }

bool Has(const std::vector<int64_t>& dimensions, int64_t n) {
  return n > 1 && std::find(dimensions.begin(), dimensions.end(), n) != dimensions.end();
}

std::string Inverse(bool inverse, const std::string& text) { return inverse ? "1/" + text : text; }

/// `size` is at least 1.
bool NameWhole(double size, double error, bool inverse, const FactorContext& context, FactorName* out) {
  const double whole = std::round(size);
  // Neighbours are 1/n apart: beyond that any number is near one.
  if (whole < 2 || !Near(size, whole, error)) return false;
  int power = 0;
  const bool two = std::frexp(whole, &power) == 0.5;
  --power;
  if (!two && (whole > static_cast<double>(kMostWhole) || whole * error > 0.05)) return false;
  out->exact = whole;
  if (two && power >= kLossScale) {
    out->text = (inverse ? "2^-" : "2^") + std::to_string(power);
    out->meanings.emplace_back("loss_scale");
    return true;
  }
  const auto n = static_cast<int64_t>(whole);
  out->text = Inverse(inverse, std::to_string(n));
  if (n == context.ranks) out->meanings.emplace_back("world_size");
  if (Has(context.dimensions, n)) out->meanings.emplace_back("size_of_dimension");
  for (const int64_t d : context.dimensions) {
    if (d == n * n && d > 1 &&
        std::find(out->meanings.begin(), out->meanings.end(), "sqrt_of_dimension") == out->meanings.end())
      out->meanings.emplace_back("sqrt_of_dimension");
  }
  return true;
}

bool NameRoot(double size, double error, bool inverse, const FactorContext& context, FactorName* out) {
  const double square = size * size, whole = std::round(square);
  if (whole < 2 || !Near(square, whole, 2 * error)) return false;
  const auto n = static_cast<int64_t>(std::min(whole, 1e9));
  const bool known = Has(context.dimensions, n);
  if (!known && (n > kMostUnderRoot || whole * error > 0.01)) return false;
  out->text = Inverse(inverse, "sqrt(" + std::to_string(n) + ")");
  out->exact = std::sqrt(whole);
  if (known) out->meanings.emplace_back("sqrt_of_dimension");
  return true;
}

bool NameFraction(double size, double error, bool inverse, FactorName* out) {
  if (error > 1e-4) return false;
  for (int64_t under = 2; under <= kMostOfFraction; ++under) {
    const double over = std::round(size * static_cast<double>(under));
    if (over <= static_cast<double>(under) || over > static_cast<double>(kMostOfFraction) ||
        !Near(size * static_cast<double>(under), over, error))
      continue;
    const std::string a = std::to_string(static_cast<int64_t>(over)), b = std::to_string(under);
    out->text = inverse ? b + "/" + a : a + "/" + b;
    out->exact = over / static_cast<double>(under);
    return true;
  }
  return false;
}

}  // namespace

FactorName NameFactor(double factor, double error, const FactorContext& context) {
  FactorName out;
  const double size = std::fabs(factor);
  if (!(size > 0) || !std::isfinite(size)) return out;
  const bool inverse = size < 1;
  const double above = inverse ? 1 / size : size;
  const bool named = NameWhole(above, error, inverse, context, &out) ||
                     NameRoot(above, error, inverse, context, &out) || NameFraction(above, error, inverse, &out);
  if (!named) return {};
  if (inverse) out.exact = 1 / out.exact;
  if (factor < 0) {
    out.text = "-" + out.text;
    out.exact = -out.exact;
  }
  return out;
}

}  // namespace msprobe
