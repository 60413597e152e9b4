#include "ops/op_traits.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>

#include "base/text.h"
#include "ops/op_name.h"

namespace msprobe {
namespace {

using namespace op_trait;

struct Row {
  Arithmetic arithmetic;
  uint16_t bits;
  std::string_view names;
};
constexpr Row kRows[] = {
#define OPS(arithmetic, traits, names) {Arithmetic::arithmetic, traits, names},
#include "ops/op_traits.def"
};

constexpr OpTwin kTwins[] = {
#define TWIN(mindspore, torch) {#mindspore, #torch},
#include "ops/op_traits.def"
};

#define RESULTS_WITHOUT_VALUE(api, ...) constexpr int kNullResultsOf_##api[] = {__VA_ARGS__};
#include "ops/op_traits.def"
struct NullResults {
  std::string_view api;
  std::span<const int> positions;
};
constexpr NullResults kNullResults[] = {
#define RESULTS_WITHOUT_VALUE(api, ...) {#api, kNullResultsOf_##api},
#include "ops/op_traits.def"
};

constexpr char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// Without underscores at its ends.
constexpr std::string_view Core(std::string_view name) {
  while (!name.empty() && name.front() == '_') name.remove_prefix(1);
  while (!name.empty() && name.back() == '_') name.remove_suffix(1);
  return name;
}

static_assert(std::endian::native == std::endian::little, "Load gives the compiler and the program one number");

/// `n` letters from `p` on as a number.
template <size_t n>
constexpr uint64_t Load(const char* p) {
  uint64_t out = 0;
  if (std::is_constant_evaluated()) {
    for (size_t i = 0; i < n; ++i) out |= uint64_t{static_cast<unsigned char>(p[i])} << 8 * i;
  } else {
    std::memcpy(&out, p, n);
  }
  return out;
}

/// Of a name's length and its first and last eight letters, whatever their case: a few loads, where a hash of letter
/// after letter costs more than the rest of a question.
constexpr uint32_t HashOf(std::string_view core) {
  const char* const begin = core.data();
  const char* const end = begin + core.size();
  uint64_t first = 0, last = 0;
  if (core.size() >= 8) {
    first = Load<8>(begin);
    last = Load<8>(end - 8);
  } else if (core.size() >= 4) {
    first = Load<4>(begin);
    last = Load<4>(end - 4);
  } else if (!core.empty()) {
    first = Load<1>(begin) | Load<1>(begin + core.size() / 2) << 8;
    last = Load<1>(end - 1);
  }
  constexpr uint64_t kLowerCase = 0x2020202020202020;
  uint64_t h = (first | kLowerCase) * 0x9E3779B97F4A7C15 + core.size();
  h = (h ^ h >> 32 ^ (last | kLowerCase)) * 0xD6E8FEB86659FD93;
  return static_cast<uint32_t>(h >> 32);
}

/// Whether `theirs` is `mine`, which is in lower case.
constexpr bool Same(std::string_view mine, std::string_view theirs) {
  if (mine.size() != theirs.size()) return false;
  for (size_t i = 0; i < mine.size(); ++i) {
    if (mine[i] != Lower(theirs[i])) return false;
  }
  return true;
}

/// The names of all rows by their hashes, with open addressing, made by the compiler.
struct Table {
  static constexpr size_t kSlots = 2048;
  struct Slot {
    std::string_view name;
    OpTraits traits;
  };
  std::array<Slot, kSlots> slots{};
  bool unique = true;

  constexpr Table() {
    for (const Row& row : kRows) {
      for (std::string_view rest = row.names; !rest.empty();) {
        const size_t blank = std::min(rest.find(' '), rest.size());
        const std::string_view name = rest.substr(0, blank);
        unique = unique && !Find(name);
        Add(name, {row.arithmetic, row.bits});
        rest.remove_prefix(std::min(blank + 1, rest.size()));
      }
    }
    for (const OpTwin& twin : kTwins) {
      const OpTraits* torch = Find(Core(twin.torch));
      // What mindstudio-probe ignores or excuses goes by its name, not by what it does.
      if (torch && !Find(twin.mindspore))
        Add(twin.mindspore, {torch->arithmetic, static_cast<uint16_t>(torch->bits & ~unsigned{kIgnored | kExcused})});
    }
  }
  constexpr void Add(std::string_view name, OpTraits traits) {
    size_t at = HashOf(name) % kSlots;
    while (!slots[at].name.empty()) at = (at + 1) % kSlots;
    slots[at] = {name, traits};
  }
  constexpr const OpTraits* Find(std::string_view core) const {
    for (size_t at = HashOf(core) % kSlots; !slots[at].name.empty(); at = (at + 1) % kSlots) {
      if (slots[at].name == core || Same(slots[at].name, core)) return &slots[at].traits;
    }
    return nullptr;
  }
};
constexpr Table kTable;
static_assert(kTable.unique, "a name occurs twice in op_traits.def");

/// For each pair of first and last letter (by the sum of the two) the lengths of the names whose values say nothing.
/// Every op is asked about, and few are among them: nearly all are answered here, without the table.
struct ArbitraryLengths {
  std::array<uint32_t, 32> of_ends{};
  static constexpr size_t Ends(std::string_view core) { return (core.front() + core.back()) & 31; }
  constexpr ArbitraryLengths() {
    for (const Table::Slot& slot : kTable.slots) {
      if (slot.traits.Has(kIgnored | kUndefined)) of_ends[Ends(slot.name)] |= 1u << (slot.name.size() & 31);
    }
  }
  constexpr bool MayHold(std::string_view core) const {
    return !core.empty() && (of_ends[Ends(core)] >> (core.size() & 31) & 1);
  }
};
constexpr ArbitraryLengths kArbitraryLengths;

/// Classes that carry the name of their kind: LlamaRMSNorm, QKVParallelLinear, BertSelfAttention.
Arithmetic ByEnding(std::string_view class_name) {
  const auto ends_in = [&](std::string_view end) {
    return class_name.size() >= end.size() && Same(end, class_name.substr(class_name.size() - end.size()));
  };
  if (ends_in("norm")) return Arithmetic::kNormalise;
  if (ends_in("linear") || ends_in("conv1d") || ends_in("conv2d")) return Arithmetic::kProduct;
  if (ends_in("rotaryembedding")) return Arithmetic::kFunction;
  return Arithmetic::kUnknown;
}

}  // namespace

OpTraits TraitsOf(std::string_view api_or_class) {
  constexpr std::string_view kForeach = "foreach_";
  const std::string_view core = Core(api_or_class);
  const OpTraits* known = kTable.Find(core);
  if (!known && StartsWith(core, kForeach)) known = kTable.Find(core.substr(kForeach.size()));
  return known ? *known : OpTraits();
}

namespace {

bool HasArbitrary(std::string_view api, uint16_t traits) {
  return kArbitraryLengths.MayHold(Core(api)) && TraitsOf(api).Has(traits);
}

/// Modules are told apart last: few names come so far.
bool IsArbitraryApi(std::string_view op_name, uint16_t traits) {
  return HasArbitrary(ApiOf(op_name), traits) && !IsModuleName(op_name);
}

}  // namespace

Arithmetic ArithmeticOf(std::string_view op_name) {
  const std::string_view name = WithoutRankSuffix(ApiOrClassOf(op_name));
  const Arithmetic known = TraitsOf(name).arithmetic;
  return known == Arithmetic::kUnknown && IsModuleName(op_name) ? ByEnding(Core(name)) : known;
}

bool IsIgnored(std::string_view api) { return HasArbitrary(api, kIgnored); }
bool IsIgnoredApi(std::string_view op_name) { return IsArbitraryApi(op_name, kIgnored); }
bool HasArbitraryValues(std::string_view op_name) { return IsArbitraryApi(op_name, kIgnored | kUndefined); }

bool OnlyMovesOrCasts(std::string_view op_name) { return TraitsOf(ApiOrClassOf(op_name)).Has(kMoves | kUndefined); }

bool DrawsRandomNumbers(std::string_view op_name) { return TraitsOf(ApiOrClassOf(op_name)).Has(kDraws); }

bool ChangesArguments(std::string_view api) {
  api.remove_prefix(api.rfind('.') + 1);  // npos + 1 is 0
  if (EndsWith(api, "_") && !EndsWith(api, "__")) return true;
  return TraitsOf(api).Has(kInPlace);
}

std::span<const int> ResultsWithoutValue(std::string_view api) {
  for (const NullResults& row : kNullResults) {
    if (row.api == api) return row.positions;
  }
  return {};
}

std::span<const OpTwin> OpTwins() { return kTwins; }

}  // namespace msprobe
