#include "tensor/kernels/metrics_sources.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>

#include "tensor/kernels/finfo.h"
#include "tensor/kernels/stats_kernels.h"

namespace msprobe::metrics {
namespace {

bool IsWide(DType t) { return t == DType::kInt64 || t == DType::kUInt64; }
bool IsWhole(DType t) { return IsInteger(t) || t == DType::kBool; }
bool IsShortFloat(DType t) { return IsFloating(t) && t != DType::kFloat64; }

Work WorkOf(DType t, DType g) {
  if (IsComplex(t) || IsComplex(g)) return Work::kComplex;
  if (IsShortFloat(t) && IsShortFloat(g)) return Work::kFloats;
  if (IsWhole(t) && IsWhole(g) && (IsWide(t) || IsWide(g))) return Work::kInts;
  return Work::kDoubles;
}

template <typename From>
From LoadAs(const void* from, size_t i) {
  From v;
  std::memcpy(&v, static_cast<const char*>(from) + i * sizeof v, sizeof v);
  return v;
}

template <typename From, typename To>
void Convert(const void* from, size_t n, void* to) {
  To* out = static_cast<To*>(to);
  for (size_t i = 0; i < n; ++i) out[i] = static_cast<To>(LoadAs<From>(from, i));
}
template <typename To>
void ConvertBool(const void* from, size_t n, void* to) {
  To* out = static_cast<To*>(to);
  for (size_t i = 0; i < n; ++i) out[i] = LoadAs<uint8_t>(from, i) != 0;
}
template <float (*of)(uint16_t), typename To>
void ConvertShort(const void* from, size_t n, void* to) {
  To* out = static_cast<To*>(to);
  for (size_t i = 0; i < n; ++i) out[i] = of(LoadAs<uint16_t>(from, i));
}
template <DType type, typename To>
void ConvertByte(const void* from, size_t n, void* to) {
  static const std::array<To, 256> values = [] {
    std::array<To, 256> v;
    for (size_t b = 0; b < v.size(); ++b) v[b] = stats::Float8ToFloat(type, static_cast<uint8_t>(b));
    return v;
  }();
  To* out = static_cast<To*>(to);
  for (size_t i = 0; i < n; ++i) out[i] = values[LoadAs<uint8_t>(from, i)];
}

template <typename To>
Converter ConverterOf(DType t) {
  switch (t) {
    case DType::kFloat32: return Convert<float, To>;
    case DType::kFloat64: return Convert<double, To>;
    case DType::kFloat16: return ConvertShort<stats::HalfToFloat, To>;
    case DType::kBFloat16: return ConvertShort<stats::BFloatToFloat, To>;
    case DType::kFloat8E4M3FN: return ConvertByte<DType::kFloat8E4M3FN, To>;
    case DType::kFloat8E5M2: return ConvertByte<DType::kFloat8E5M2, To>;
    case DType::kFloat8E4M3FNUZ: return ConvertByte<DType::kFloat8E4M3FNUZ, To>;
    case DType::kFloat8E5M2FNUZ: return ConvertByte<DType::kFloat8E5M2FNUZ, To>;
    case DType::kFloat8E8M0FNU: return ConvertByte<DType::kFloat8E8M0FNU, To>;
    case DType::kInt8: return Convert<int8_t, To>;
    case DType::kInt16: return Convert<int16_t, To>;
    case DType::kInt32: return Convert<int32_t, To>;
    case DType::kInt64: return Convert<int64_t, To>;
    case DType::kUInt8: return Convert<uint8_t, To>;
    case DType::kUInt16: return Convert<uint16_t, To>;
    case DType::kUInt32: return Convert<uint32_t, To>;
    case DType::kUInt64: return Convert<uint64_t, To>;
    case DType::kBool: return ConvertBool<To>;
    default: return nullptr;
  }
}

/// Parts of complex numbers as doubles; numbers that are not complex get a zero part.
template <DType type>
void ConvertToComplex(const void* from, size_t n, void* to) {
  if constexpr (type == DType::kComplex32) {
    ConvertShort<stats::HalfToFloat, double>(from, 2 * n, to);
  } else if constexpr (type == DType::kComplex64) {
    Convert<float, double>(from, 2 * n, to);
  } else {
    auto* out = static_cast<double*>(to);
    ConverterOf<double>(type)(from, n, out);
    for (size_t i = n; i-- > 0;) {
      out[2 * i] = out[i];
      out[2 * i + 1] = 0;
    }
  }
}

template <size_t... types>
Converter ComplexConverterOf(DType t, std::index_sequence<types...>) {
  static constexpr Converter kAll[] = {ConvertToComplex<static_cast<DType>(types)>...};
  return t == DType::kComplex128 ? nullptr : kAll[static_cast<size_t>(t)];
}

void SetSource(Work work, SideLayout* side) {
  const DType t = side->dtype;
  switch (work) {
    case Work::kFloats:
      side->floats = t == DType::kBFloat16 ? kBFloat : t == DType::kFloat16 ? kHalf : kFloat;
      if (ElementSize(t) == 1) side->convert = ConverterOf<float>(t);
      return;
    case Work::kDoubles:
      if (t != DType::kFloat64) side->convert = ConverterOf<double>(t);
      return;
    case Work::kInts:
      side->is_unsigned = t == DType::kUInt64;
      if (!IsWide(t)) side->convert = ConverterOf<int64_t>(t);
      return;
    case Work::kComplex:
      side->convert = ComplexConverterOf(t, std::make_index_sequence<static_cast<size_t>(DType::kComplex128)>());
  }
}

/// Elements of the tensor; -1 when there is no counting or comparing them.
int64_t CountOf(const TensorView& t) {
  Layout layout;
  return MakeLayout(t, Order::kLogical, &layout) ? layout.count : -1;
}

/// Dimensions that are not of length 1, with strides. `strides` has room for kMaxDims.
int Squeeze(const TensorView& t, int64_t* shape, int64_t* strides) {
  int ndim = 0;
  int64_t step = 1;
  for (int d = t.ndim - 1; d >= 0; --d) {
    if (t.shape[d] != 1) {
      shape[ndim] = t.shape[d];
      strides[ndim++] = t.strides ? t.strides[d] : step;
    }
    step *= t.shape[d];
  }
  std::reverse(shape, shape + ndim);
  std::reverse(strides, strides + ndim);
  return ndim;
}

/// Elements of memory that a tensor spans; what cannot be counted is far beyond any memory.
int64_t SpanOf(int ndim, const int64_t* shape, const int64_t* strides) {
  __int128 span = 1;
  for (int d = 0; d < ndim; ++d) {
    const __int128 reach = static_cast<__int128>(shape[d] - 1) * strides[d];
    span += reach < 0 ? -reach : reach;
  }
  return span < INT64_MAX ? static_cast<int64_t>(span) : INT64_MAX;
}

float HalfRounded(float v) { return static_cast<float>(NearestOf(DType::kFloat16, static_cast<double>(v))); }

/// Bits of the float type in which numbers of this dtype are subtracted from floats.
int FloatBits(DType t) {
  if (t == DType::kFloat16) return 16;
  if (t == DType::kFloat64) return 64;
  if (IsFloating(t)) return 32;  // the short ones are read as float32
  return static_cast<int>(ElementSize(t) >= 4 ? 64 : 16 * ElementSize(t));
}

template <typename T>
T At(const void* elements, size_t i) {
  return static_cast<const T*>(elements)[i];
}

float FloatAt(Floats kind, const void* elements, size_t i) {
  switch (kind) {
    case kBFloat: return stats::BFloatToFloat(LoadAs<uint16_t>(elements, i));
    case kHalf: return stats::HalfToFloat(LoadAs<uint16_t>(elements, i));
    default: return LoadAs<float>(elements, i);
  }
}

template <typename T, typename G>
WorstElement IntElement(T target, G golden) {
  const ElementErrors e = ErrorsOfInts(target, golden);
  return {0, e.diff, e.relative, static_cast<double>(target), static_cast<double>(golden)};
}

template <typename T>
WorstElement FloatElement(T target, T golden) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  WorstElement out{0, 0, 0, target, golden};
  if (std::isfinite(target) && std::isfinite(golden)) {
    const ElementErrors e = ErrorsOfFloats(target, golden);
    out.abs_err = e.diff;
    out.relative = e.relative;
  } else if (!(target == golden) && !(std::isnan(target) && std::isnan(golden))) {
    out.abs_err = out.relative = kInfinity;
  }
  return out;
}

WorstElement ComplexElement(const double* target, const double* golden) {
  WorstElement out{0, 0, 0, AbsoluteOf(target[0], target[1]), AbsoluteOf(golden[0], golden[1])};
  PairPartial kinds;
  ComparePairsOfComplex(target, golden, 1, &kinds);
  out.abs_err = kinds.differ > 0 ? std::numeric_limits<double>::infinity() : kinds.max_abs;
  out.relative = kinds.differ > 0 ? out.abs_err : kinds.max_relative;
  return out;
}

/// As doubles, which hold these numbers and their differences exactly; false where they do not.
bool AsDoubles(bool is_unsigned, const void* from, size_t n, double* to) {
  constexpr uint64_t kExact = uint64_t{1} << 52;
  const auto* v = static_cast<const int64_t*>(from);
  const uint64_t shift = is_unsigned ? 0 : kExact;  // of [-kExact, kExact) to numbers without sign
  uint64_t bits = 0;
  for (size_t i = 0; i < n; ++i) bits |= static_cast<uint64_t>(v[i]) + shift;
  if (bits >= kExact + shift) return false;
  for (size_t i = 0; i < n; ++i) to[i] = static_cast<double>(v[i]);
  return true;
}

}  // namespace

bool ToDoubles(DType dtype, const void* from, size_t n, double* to) {
  if (!IsComplex(dtype)) {
    const Converter convert = ConverterOf<double>(dtype);
    if (convert) convert(from, n, to);
    return convert != nullptr;
  }
  const Converter parts =
      ComplexConverterOf(dtype, std::make_index_sequence<static_cast<size_t>(DType::kComplex128)>());
  constexpr size_t kPiece = 256;
  double buffer[2 * kPiece];
  for (size_t at = 0; at < n; at += kPiece) {
    const size_t some = std::min(kPiece, n - at);
    const char* piece = static_cast<const char*>(from) + at * ElementSize(dtype);
    parts ? parts(piece, some, buffer) : void(std::memcpy(buffer, piece, some * 2 * sizeof(double)));
    for (size_t i = 0; i < some; ++i) to[at + i] = AbsoluteOf(buffer[2 * i], buffer[2 * i + 1]);
  }
  return true;
}

PairState PairReader::Init(const TensorView& target, const TensorView& golden) {
  const int64_t elements = CountOf(target), others = CountOf(golden);
  if (elements < 0 || others < 0) return PairState::kNoNumbers;
  if (elements == 0) return PairState::kEmpty;
  int64_t shape[kMaxDims], shapes[kMaxDims], strides[kMaxDims], other_strides[kMaxDims];
  const int ndim = Squeeze(target, shape, strides);
  if (Squeeze(golden, shapes, other_strides) != ndim || !std::equal(shape, shape + ndim, shapes))
    return PairState::kOtherShape;

  // A file of a few bytes may hold a view of any size.
  constexpr int64_t kMostViews = 1024, kManyElements = int64_t{1} << 30;
  int64_t logical = 1;
  for (int d = ndim - 1; d >= 0; --d) {
    if (strides[d] == 0 && other_strides[d] == 0) {
      repeats_ *= shape[d];
    } else {
      dimensions_[ndim_++] = {shape[d], strides[d], other_strides[d], logical, false};
    }
    logical *= shape[d];
  }
  std::reverse(dimensions_, dimensions_ + ndim_);
  const int64_t span = std::max(SpanOf(ndim, shape, strides), SpanOf(ndim, shape, other_strides));
  const int64_t once = elements / repeats_;
  if (once > kManyElements && once / kMostViews > span) return PairState::kNoNumbers;
  SortByMemory();

  target_.dtype = target.dtype;
  golden_.dtype = golden.dtype;
  work_ = WorkOf(target.dtype, golden.dtype);
  SetSource(work_, &target_);
  SetSource(work_, &golden_);
  (void)MakeLayout(Ordered(target, &Dimension::target, shape, strides), Order::kLogical, &target_.layout);
  (void)MakeLayout(Ordered(golden, &Dimension::golden, shape, strides), Order::kLogical, &golden_.layout);
  return PairState::kCompared;
}

/// Where both tensors have the same strides, as most pairs of permuted tensors do, runs go through memory in its order.
void PairReader::SortByMemory() {
  for (int d = 0; d < ndim_; ++d) {
    if (dimensions_[d].target != dimensions_[d].golden) return;
  }
  for (int d = 0; d < ndim_; ++d) {
    Dimension& dim = dimensions_[d];
    if (dim.target >= 0) continue;
    dim.backwards = true;
    dim.target = dim.golden = -dim.target;
  }
  std::stable_sort(dimensions_, dimensions_ + ndim_,
                   [](const Dimension& a, const Dimension& b) { return a.target > b.target; });
}

TensorView PairReader::Ordered(const TensorView& t, int64_t Dimension::*stride, int64_t* shape,
                               int64_t* strides) const {
  const char* data = static_cast<const char*>(t.data);
  for (int d = 0; d < ndim_; ++d) {
    const Dimension& dim = dimensions_[d];
    shape[d] = dim.length;
    strides[d] = dim.*stride;
    if (dim.backwards) data -= (dim.length - 1) * strides[d] * static_cast<int64_t>(ElementSize(t.dtype));
  }
  return {data, t.dtype, ndim_, shape, strides};
}

int64_t PairReader::LogicalIndex(int64_t index) const {
  int64_t logical = 0;
  for (int d = ndim_ - 1; d >= 0; --d) {
    const Dimension& dim = dimensions_[d];
    const int64_t at = index % dim.length;
    index /= dim.length;
    logical += (dim.backwards ? dim.length - 1 - at : at) * dim.logical;
  }
  return logical;
}

const void* PairReader::Read(const SideLayout& side, int64_t begin, size_t n, Buffers* buffers,
                             const void** raw) const {
  const size_t element = side.layout.element;
  if (side.layout.contiguous()) {
    *raw = side.layout.data + static_cast<size_t>(begin) * element;
  } else {
    char* to = buffers->gathered;
    LayoutWalker(side.layout).Walk(begin, begin + static_cast<int64_t>(n), [&](const char* p, size_t elements) {
      std::memcpy(to, p, elements * element);
      to += elements * element;
    });
    *raw = buffers->gathered;
  }
  const void* elements = *raw;
  if (side.convert) {
    side.convert(elements, n, buffers->converted);
    elements = buffers->converted;
  } else if (reinterpret_cast<uintptr_t>(elements) % 8 != 0 && work_ != Work::kFloats) {
    // Members of files need not be aligned; the kernels of floats load as bytes.
    std::memcpy(buffers->converted, elements, n * element);
    elements = buffers->converted;
  }
  return elements;
}

void PairReader::Release(int64_t begin, int64_t end, const std::function<void(const void*, size_t)>& release) const {
  for (const SideLayout* side : {&target_, &golden_}) {
    if (!side->layout.contiguous()) continue;
    const size_t element = side->layout.element;
    release(side->layout.data + static_cast<size_t>(begin) * element, static_cast<size_t>(end - begin) * element);
  }
}

void CompareInts(const PairTable& table, const PairReader& pair, const Run& run, PairPartial* acc) {
  alignas(64) double t[kRun], g[kRun];
  if (AsDoubles(pair.target().is_unsigned, run.target, run.elements, t) &&
      AsDoubles(pair.golden().is_unsigned, run.golden, run.elements, g)) {
    return table.doubles(t, g, run.elements, acc);
  }
  const auto *ti = static_cast<const int64_t*>(run.target), *gi = static_cast<const int64_t*>(run.golden);
  const auto *tu = static_cast<const uint64_t*>(run.target), *gu = static_cast<const uint64_t*>(run.golden);
  if (pair.target().is_unsigned) {
    return pair.golden().is_unsigned ? ComparePairsOfInts(tu, gu, run.elements, acc)
                                     : ComparePairsOfInts(tu, gi, run.elements, acc);
  }
  return pair.golden().is_unsigned ? ComparePairsOfInts(ti, gu, run.elements, acc)
                                   : ComparePairsOfInts(ti, gi, run.elements, acc);
}

WorstElement ElementOf(const PairReader& pair, const Run& run, size_t i) {
  switch (pair.work()) {
    case Work::kFloats:
      return FloatElement(FloatAt(pair.target().floats, run.target, i), FloatAt(pair.golden().floats, run.golden, i));
    case Work::kDoubles: return FloatElement(At<double>(run.target, i), At<double>(run.golden, i));
    case Work::kComplex:
      return ComplexElement(static_cast<const double*>(run.target) + 2 * i,
                            static_cast<const double*>(run.golden) + 2 * i);
    case Work::kInts: break;
  }
  const auto element = [&](auto target) {
    return pair.golden().is_unsigned ? IntElement(target, At<uint64_t>(run.golden, i))
                                     : IntElement(target, At<int64_t>(run.golden, i));
  };
  return pair.target().is_unsigned ? element(At<uint64_t>(run.target, i)) : element(At<int64_t>(run.target, i));
}

double RoundedDifference(const PairReader& pair, double difference) {
  const DType t = pair.target().dtype, g = pair.golden().dtype;
  if (IsComplex(t) || IsComplex(g) || (IsWhole(t) && IsWhole(g)) || t == DType::kBool) return difference;
  const int bits = std::max(FloatBits(t), FloatBits(g));
  if (bits == 64) return difference;
  const float rounded = static_cast<float>(difference);
  return bits == 32 ? rounded : HalfRounded(rounded);
}

namespace {
const PairTable* BestPairs() {
  for (const PairTable* table : {Avx512Pairs(), Avx2Pairs(), NeonPairs()}) {
    if (table) return table;
  }
  return ScalarPairs();
}

std::atomic<const PairTable*>& ActiveTable() {
  static std::atomic<const PairTable*> table{BestPairs()};
  return table;
}
}  // namespace

const PairTable& ActivePairs() { return *ActiveTable().load(std::memory_order_relaxed); }

bool UsePairs(const char* name) {
  for (const PairTable* table : {Avx512Pairs(), Avx2Pairs(), NeonPairs(), ScalarPairs()}) {
    if (!table || std::strcmp(table->name, name) != 0) continue;
    ActiveTable().store(table, std::memory_order_relaxed);
    return true;
  }
  return false;
}

}  // namespace msprobe::metrics
