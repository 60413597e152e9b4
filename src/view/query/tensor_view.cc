#include "view/query/tensor_view.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <chrono>
#include <cmath>
#include <mutex>
#include <utility>

#include "base/file.h"
#include "json/writer.h"
#include "tensor/files/tensor_file.h"
#include "tensor/kernels/metrics.h"

namespace msprobe::view {
namespace {

constexpr auto kPatience = std::chrono::seconds(10);
// A file of a few bytes may hold a view of any size; views that repeat their elements a little are common.
constexpr int64_t kMostRepeats = 64, kMostElements = int64_t{1} << 24;
constexpr size_t kMostNameBytes = 4096;

struct OpenTensor {
  TensorFile file;
  const FileTensor* tensor = nullptr;
};

StatusOr<OpenTensor> OpenOne(const std::string& path, DType dtype, ShownTensor* shown) {
  MSP_ASSIGN_OR_RETURN(TensorFile file, TensorFile::Open(path, dtype));
  OpenTensor out{std::move(file), nullptr};
  out.tensor = out.file.tensor();
  if (!out.tensor) return BadInput(shown->file + " does not hold one tensor: it is not shown");
  int64_t count = 1;
  bool overflow = false;
  for (const int64_t n : out.tensor->shape) overflow |= __builtin_mul_overflow(count, n, &count);
  struct stat st {};
  const int64_t bytes = stat(path.c_str(), &st) == 0 ? static_cast<int64_t>(st.st_size) : 0;
  if (overflow || (count > kMostElements && count / kMostRepeats > bytes)) {
    return BadInput(shown->file + " repeats the elements it holds too often: it is not shown");
  }
  shown->dtype = DTypeName(out.tensor->dtype);
  shown->shape = out.tensor->shape;
  return out;
}

std::string Relative(const ServedTree& tree, const std::string& path) {
  const size_t root = tree.real() == "/" ? 1 : tree.real().size() + 1;
  return path.size() > root ? path.substr(root) : path;
}

}  // namespace

StatusOr<std::string> TensorDirectory(const VisFile& file, int64_t step, int64_t rank, bool target, int64_t rowid) {
  std::string out;
  const auto ask = [&](const SqliteDb& db) -> Status {
    MSP_ASSIGN_OR_RETURN(
        SqliteStatement query,
        db.Prepare(file.compact()
                       ? "SELECT dump_data_dir FROM msprobe_graph WHERE step = ?1 AND rank = ?2 AND data_source = ?3"
                       : "SELECT dump_data_dir FROM tb_nodes WHERE rowid = ?1"));
    query.Bind(1, file.compact() ? step : rowid);
    if (file.compact()) {
      query.Bind(2, rank);
      query.Bind(3, target ? "NPU" : "Bench");
    }
    MSP_ASSIGN_OR_RETURN(const bool row, query.Step());
    if (row) out = query.Text(0);
    return OkStatus();
  };
  if (file.json()) {
    out = file.json()->DataDirectory(target);
  } else {
    MSP_RETURN_IF_ERROR(file.Ask(ask));
  }
  if (out.empty())
    return BadInput(fmt::format("{} names no directory of tensors: it is not a tensor dump", file.shown()));
  return out;
}

StatusOr<std::string> TensorPath(const ServedTree& tree, const std::string& directory, std::string_view data_name) {
  if (data_name.size() > kMostNameBytes || data_name.find_first_of(std::string_view("/\0", 2)) != std::string::npos ||
      data_name == "." || data_name == "..") {
    return BadInput("the graph names a tensor by what is not a file name: it is not opened");
  }
  return tree.Inside(JoinPath(directory, data_name));
}

StatusOr<TensorDetail> LoadPreview(const ServedTree& tree, const std::string& target, const std::string& golden,
                                   std::string_view dtype, std::string_view golden_dtype, int64_t slice) {
  static std::timed_mutex one_at_a_time;
  std::unique_lock lock(one_at_a_time, kPatience);
  if (!lock.owns_lock()) return Status(Code::kInterrupted, "another tensor is being read: try again in a moment");
  TensorDetail out;
  out.slice = slice;
  out.target.file = Relative(tree, target);
  MSP_ASSIGN_OR_RETURN(const OpenTensor target_tensor, OpenOne(target, ParseDType(dtype), &out.target));
  std::optional<OpenTensor> golden_tensor;
  if (!golden.empty()) {
    out.golden.emplace();
    out.golden->file = Relative(tree, golden);
    auto opened = OpenOne(golden, ParseDType(golden_dtype), &*out.golden);
    if (opened.ok()) {
      golden_tensor = *std::move(opened);
    } else {
      out.missing = opened.status().message();
      out.golden.reset();
    }
  }
  PreviewOptions options;
  options.slice = slice;
  options.release = [&](const void* begin, size_t bytes) {
    target_tensor.file.Release(begin, bytes);
    if (golden_tensor) golden_tensor->file.Release(begin, bytes);
  };
  const TensorView view = target_tensor.tensor->view();
  std::optional<TensorView> other;
  if (golden_tensor) other = golden_tensor->tensor->view();
  MSP_ASSIGN_OR_RETURN(out.preview, PreviewTensors(view, other ? &*other : nullptr, options));
  if (view.ndim > 2) {
    TensorView leading = view;
    leading.ndim -= 2;
    out.place = MultiIndex(leading, slice);
  }
  for (const PreviewElement& e : out.preview.worst) {
    out.worst.push_back({MultiIndex(view, e.index), e.target, e.golden, e.distance});
  }
  return out;
}

namespace {

// JSON has no NaN and no infinity: they are texts.
constexpr JsonStyle kStyle{.comma = ",", .colon = ":", .ascii = false, .not_finite = JsonStyle::NotFinite::kText};
constexpr int kDigits = 9;

void Figure(JsonWriter* json, std::string_view key, double v) {
  json->Key(key);
  json->Rounded(v, kDigits);
}

void WriteHistogram(JsonWriter* json, const Histogram& h) {
  json->Key("histogram");
  json->BeginObject();
  Figure(json, "from", h.from);
  Figure(json, "to", h.to);
  json->Member("counts", h.counts);
  json->EndObject();
}

void WriteHeat(JsonWriter* json, const HeatMap& map, int digits) {
  json->Key("heat");
  json->BeginObject();
  json->Member("rows", map.rows);
  json->Member("columns", map.columns);
  json->Member("cell_rows", map.cell_rows);
  json->Member("cell_columns", map.cell_columns);
  json->ArrayMember("cells", map.cells, [&](double v) { json->Rounded(v, digits); });
  json->EndObject();
}

void WriteSide(JsonWriter* json, const ShownTensor& tensor, const PreviewSide& side, int digits) {
  json->BeginObject();
  json->Member("item", tensor.item);
  json->Member("file", tensor.file);
  json->Member("dtype", tensor.dtype);
  json->Member("shape", tensor.shape);
  json->Member("count", side.count);
  json->Member("nan", side.nan);
  json->Member("plus_inf", side.plus_inf);
  json->Member("minus_inf", side.minus_inf);
  json->Member("slices", side.slices);
  Figure(json, "min", side.min);
  Figure(json, "max", side.max);
  WriteHistogram(json, side.histogram);
  WriteHeat(json, side.heat, digits);
  json->EndObject();
}

}  // namespace

std::string ToJson(const TensorDetail& d, int digits) {
  JsonWriter json(kStyle);
  json.BeginObject();
  json.Key("tensor"), WriteSide(&json, d.target, d.preview.target, digits);
  json.Key("partner");
  d.golden ? WriteSide(&json, *d.golden, *d.preview.golden, digits) : json.Null();
  json.Member("missing", d.missing);
  json.Key("difference");
  if (d.preview.difference) {
    const PreviewDifference& diff = *d.preview.difference;
    json.BeginObject();
    json.Member("equal", diff.equal);
    json.Member("not_finite", diff.not_finite);
    WriteHistogram(&json, diff.histogram);
    WriteHeat(&json, diff.heat, digits);
    if (diff.fit) {
      json.ObjectMember("fit", [&] {
        json.Member("count", diff.fit->count);
        Figure(&json, "slope", diff.fit->slope);
        Figure(&json, "offset", diff.fit->offset);
        Figure(&json, "correlation", diff.fit->correlation);
      });
    }
    for (const bool golden : {true, false}) {
      json.Key(golden ? "points_golden" : "points_target"), json.BeginArray();
      for (const auto& point : diff.points) json.Rounded(golden ? point.first : point.second, digits);
      json.EndArray();
    }
    json.EndObject();
  } else {
    json.Null();
  }
  json.Member("slice", d.slice);
  json.Member("place", d.place);
  json.ArrayMember("worst", d.worst, [&](const TensorDetail::Element& e) {
    json.BeginObject();
    json.Member("place", e.place);
    Figure(&json, "value", e.target);
    d.preview.difference ? Figure(&json, "partner", e.golden) : json.Member("partner", nullptr);
    Figure(&json, "distance", e.distance);
    json.EndObject();
  });
  json.EndObject();
  return json.Take();
}

}  // namespace msprobe::view
