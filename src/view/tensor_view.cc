#include "view/tensor_view.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <chrono>
#include <cmath>
#include <mutex>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "tensor/metrics.h"
#include "tensor/tensor_file.h"
#include "view/held.h"
#include "view/json_parts.h"

namespace msprobe::view {
namespace {

constexpr auto kPatience = std::chrono::seconds(10);
// A file of a few bytes may hold a view of any size; views that repeat their elements a little are common.
constexpr int64_t kMostRepeats = 64, kManyElements = int64_t{1} << 24;
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
  if (overflow || (count > kManyElements && count / kMostRepeats > bytes)) {
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

/// The item's row of a node; null when there is none.
const ViewRow* FindRow(const NodeRecord& record, std::string_view item) {
  for (const auto* rows : {&record.inputs, &record.outputs}) {
    for (const ViewRow& row : *rows) {
      if (row.name == item) return &row;
    }
  }
  return nullptr;
}

std::string_view ValueOf(const ViewRow& row, std::string_view key) {
  for (const auto& [name, value] : row.values) {
    if (name == key) return value;
  }
  return {};
}

struct Source {
  std::string path, dtype;
};

StatusOr<Source> SourceOf(const Held& held, const GraphKey& key, Side side, uint32_t node, std::string_view item,
                          const ServedTree& tree) {
  const int64_t rowid = held.tree(side)[node].rowid;
  MSP_ASSIGN_OR_RETURN(const NodeRecord record, held.file->LoadRecord(rowid));
  const ViewRow* row = FindRow(record, item);
  if (!row) return BadInput(fmt::format("{} has no item {}: use a name that the node lists", key.file, OneLine(item)));
  const std::string_view data_name = ValueOf(*row, "data_name");
  if (data_name.empty() || data_name == "-1" || data_name == "null") {
    return BadInput(fmt::format("no tensor of {} was saved: dump with task tensor", OneLine(item)));
  }
  MSP_ASSIGN_OR_RETURN(const std::string directory,
                       TensorDirectory(*held.file, key.step, key.rank, side == Side::kNpu, rowid));
  MSP_ASSIGN_OR_RETURN(std::string path, TensorPath(tree, directory, data_name));
  return Source{std::move(path), std::string(ValueOf(*row, "dtype"))};
}

}  // namespace

StatusOr<std::string> TensorDirectory(const VisFile& file, int64_t step, int64_t rank, bool npu, int64_t rowid) {
  std::string out;
  MSP_RETURN_IF_ERROR(file.Ask([&](const SqliteDb& db) -> Status {
    MSP_ASSIGN_OR_RETURN(
        SqliteStatement query,
        db.Prepare(file.compact()
                       ? "SELECT dump_data_dir FROM msprobe_graph WHERE step = ?1 AND rank = ?2 AND data_source = ?3"
                       : "SELECT dump_data_dir FROM tb_nodes WHERE rowid = ?1"));
    query.Bind(1, file.compact() ? step : rowid);
    if (file.compact()) {
      query.Bind(2, rank);
      query.Bind(3, npu ? "NPU" : "Bench");
    }
    MSP_ASSIGN_OR_RETURN(const bool row, query.Step());
    if (row) out = query.Text(0);
    return OkStatus();
  }));
  if (out.empty()) return BadInput(fmt::format("{} names no directory of tensors: it is no tensor dump", file.shown()));
  return out;
}

StatusOr<std::string> TensorPath(const ServedTree& tree, const std::string& directory, std::string_view data_name) {
  if (data_name.size() > kMostNameBytes || data_name.find_first_of(std::string_view("/\0", 2)) != std::string::npos ||
      data_name == "." || data_name == "..") {
    return BadInput("the graph names a tensor by what is no file name: it is not opened");
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
  MSP_ASSIGN_OR_RETURN(const OpenTensor mine, OpenOne(target, ParseDType(dtype), &out.target));
  std::optional<OpenTensor> theirs;
  if (!golden.empty()) {
    out.golden.emplace();
    out.golden->file = Relative(tree, golden);
    auto opened = OpenOne(golden, ParseDType(golden_dtype), &*out.golden);
    if (opened.ok()) {
      theirs = *std::move(opened);
    } else {
      out.missing = opened.status().message();
      out.golden.reset();
    }
  }
  PreviewOptions options;
  options.slice = slice;
  options.release = [&](const void* begin, size_t bytes) {
    mine.file.Release(begin, bytes);
    if (theirs) theirs->file.Release(begin, bytes);
  };
  const TensorView view = mine.tensor->view();
  std::optional<TensorView> other;
  if (theirs) other = theirs->tensor->view();
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

StatusOr<TensorDetail> Viewer::Tensor(const GraphKey& key, Side side, const TensorQuery& query) {
  if (root().empty()) {
    return BadInput("only a file is served, and no tensors beside it: serve the directory that holds graph and dump");
  }
  const ServedTree tree(root());
  MSP_ASSIGN_OR_RETURN(const Held held, cache_->Hold(key));
  MSP_ASSIGN_OR_RETURN(const uint32_t node, held.Find(key, side, query.node));
  MSP_ASSIGN_OR_RETURN(const Source mine, SourceOf(held, key, side, node, query.item, tree));
  Source theirs;
  std::string missing;
  const uint32_t partner = held.tree(side)[node].partner;
  if (!query.partner_item.empty() && partner != kNoNode) {
    const Side other = side == Side::kNpu ? Side::kBench : Side::kNpu;
    auto found = SourceOf(held, key, other, partner, query.partner_item, tree);
    if (found.ok()) {
      theirs = *std::move(found);
    } else {
      missing = found.status().message();
    }
  }
  MSP_ASSIGN_OR_RETURN(TensorDetail out,
                       LoadPreview(tree, mine.path, theirs.path, mine.dtype, theirs.dtype, query.slice));
  out.target.item = query.item;
  if (out.golden) out.golden->item = query.partner_item;
  if (!missing.empty()) out.missing = std::move(missing);
  return out;
}

namespace {

// JSON has no NaN and no infinity: they are texts.
void Figure(std::string& out, double v, int digits = 9) {
  if (std::isnan(v)) {
    out += "\"nan\"";
  } else if (std::isinf(v)) {
    out += v > 0 ? "\"inf\"" : "\"-inf\"";
  } else {
    out += fmt::format("{:.{}g}", v, digits);
  }
}

void Ints(std::string& out, const std::vector<int64_t>& list) {
  Array(out, list, [&](int64_t v) { AppendInt(out, v); });
}

void AppendHistogram(std::string& out, const Histogram& h) {
  out += "{\"from\":";
  Figure(out, h.from);
  Key(out, "to");
  Figure(out, h.to);
  Key(out, "counts");
  Ints(out, h.counts);
  out += '}';
}

void AppendHeat(std::string& out, const HeatMap& map, int digits) {
  out += fmt::format("{{\"rows\":{},\"columns\":{},\"cell_rows\":{},\"cell_columns\":{},\"cells\":", map.rows,
                     map.columns, map.cell_rows, map.cell_columns);
  Array(out, map.cells, [&](double v) { Figure(out, v, digits); });
  out += '}';
}

void AppendSide(std::string& out, const ShownTensor& tensor, const PreviewSide& side, int digits) {
  out += "{\"item\":";
  Text(out, tensor.item);
  Key(out, "file");
  Text(out, ToUtf8(tensor.file));
  Key(out, "dtype");
  Text(out, tensor.dtype);
  Key(out, "shape");
  Ints(out, tensor.shape);
  out += fmt::format(",\"count\":{},\"nan\":{},\"plus_inf\":{},\"minus_inf\":{},\"slices\":{}", side.count, side.nan,
                     side.plus_inf, side.minus_inf, side.slices);
  Key(out, "min");
  Figure(out, side.min);
  Key(out, "max");
  Figure(out, side.max);
  Key(out, "histogram");
  AppendHistogram(out, side.histogram);
  Key(out, "heat");
  AppendHeat(out, side.heat, digits);
  out += '}';
}

}  // namespace

std::string ToJson(const TensorDetail& d, int digits) {
  std::string out = "{\"tensor\":";
  AppendSide(out, d.target, d.preview.target, digits);
  Key(out, "partner");
  if (d.golden) {
    AppendSide(out, *d.golden, *d.preview.golden, digits);
  } else {
    out += "null";
  }
  Key(out, "missing");
  Text(out, d.missing);
  Key(out, "difference");
  if (d.preview.difference) {
    const PreviewDifference& diff = *d.preview.difference;
    out += fmt::format("{{\"equal\":{},\"not_finite\":{}", diff.equal, diff.not_finite);
    Key(out, "histogram");
    AppendHistogram(out, diff.histogram);
    Key(out, "heat");
    AppendHeat(out, diff.heat, digits);
    out += '}';
  } else {
    out += "null";
  }
  Key(out, "slice");
  AppendInt(out, d.slice);
  Key(out, "place");
  Ints(out, d.place);
  Key(out, "worst");
  Array(out, d.worst, [&](const TensorDetail::Element& e) {
    out += "{\"place\":";
    Ints(out, e.place);
    Key(out, "value");
    Figure(out, e.target);
    Key(out, "partner");
    if (d.preview.difference) {
      Figure(out, e.golden);
    } else {
      out += "null";
    }
    Key(out, "distance");
    Figure(out, e.distance);
    out += '}';
  });
  return out + "}";
}

}  // namespace msprobe::view
