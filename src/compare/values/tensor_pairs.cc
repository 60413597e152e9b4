#include "compare/values/tensor_pairs.h"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/message.h"
#include "base/text.h"
#include "compare/values/custom_metrics.h"
#include "compare/values/dimension_order.h"
#include "compare/values/joined_tensor.h"
#include "compare/values/other_shape.h"
#include "compare/values/postprocess.h"
#include "tensor/files/tensor_file.h"

namespace msprobe {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr size_t kSplitBytes = 256 << 20;  // tensors from this size on are worth threads of their own

void SetAll(MetricCell::Kind kind, TensorDiff* out) { out->cells.fill({kind, 0}); }

void End(TensorOutcome outcome, std::string note, TensorDiff* out) {
  out->outcome = outcome;
  out->note = std::move(note);
}

double Magnitude(const ItemView& item) {
  double out = 0;
  for (const Stat k : {kMax, kMin}) {
    const StatValue& v = item.stats[k];
    if (v.IsNumber() && std::isfinite(v.AsDouble())) out = std::max(out, std::fabs(v.AsDouble()));
  }
  return out;
}

/// The norm sums up the tensor; a single wrong element of many shows against the largest one.
double ErrorOf(const TensorMetrics& m, double rms, double largest) {
  if (m.max_abs_err == 0) return 0;
  double error = rms > 0 ? m.rms_diff / rms : kInfinity;
  if (largest > 0) error = std::max(error, m.max_abs_err / largest);
  return error;
}

const char* NonFiniteNote(const TensorMetrics& m) {
  const bool sign =
      m.target.nan == m.golden.nan && m.target.total() == m.golden.total() && m.target.plus_inf != m.golden.plus_inf;
  return sign ? "The sign of inf in NPU and bench Tensor do not match."
              : "The position of inf or nan in NPU and bench Tensor do not match.";
}

bool IsEmptyShape(const std::string& shape) {
  return shape == "[0]" || Contains(shape, "[0,") || Contains(shape, " 0,") || Contains(shape, " 0]");
}

bool SameFile(const std::string& a, const std::string& b) {
  struct stat x {
  }, y{};
  return stat(a.c_str(), &x) == 0 && stat(b.c_str(), &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

StatusOr<const FileTensor*> OnlyTensor(const TensorFile& file, const std::string& path) {
  if (const FileTensor* tensor = file.tensor()) return tensor;
  return BadInput(Msg("{} holds {} tensors, not one", path, file.tensors().size()));
}

uint64_t BytesOf(const FileTensor& tensor) {
  uint64_t count = ElementSize(tensor.dtype);
  for (const int64_t n : tensor.shape) {
    if (__builtin_mul_overflow(count, static_cast<uint64_t>(n), &count)) return UINT64_MAX;
  }
  return count;
}

constexpr double kFits = 0.02;            // no other order need be tried
constexpr double kClearlyGrouped = 0.5;   // of the error with fewer groups
constexpr double kClearlyTheOther = 100;  // the two ways in which a square weight may lie

void Transpose(FileTensor* tensor) {
  const size_t n = tensor->shape.size();
  std::swap(tensor->shape[n - 2], tensor->shape[n - 1]);
  std::swap(tensor->strides[n - 2], tensor->strides[n - 1]);
}

bool IsSquare(const FileTensor& tensor) {
  const size_t n = tensor.shape.size();
  return n >= 2 && tensor.shape[n - 2] == tensor.shape[n - 1];
}

/// A golden tensor with the elements of the target in another shape, as the target has it; null where it does not fit.
const FileTensor* InShapeOf(const FileTensor& target, const FileTensor& golden, bool transposes, FileTensor* out) {
  *out = golden;
  switch (CompareShapes(target.shape, golden.shape, transposes)) {
    case OtherShape::kTransposed: Transpose(out); return out;
    case OtherShape::kRegrouped: {
      FileTensor plain = golden;
      uint64_t bytes = 0;
      // Only what lies in C order keeps its elements in order.
      if (!SetContiguous(&plain, UINT64_MAX, &bytes) || plain.strides != golden.strides) return nullptr;
      out->shape = target.shape;
      return SetContiguous(out, bytes, &bytes) ? out : nullptr;
    }
    default: return nullptr;
  }
}

/// What comparing a tensor with itself gives; nothing needs to be read.
void SetSame(const FileTensor& tensor, TensorMetrics* out) {
  const size_t element = ElementSize(tensor.dtype);
  if (element == 0) return;  // not even the dtype is known
  out->count = static_cast<int64_t>(BytesOf(tensor) / element);
  out->state = out->count == 0 ? PairState::kEmpty : PairState::kCompared;
  out->identical = true;
  out->scalar = out->count == 1;
  out->cosine_state = out->scalar ? CosineState::kLengthOne : CosineState::kNumber;
  out->cosine = 1;
  out->below_thousandth = out->below_five_thousandths = out->equal = out->count;
}

TensorMetrics MeasurePair(const TensorFile& target_file, const FileTensor& target, const TensorFile& golden_file,
                          const FileTensor& golden) {
  MetricsOptions options;
  options.threads = BytesOf(target) >= kSplitBytes;
  options.release = [&](const void* begin, size_t bytes) {
    target_file.Release(begin, bytes);
    golden_file.Release(begin, bytes);
  };
  return MeasureTensors(target.view(), golden.view(), std::move(options));
}

/// Fills the cells from what was measured.
void Conclude(const ItemView& a, const ItemView& b, TensorDiff* out) {
  const TensorMetrics& m = out->metrics;
  switch (m.state) {
    case PairState::kEmpty: return End(TensorOutcome::kEmpty, "This is empty data, can not compare.", out);
    case PairState::kOtherShape:
      SetAll(MetricCell::Kind::kShapeUnmatched, out);
      out->error = out->golden_error = kInfinity;
      return End(TensorOutcome::kShape, "Shape of NPU and bench tensor do not match. Skipped.", out);
    case PairState::kNoNumbers:
      return End(TensorOutcome::kUnreadable, "The values of this dtype can not be compared.", out);
    case PairState::kCompared: break;
  }
  out->scalar = m.scalar;
  out->outcome = m.differ > 0 ? TensorOutcome::kNanInf : TensorOutcome::kCompared;
  out->error = out->golden_error = kInfinity;
  if (m.differ == 0) {
    out->error = ErrorOf(m, std::max(m.rms_target, m.rms_golden), std::max(Magnitude(a), Magnitude(b)));
    out->golden_error = ErrorOf(m, m.rms_golden, Magnitude(b));
  }
  if (m.scalar) {
    out->note = SetElementCells(m, &out->cells);
  } else if (m.differ > 0) {
    SetAll(MetricCell::Kind::kNA, out);
  } else {
    out->note = SetTensorCells(m, &out->cells);
    if (out->note.empty() && a.dtype != b.dtype) out->note = "Dtype of NPU and bench tensor do not match.";
  }
  if (m.differ > 0) out->note = NonFiniteNote(m);
}

}  // namespace

TensorPairs::TensorPairs(const std::string& target_dump, const std::string& golden_dump, CustomMetrics* custom,
                         const Postprocess* postprocess)
    : target_(target_dump), golden_(golden_dump), custom_(custom), postprocess_(postprocess) {}

int64_t TensorPairs::ValidLengthOf(std::string_view op_name, const std::vector<ItemView>& items, size_t count,
                                   bool golden) const {
  const std::string_view key = ValidLengthKey(op_name);
  if (key.empty()) return -1;
  const std::string end = "." + std::string(key);
  for (size_t i = 0; i < count; ++i) {
    const ItemView& item = items[i];
    if (item.state != ItemState::kKwarg || !EndsWith(item.suffix, end) || !item.HasData()) continue;
    const StatusOr<std::string> path = (golden ? golden_ : target_).Find(item.data_name);
    if (!path.ok()) return -1;
    const StatusOr<TensorFile> file = TensorFile::Open(*path, ParseDType(item.dtype));
    return file.ok() && file->tensor() ? ValidLength(*file->tensor()) : -1;
  }
  return -1;
}

void TensorPairs::Diff(const ItemView& target, const ItemView* golden, TensorDiff* out,
                       const ValidLengths& valid) const {
  *out = TensorDiff();
  DiffValues(target, golden, valid, out);
  if (!custom_ || out->custom.size() == custom_->columns().size()) return;
  // Without values they say what the other columns say.
  std::string text;
  MetricCell unsupported;
  (out->cells[kMaxAbsErr].IsNumber() ? unsupported : out->cells[kMaxAbsErr]).AppendText(&text);
  CustomCell cell;
  cell.SetText(std::move(text));
  out->custom.assign(custom_->columns().size(), cell);
}

void TensorPairs::DiffValues(const ItemView& target, const ItemView* golden, const ValidLengths& valid,
                             TensorDiff* out) const {
  if (golden && golden->shape == target.shape && target.tensor && IsEmptyShape(target.shape)) {
    out->error = out->golden_error = 0;
    return End(TensorOutcome::kEmpty, "This is empty data, can not compare.", out);
  }
  if (!target.HasData()) return End(TensorOutcome::kNoData, "NPU does not have data file.", out);
  if (golden && !golden->HasData()) return End(TensorOutcome::kNoGoldenData, "Bench does not have data file.", out);
  if (!golden) return End(TensorOutcome::kUnmatched, "Bench api/module unmatched.", out);
  const Status status = Measure(target, *golden, valid, out);
  if (!status.ok()) {
    if (!out->note.empty()) return End(TensorOutcome::kUnreadable, OneLine(out->note + status.message()), out);
    return End(TensorOutcome::kUnreadable, "Dump file not found or read failed: " + OneLine(status.message()), out);
  }
  Conclude(target, *golden, out);
}

Status TensorPairs::Change(const ItemView& item, bool golden, int64_t valid, OwnTensor* own, const FileTensor** tensor,
                           TensorDiff* out) const {
  const std::vector<MatmulStep>* steps = nullptr;
  if (postprocess_) {
    steps = golden ? postprocess_->GoldenSteps(item.data_name) : postprocess_->TargetSteps(item.data_name);
  }
  const bool cut = valid >= 0 && item.state == ItemState::kOutput;
  if (!steps && !cut) return OkStatus();
  out->note = std::string(golden ? "Bench" : "NPU") + " data could not be post-processed: ";
  if (cut) {
    MSP_ASSIGN_OR_RETURN(*own, OwnTensor::ValidPart(**tensor, valid));
    *tensor = &own->tensor();
  }
  if (steps) {
    MSP_ASSIGN_OR_RETURN(*own, OwnTensor::Product(**tensor, *steps));
    *tensor = &own->tensor();
  }
  out->note.clear();
  return OkStatus();
}

Status TensorPairs::Measure(const ItemView& target, const ItemView& golden, const ValidLengths& valid,
                            TensorDiff* out) const {
  if (!target.parts.empty() || !golden.parts.empty()) return MeasureJoined(target, golden, out);
  MSP_ASSIGN_OR_RETURN(const std::string target_path, target_.Find(target.data_name));
  MSP_ASSIGN_OR_RETURN(const std::string golden_path, golden_.Find(golden.data_name));
  MSP_ASSIGN_OR_RETURN(const TensorFile target_file, TensorFile::Open(target_path, ParseDType(target.dtype)));
  MSP_ASSIGN_OR_RETURN(const TensorFile golden_file, TensorFile::Open(golden_path, ParseDType(golden.dtype)));
  MSP_ASSIGN_OR_RETURN(const FileTensor* a, OnlyTensor(target_file, target_path));
  MSP_ASSIGN_OR_RETURN(const FileTensor* b, OnlyTensor(golden_file, golden_path));
  OwnTensor own_target, own_golden;
  const FileTensor *read_target = a, *read_golden = b;
  MSP_RETURN_IF_ERROR(Change(target, false, valid.target, &own_target, &a, out));
  MSP_RETURN_IF_ERROR(Change(golden, true, valid.golden, &own_golden, &b, out));
  FileTensor other;
  std::vector<OrderedPair> orders;
  if (implementations_) {
    orders = PossibleOrders(*a, *b);
    if (const OrderedPair* best = BestOrder(orders)) {
      a = &best->target;
      b = &best->golden;
      out->order = best->order;
    }
  } else if (cross_ && a->shape != b->shape) {
    if (const FileTensor* fitting = InShapeOf(*a, *b, MayBeTransposed(target), &other)) b = fitting;
  }
  if (a == read_target && b == read_golden && SameFile(target_path, golden_path)) {
    SetSame(*a, &out->metrics);
  } else {
    out->metrics = MeasurePair(target_file, *a, golden_file, *b);
  }
  // Of a square weight the shape does not say which way it lies.
  if (cross_ && !implementations_ && out->metrics.max_abs_err > 0 && a->shape == b->shape && IsSquare(*b) &&
      MayBeTransposed(target)) {
    other = *b;
    Transpose(&other);
    const TensorMetrics turned = MeasurePair(target_file, *a, golden_file, other);
    if (turned.rms_diff < out->metrics.rms_diff / kClearlyTheOther) out->metrics = turned;
  }
  const TensorMetrics& m = out->metrics;
  if (!custom_ || m.state != PairState::kCompared || (m.differ > 0 && !m.scalar)) return OkStatus();
  const Status status = custom_->Measure(a->view(), b->view(), &out->custom, &out->custom_error);
  if (!status.ok()) out->custom_error = status.message();
  return OkStatus();
}

Status TensorPairs::MeasureJoined(const ItemView& target, const ItemView& golden, TensorDiff* out) const {
  const auto open = [](const TensorFolder& folder, const ItemView& item, int64_t groups = 1) {
    const std::vector<std::string_view> names = item.parts.empty() ? std::vector{item.data_name} : item.parts;
    const DType dtype = ParseDType(item.dtype.substr(0, item.dtype.find(';')));
    return JoinedTensor::Open(folder, names, item.join, dtype, item.parts.empty() ? 1 : groups);
  };
  MSP_ASSIGN_OR_RETURN(const JoinedTensor a, open(target_, target));
  MSP_ASSIGN_OR_RETURN(const JoinedTensor b, open(golden_, golden));
  MetricsOptions options;
  options.threads = BytesOf(a.tensor()) >= kSplitBytes;
  if (implementations_) {
    // One side may have the parts group by group: the number of groups is the one that fits.
    const std::vector<int64_t>& groups = (target.parts.empty() ? b : a).possible_groups();
    double least = 3;
    for (const int64_t g : groups.empty() ? std::vector<int64_t>{1} : groups) {
      MSP_ASSIGN_OR_RETURN(const JoinedTensor x, open(target_, target, g));
      MSP_ASSIGN_OR_RETURN(const JoinedTensor y, open(golden_, golden, g));
      const std::vector<OrderedPair> orders = PossibleOrders(x.tensor(), y.tensor());
      const OrderedPair* best = BestOrder(orders);
      if (best == nullptr) continue;
      const double error = SampledError(*best);
      if (error >= least * (g > 1 ? kClearlyGrouped : 1)) continue;
      least = error;
      out->metrics = MeasureTensors(best->target.view(), best->golden.view(), options);
      out->order = best->order;
      if (g > 1)
        out->order += (out->order.empty() ? "" : ", ") + std::string("parts in ") + std::to_string(g) + " groups";
      if (least < kFits) break;
    }
    if (least < 3) return OkStatus();
  }
  FileTensor other;
  const FileTensor* fitting = &b.tensor();
  if (cross_ && a.tensor().shape != b.tensor().shape) {
    const FileTensor* found = InShapeOf(a.tensor(), b.tensor(), MayBeTransposed(target), &other);
    if (found) fitting = found;
  }
  out->metrics = MeasureTensors(a.tensor().view(), fitting->view(), options);
  return OkStatus();
}

TensorDiff DiffTwoTensors(const FileTensor& target, const FileTensor& golden) {
  TensorDiff out;
  out.metrics = MeasureTensors(target.view(), golden.view());
  Conclude(ItemView(), ItemView(), &out);
  return out;
}

void AddListMetrics(const FileTensor& target, TensorDiff* diff) {
  if (!diff->scalar || target.shape.empty() || diff->outcome != TensorOutcome::kCompared) return;
  AddListCells(diff->metrics, &diff->cells);
}

}  // namespace msprobe
