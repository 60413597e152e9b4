#include "weights/causes/weight_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tensor/kernels/metrics_sources.h"
#include "weights/convert/out_weight.h"

namespace msprobe {
namespace {

constexpr int64_t kChunk = int64_t{1} << 20, kMostAtOnce = int64_t{1} << 27;

/// Elements [begin, end) in one form: rounded to `type`.
class CanonicalReader {
 public:
  CanonicalReader(const WeightTensor& tensor, DType type) : tensor_(tensor), type_(type) {}

  /// Bytes of the elements in `type`.
  const std::string& Read(int64_t begin, int64_t end) {
    const auto count = static_cast<size_t>(end - begin);
    raw_.resize(count * ElementSize(tensor_.dtype));
    GatherElements(tensor_, begin, end, raw_.data());
    values_.resize(count);
    if (!metrics::ToDoubles(tensor_.dtype, raw_.data(), count, values_.data()))
      std::fill(values_.begin(), values_.end(), std::numeric_limits<double>::quiet_NaN());
    for (double& v : values_) {
      v += tensor_.plus;
      if (v == 0) v = 0;
      if (std::isnan(v)) v = std::numeric_limits<double>::quiet_NaN();
    }
    out_.resize(count * ElementSize(type_));
    FromDoubles(type_, values_.data(), count, out_.data());
    return out_;
  }
  const std::vector<double>& values() const { return values_; }

 private:
  const WeightTensor& tensor_;
  const DType type_;
  std::string raw_, out_;
  std::vector<double> values_;
};

uint64_t HashBytes(const void* data, size_t bytes) {
  const int64_t shape[] = {static_cast<int64_t>(bytes)};
  return HashContent({data, DType::kUInt8, 1, shape, nullptr}).low;
}

WeightRows Shaped(const WeightTensor& tensor) {
  WeightRows out;
  const int64_t count = tensor.elements();
  if (count == 0) return out;
  out.rows = tensor.shape.empty() ? 1 : tensor.shape[0];
  out.columns = count / out.rows;
  return out;
}

void Finish(WeightRows* rows) { rows->all = HashBytes(rows->hashes.data(), rows->hashes.size() * sizeof(uint64_t)); }

}  // namespace

WeightRows RowsOfWeight(const WeightTensor& tensor, DType type) {
  WeightRows out = Shaped(tensor);
  if (out.rows == 0) return out;
  CanonicalReader reader(tensor, type);
  const int64_t each = std::max<int64_t>(1, kChunk / out.columns);
  const size_t bytes = static_cast<size_t>(out.columns) * ElementSize(type);
  for (int64_t row = 0; row < out.rows; row += each) {
    const int64_t end = std::min(out.rows, row + each);
    const std::string& text = reader.Read(row * out.columns, end * out.columns);
    for (int64_t i = row; i < end; ++i)
      out.hashes.push_back(HashBytes(text.data() + static_cast<size_t>(i - row) * bytes, bytes));
  }
  Finish(&out);
  return out;
}

WeightRows ColumnsOfWeight(const WeightTensor& tensor, DType type) {
  const WeightRows shape = Shaped(tensor);
  WeightRows out;
  if (shape.rows <= 1 || shape.columns <= 1 || tensor.elements() > kMostAtOnce) return out;
  out.rows = shape.columns;
  out.columns = shape.rows;
  CanonicalReader reader(tensor, type);
  const std::string& text = reader.Read(0, tensor.elements());
  const size_t size = ElementSize(type);
  std::string column(static_cast<size_t>(shape.rows) * size, '\0');
  for (int64_t c = 0; c < shape.columns; ++c) {
    for (int64_t r = 0; r < shape.rows; ++r)
      column.replace(static_cast<size_t>(r) * size, size, text, static_cast<size_t>(r * shape.columns + c) * size,
                     size);
    out.hashes.push_back(HashBytes(column.data(), column.size()));
  }
  Finish(&out);
  return out;
}

std::vector<double> ValuesOfWeight(const WeightTensor& tensor, int64_t most) {
  if (tensor.elements() > most || tensor.elements() == 0) return {};
  CanonicalReader reader(tensor, DType::kFloat64);
  reader.Read(0, tensor.elements());
  return reader.values();
}

bool IsAllZero(const WeightTensor& tensor) {
  const std::vector<double> values = ValuesOfWeight(tensor, int64_t{1} << 24);
  return !values.empty() && std::all_of(values.begin(), values.end(), [](double v) { return v == 0; });
}

DType CoarserType(DType a, DType b) {
  const auto digits = [](DType t) {
    switch (t) {
      case DType::kFloat64: return 53;
      case DType::kFloat32: return 24;
      case DType::kFloat16: return 11;
      case DType::kBFloat16: return 8;
      default: return 0;
    }
  };
  if (digits(a) == 0 || digits(b) == 0) return DType::kFloat64;
  return digits(a) <= digits(b) ? a : b;
}

}  // namespace msprobe
