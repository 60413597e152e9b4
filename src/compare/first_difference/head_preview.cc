#include "compare/first_difference/head_preview.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "compare/round_off/ruler.h"
#include "compare/values/op_diff.h"
#include "json/members.h"
#include "json/parser.h"
#include "json/scan.h"
#include "ops/op_traits.h"

namespace msprobe {
namespace {

constexpr size_t kLargeBytes = size_t{32} << 20;   // of a dump that is worth a preview
constexpr size_t kManyOps = 128;                   // of a dump of tensors, whose values take longer than its text
constexpr size_t kPreviewBytes = size_t{1} << 20;  // that are looked at
constexpr size_t kTaskBytes = 256;                 // where the dump's task stands

struct HeadOp {
  std::string_view name, text;
};

/// The complete ops in the first bytes of a dump.
std::vector<HeadOp> HeadOf(const MappedFile& file) {
  std::vector<HeadOp> ops;
  const std::string_view text = file.text().substr(0, kPreviewBytes);
  const size_t start = SkipSpace(text, 0);
  if (start == text.size() || text[start] != '{') return ops;
  MemberScanner top(text, start + 1);
  Member m;
  while (top.NextKey(&m) == MemberScanner::Step::kMember) {
    if (m.key == "task" && StartsWith(text.substr(m.begin), "\"structure\"")) return ops;
    if (m.key != "data" || text[m.begin] != '{') {
      if (top.SkipValue(&m) != MemberScanner::Step::kMember) return ops;
      continue;
    }
    MemberScanner data(text, m.begin + 1);
    while (data.Next(&m) == MemberScanner::Step::kMember) {
      if (!m.escaped && text[m.begin] == '{') ops.push_back({m.key, text.substr(m.begin, m.end - m.begin)});
    }
    return ops;
  }
  return ops;
}

}  // namespace

Message HeadPreview(const FilePair& files) {
  const StatusOr<MappedFile> target = MappedFile::Open(files.target), golden = MappedFile::Open(files.golden);
  // What is wrong with the files the comparison itself will say.
  if (!target.ok() || !golden.ok()) return {};
  const bool large = std::min(target->text().size(), golden->text().size()) >= kLargeBytes;
  const bool tensors = Contains(target->text().substr(0, kTaskBytes), "\"tensor\"");
  if (!large && !tensors) return {};
  std::unordered_map<std::string_view, std::string_view> partners;
  for (const HeadOp& op : HeadOf(*golden)) partners.emplace(op.name, op.text);
  DiffOptions options;
  const bool checksums = Contains(target->text().substr(0, kPreviewBytes), "\"md5\"");
  options.mode = checksums ? CompareMode::kChecksum : CompareMode::kStatistics;
  JsonDoc a, b;
  OpDiff diff;
  size_t seen = 0, agree = 0;
  std::string first;
  for (const HeadOp& op : HeadOf(*target)) {
    const auto partner = partners.find(op.name);
    if (partner == partners.end() || HasArbitraryValues(op.name)) continue;
    if (!ParseJson(op.text, op.name, &a).ok() || !ParseJson(partner->second, op.name, &b).ok()) break;
    DiffOps(op.name, a, op.name, &b, options, &diff);
    const OpDistance distance = DistanceOf(diff, options.mode);
    const bool same = !(distance.input > 1) && !(distance.output > 1) && !distance.argument && !distance.shapes;
    ++seen;
    agree += same;
    if (!same && first.empty()) first = OneLine(op.name);
  }
  if (seen == 0 || (!large && seen < kManyOps)) return {};
  if (agree == seen && tensors) return Msg("the statistics of the first {} ops agree", seen);
  if (agree == seen) return Msg("the first {} ops agree", seen);
  return Msg("{} of the first {} ops agree; first difference: {}", agree, seen, first);
}

}  // namespace msprobe
