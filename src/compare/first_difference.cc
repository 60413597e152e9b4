#include "compare/first_difference.h"

#include <fmt/core.h>

#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "base/text.h"
#include "match/op_name.h"

namespace msprobe {
namespace {

constexpr float kStandsOut = 10;  // an op is to blame only when its output is this much further apart than its inputs
constexpr float kStandsOutLater = 1000;      // and, behind a difference from outside, this much further than round-off
constexpr float kCoarsestTravels = 1.6e-2f;  // tolerance of bfloat16; that of float8 would hide too much

bool Differs(float distance) { return distance > 1; }

/// Names of everything that contains an op which differs: these pass a difference on.
class Containers {
 public:
  /// Without entries modules are known by their paths.
  explicit Containers(const ConstructFile* construct) {
    if (!construct) return;
    for (const ConstructEntry& e : construct->entries) parents_.emplace(e.name, e.parent);
  }

  void AddAncestorsOf(const OpName& op) {
    std::string_view name = op.full;
    for (auto it = parents_.find(name); it != parents_.end() && !it->second.empty(); it = parents_.find(name)) {
      name = it->second;
      if (!names_.emplace(name).second) break;
    }
    // Module.a.b.Linear: the path is all but the class, and "a" contains "a.b".
    if (!StartsWith(op.full, "Module.") && !StartsWith(op.full, "Cell.")) return;
    for (std::string_view path = Parent(op.base); path.find('.') != std::string_view::npos;) {
      path = Parent(path);
      if (!paths_[static_cast<size_t>(op.direction)].emplace(path).second) break;
    }
  }

  /// The module that calls the API `name`; "" if not known.
  std::string_view ModuleAround(std::string_view name) const {
    const auto it = parents_.find(name);
    return it == parents_.end() || StartsWith(name, "Module.") || StartsWith(name, "Cell.") ? std::string_view()
                                                                                            : it->second;
  }

  bool Contains(const OpName& op) const {
    if (names_.count(op.full)) return true;
    if (!StartsWith(op.full, "Module.") && !StartsWith(op.full, "Cell.")) return false;
    return paths_[static_cast<size_t>(op.direction)].count(Parent(op.base)) > 0;
  }

 private:
  static std::string_view Parent(std::string_view s) {
    return s.substr(0, s.rfind('.') == std::string_view::npos ? 0 : s.rfind('.'));
  }
  std::unordered_map<std::string_view, std::string_view> parents_;
  std::unordered_set<std::string_view> names_;
  std::unordered_set<std::string_view> paths_[4];
};

std::string ForwardNameOf(const OpName& op) {
  std::string out(op.base);
  if (op.number_last) return out + ".forward." + std::string(op.number);
  return out + "." + std::string(op.number) + ".forward";
}

/// A backward op can only be judged when the values that its forward kept are known to agree. What has no inputs in the
/// dump (gradients of parameters, saved values) can only be the first difference of all.
bool ForwardAgrees(const DumpPair& pair, const OpDistances& distances, const OpName& op, bool anything_before) {
  if (op.direction == OpDirection::kForward) return true;
  if (op.direction != OpDirection::kBackward) return !anything_before;
  const auto forward = pair.target->FindOp(ForwardNameOf(op));
  if (!forward) return !anything_before;
  return !Differs(distances[*forward].input) && !Differs(distances[*forward].output);
}

/// Puts all distances in units of the coarsest round-off up to their op.
void LetRoundOffTravel(OpDistances* distances) {
  float coarsest = 0;
  for (OpDistance& d : *distances) {
    if (d.tolerance == 0) continue;
    coarsest = std::max(coarsest, std::min(d.tolerance, kCoarsestTravels));
    const float scale = d.tolerance / std::max(coarsest, d.tolerance);
    d.input *= scale;
    d.output *= scale;
  }
}

std::string Percent(double v) { return fmt::format("{:.3g} %", v); }

/// What to say about the row: its largest relative error, or the difference in kind.
std::string DetailOf(const OpDiff& op, size_t row, CompareMode mode) {
  const DiffRow& r = op.rows[row];
  const ItemView &a = op.target[row], &b = op.golden[static_cast<size_t>(r.golden)];
  if (a.shape != b.shape) return "shape " + a.shape + " against " + b.shape;
  if (mode == CompareMode::kChecksum) return "checksum " + a.checksum + " against " + b.checksum;
  static constexpr const char* kNames[] = {"Max", "Min", "Mean", "Norm"};
  // Norm first: it sums up the tensor.
  for (const size_t k : {size_t{kNorm}, size_t{kMax}, size_t{kMin}, size_t{kMean}}) {
    const StatDiff& d = r.diff[k];
    if (d.diff_cell == StatDiff::Cell::kZero || d.diff_cell == StatDiff::Cell::kNA) continue;
    if (d.rel_cell == StatDiff::Cell::kNumber) {
      // Below this a norm alone says nothing; the others may.
      if (k == kNorm && d.rel < 1e-3 && r.diff[kMax].rel > d.rel) continue;
      return std::string(kNames[k]) + " differs by " + Percent(d.rel);
    }
    std::string text = std::string(kNames[k]) + " ";
    a.stats[k].AppendText(&text);
    text += " against ";
    b.stats[k].AppendText(&text);
    return text;
  }
  return "values differ";
}

/// Largest relative error over the inputs.
std::string InputsOf(const OpDiff& op, CompareMode mode) {
  double worst = -1;
  for (size_t i = 0; i < op.rows_used; ++i) {
    if (!IsResult(op.target[i].state)) worst = std::max(worst, RowError(op, i, mode));
  }
  if (worst < 0) return {};
  return worst == 0 ? "are equal" : fmt::format("agree to {:.2g}", worst);
}

/// Fills the texts; `outputs` says on which side of the op the difference is.
Status Describe(const DumpPair& pair, const Containers& containers, bool outputs, FirstDifference* out) {
  JsonDoc a, b;
  OpDiff diff;
  MSP_RETURN_IF_ERROR(DiffOpAt(pair, out->op, &a, &b, &diff));
  out->name = pair.target->ops()[out->op].name;
  const double tolerance = OpTolerance(diff);
  double worst = -1;
  for (size_t i = 0; i < diff.rows_used; ++i) {
    if (IsResult(diff.target[i].state) != outputs || diff.rows[i].golden == kNoItem) continue;
    const double distance = RowDistance(diff, i, pair.options.mode, tolerance);
    if (distance <= worst) continue;
    worst = distance;
    out->item = diff.target[i].suffix;
    out->detail = DetailOf(diff, i, pair.options.mode);
  }
  if (out->kind == FirstDifference::Kind::kDType) {
    for (size_t i = diff.rows_used; i-- > 0;) {
      if (!DTypeChanges(diff, i)) continue;
      out->item = diff.target[i].suffix;
      out->detail = "is of " + std::string(diff.target[i].dtype) + " against " +
                    std::string(diff.golden[static_cast<size_t>(diff.rows[i].golden)].dtype);
    }
  } else {
    out->inputs = InputsOf(diff, pair.options.mode);
  }
  out->module = containers.ModuleAround(out->name);
  if (!pair.stacks) return OkStatus();
  const OpName name = ParseOpName(out->name);
  auto stack = pair.stacks->StackOf(out->name);
  if (!stack && name.direction == OpDirection::kBackward) stack = pair.stacks->StackOf(ForwardNameOf(name));
  if (stack) UserFrame(pair.stacks->Frames(*stack), &out->frame, &out->function);
  return OkStatus();
}

/// The table does not need construct.json, so a bad one is no reason to lose it.
ConstructFile OpenConstruct(const DumpPair& pair, std::string* warning) {
  const std::string path = JoinPath(DirName(pair.target->path()), "construct.json");
  if (!IsRegularFile(path)) return {};
  StatusOr<ConstructFile> file = ConstructFile::Open(path);
  *warning = file.ok() ? file->truncated : file.status().message() + " (modules are told apart by their names instead)";
  return file.ok() ? std::move(*file) : ConstructFile();
}

}  // namespace

std::string_view DifferenceKindText(FirstDifference::Kind kind) {
  switch (kind) {
    case FirstDifference::Kind::kNone: return "none";
    case FirstDifference::Kind::kOp: return "op";
    case FirstDifference::Kind::kCommunication: return "communication";
    case FirstDifference::Kind::kInput: return "input";
    case FirstDifference::Kind::kParameter: return "parameter";
    case FirstDifference::Kind::kArgument: return "argument";
    case FirstDifference::Kind::kShape: return "shape";
    case FirstDifference::Kind::kMissingOp: return "missing_op";
    case FirstDifference::Kind::kExtraOp: return "extra_op";
    case FirstDifference::Kind::kDType: return "dtype";
    case FirstDifference::Kind::kGrows: return "grows";
  }
  return "";
}

StatusOr<Differences> FindDifferences(const DumpPair& pair, OpDistances distances) {
  using Kind = FirstDifference::Kind;
  Differences out;
  const std::vector<OpSpan>& ops = pair.target->ops();
  for (size_t i = ops.size(); i-- > 0;) {
    if (!distances[i].dtypes) continue;
    out.dtype.kind = Kind::kDType;
    out.dtype.op = i;
    ++out.dtype_ops;
  }
  LetRoundOffTravel(&distances);
  size_t i = 0;
  while (i < ops.size() && !Differs(distances[i].input) && !Differs(distances[i].output)) ++i;
  if (i == ops.size() && out.dtype_ops == 0) return out;
  const ConstructFile construct = OpenConstruct(pair, &out.warning);
  Containers containers(&construct);
  if (out.dtype_ops > 0) MSP_RETURN_IF_ERROR(Describe(pair, containers, false, &out.dtype));
  if (i == ops.size()) return out;
  const size_t earliest = i;
  const bool from_outside = Differs(distances[earliest].input);
  for (; i < ops.size() && out.first.kind == Kind::kNone; ++i) {
    const OpDistance d = distances[i];
    if (!Differs(d.input) && !Differs(d.output)) continue;
    const OpName name = ParseOpName(ops[i].name);
    const bool jumps = Differs(d.output) && !Differs(d.input) && !d.blind && d.output >= kStandsOut * d.input &&
                       (!from_outside || d.output >= kStandsOutLater);
    if (jumps && !containers.Contains(name) && ForwardAgrees(pair, distances, name, i > earliest)) {
      out.first.kind = StartsWith(name.full, "Distributed.") ? Kind::kCommunication : Kind::kOp;
      out.first.op = i;
    }
    containers.AddAncestorsOf(name);
  }
  if (out.first.kind == Kind::kNone || (from_outside && out.first.op != earliest)) {
    out.source.kind = from_outside ? Kind::kInput : Kind::kGrows;
    out.source.op = earliest;
    MSP_RETURN_IF_ERROR(Describe(pair, containers, !from_outside, &out.source));
  }
  if (out.first.kind != Kind::kNone) MSP_RETURN_IF_ERROR(Describe(pair, containers, true, &out.first));
  return out;
}

bool UserFrame(const std::vector<std::string>& frames, std::string* place, std::string* function) {
  constexpr std::string_view kFile = "File ", kLine = ", line ", kIn = ", in ";
  for (const std::string& frame : frames) {
    const size_t line = frame.find(kLine);
    if (!StartsWith(frame, kFile) || line == std::string::npos) continue;
    const std::string_view path = std::string_view(frame).substr(kFile.size(), line - kFile.size());
    if (Contains(path, "/torch/") || Contains(path, "/mindspore/") || Contains(path, "/msprobe/")) continue;
    const size_t number = line + kLine.size();
    const size_t comma = frame.find(',', number);
    if (comma == std::string::npos) continue;
    *place = std::string(BaseName(path)) + ":" + frame.substr(number, comma - number);
    if (frame.compare(comma, kIn.size(), kIn) == 0) {
      const size_t from = comma + kIn.size();
      *function = frame.substr(from, frame.find(',', from) - from);
    }
    return true;
  }
  return false;
}

}  // namespace msprobe
