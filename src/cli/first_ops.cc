#include "cli/first_ops.h"

#include <algorithm>

#include "base/file.h"
#include "dump/reader.h"
#include "jobs/run_compare.h"

namespace msprobe {
namespace {

using DifferenceKind = FirstDifference::Kind;

std::string_view TextOf(const DumpFile& dump, size_t op) {
  const OpSpan span = dump.ops()[op];
  return dump.file().text().substr(span.offset, span.length);
}

/// What is written of an op of both dumps: its inputs come before its outputs.
DifferenceKind KindOfTexts(std::string_view target, std::string_view golden) {
  const auto [at, other] = std::mismatch(target.begin(), target.end(), golden.begin(), golden.end());
  const auto same = static_cast<size_t>(at - target.begin());
  return target.find("\"output\":") < same ? DifferenceKind::kOp : DifferenceKind::kInput;
}

/// The first op of which other values or checksums are written. Both dumps are of one program.
StatusOr<FirstDifference> FirstOtherBits(const FilePair& files) {
  MSP_ASSIGN_OR_RETURN(const DumpFile target, DumpFile::Open(files.target));
  MSP_ASSIGN_OR_RETURN(const DumpFile golden, DumpFile::Open(files.golden));
  FirstDifference out;
  for (size_t i = 0; i < target.ops().size(); ++i) {
    const std::string_view name = target.ops().NameAt(i);
    const auto other = golden.FindOp(name);
    if (!other) continue;  // the comparison has told of it, or has taken it for another one
    const std::string_view text = TextOf(target, i), wanted = TextOf(golden, *other);
    if (text == wanted) continue;
    out.kind = KindOfTexts(text, wanted);
    out.op = i;
    out.name = name;
    out.detail =
        out.kind == DifferenceKind::kInput ? "other bits in its inputs" : "other bits in its outputs, equal inputs";
    return out;
  }
  return out;
}

}  // namespace

StatusOr<std::map<std::string, NoticedOp>> FirstOps(const std::string& target, const std::string& golden,
                                                    const std::string& output) {
  std::map<std::string, NoticedOp> ops;
  if (!IsDirectory(target) || !IsDirectory(golden)) return ops;
  CompareSettings settings;
  settings.target = target;
  settings.golden = golden;
  settings.output = output;
  settings.html = true;
  MSP_ASSIGN_OR_RETURN(const CompareReport report, RunCompare(settings));
  for (const PairReport& pair : report.pairs) {
    FirstDifference answer = pair.differences.Answer();
    if (answer.kind == DifferenceKind::kNone) {
      MSP_ASSIGN_OR_RETURN(answer, FirstOtherBits(pair.files));
    }
    if (answer.kind == DifferenceKind::kNone) continue;
    const std::string& label = pair.files.label;  // "step0 rank1"
    NoticedOp& op = ops[label.substr(label.rfind(' ') + 1)];
    if (op.step >= 0 && op.step <= pair.files.step) continue;
    op = {pair.files.step, std::move(answer)};
  }
  return ops;
}

}  // namespace msprobe
