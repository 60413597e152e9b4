#include <algorithm>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "checks/pack_compare.h"
#include "checks/sequence_ratio.h"

namespace msprobe {
namespace {

constexpr double kSameFrame = 0.8;
constexpr std::string_view kNoMatch = "no match stack";

struct Frame {
  std::string_view file, function, code;
};

/// "File PATH, line N, in FUNCTION, CODE", where only the path may hold spaces as well.
Frame ReadFrame(std::string_view text) {
  Frame out;
  const size_t line = text.find(", line ");
  const size_t in = line == std::string_view::npos ? line : text.find(", in ", line);
  if (!StartsWith(text, "File ") || in == std::string_view::npos) return out;
  const size_t end = text.find(", ", in + 5);
  out.file = BaseName(text.substr(5, line - 5));
  out.function = text.substr(in + 5, end == std::string_view::npos ? end : end - in - 5);
  if (end != std::string_view::npos) out.code = text.substr(end + 2);
  return out;
}

bool SameStack(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    const Frame x = ReadFrame(a[i]), y = ReadFrame(b[i]);
    const double file = !x.file.empty() && x.file == y.file ? 1 : 0, function = x.function == y.function ? 1 : 0;
    if ((file + function + 1) / 3 < kSameFrame) return false;  // however alike the code is
    if ((file + function + SequenceRatio(x.code, y.code)) / 3 < kSameFrame) return false;
  }
  return true;
}

SheetValue Stack(const RandomCall* call) {
  if (!call) return SheetValue::Of(std::string(kNoMatch));
  std::string out;
  for (const std::string& frame : call->stack) {
    if (!out.empty()) out += '\n';
    out += frame;
  }
  return SheetValue::Of(out);
}

class RandomTable {
 public:
  void Add(const std::string& op, int64_t rank, const RandomCall* bench, const RandomCall* cmp) {
    const int64_t a = bench ? bench->count : 0, b = cmp ? cmp->count : 0;
    const bool same = bench && cmp && a == b;
    if (!same) out_.verdict = PackVerdict::kError;
    out_.sheet.rows.push_back({SheetValue::Of(op), SheetValue::Of(static_cast<double>(rank)), Stack(bench), Stack(cmp),
                               SheetValue::Of(static_cast<double>(a)), SheetValue::Of(static_cast<double>(b)),
                               SheetValue::Of(same)});
  }

  /// Each call of one side with the first of the other that is left and alike.
  void AddOp(const std::string& op, int64_t rank, const std::vector<RandomCall>& bench,
             const std::vector<RandomCall>& cmp) {
    std::vector<bool> taken(cmp.size());
    for (const RandomCall& call : bench) {
      size_t at = cmp.size();
      // The same stack first, so that near ones do not take its place.
      for (size_t i = 0; i < cmp.size() && at == cmp.size(); ++i) {
        if (!taken[i] && cmp[i].stack == call.stack) at = i;
      }
      for (size_t i = 0; i < cmp.size() && at == cmp.size(); ++i) {
        if (!taken[i] && SameStack(cmp[i].stack, call.stack)) at = i;
      }
      if (at < cmp.size()) taken[at] = true;
      Add(op, rank, &call, at < cmp.size() ? &cmp[at] : nullptr);
    }
    for (size_t i = 0; i < cmp.size(); ++i) {
      if (!taken[i]) Add(op, rank, nullptr, &cmp[i]);
    }
  }

  PackPart Take() { return std::move(out_); }

 private:
  PackPart out_{{"random", {"op", "rank", "bench_stack", "cmp_stack", "bench_count", "cmp_count", "check_result"}, {}}};
};

}  // namespace

PackPart CompareRandomCalls(const Pack& bench, const Pack& cmp) {
  using Ops = std::vector<std::pair<std::string, std::vector<RandomCall>>>;
  static const Ops kNone;
  static const std::vector<RandomCall> kNoCalls;
  RandomTable table;
  std::set<int64_t> ranks;
  for (const auto& [rank, ops] : bench.random) ranks.insert(rank);
  for (const auto& [rank, ops] : cmp.random) ranks.insert(rank);
  for (const int64_t rank : ranks) {
    const auto left = bench.random.find(rank), right = cmp.random.find(rank);
    const Ops &a = left == bench.random.end() ? kNone : left->second,
              &b = right == cmp.random.end() ? kNone : right->second;
    const auto calls = [](const Ops& ops, const std::string& name) -> const std::vector<RandomCall>& {
      for (const auto& [op, list] : ops) {
        if (op == name) return list;
      }
      return kNoCalls;
    };
    for (const auto& [op, list] : a) table.AddOp(op, rank, list, calls(b, op));
    for (const auto& [op, list] : b) {
      if (calls(a, op).empty()) table.AddOp(op, rank, kNoCalls, list);
    }
  }
  return table.Take();
}

}  // namespace msprobe
