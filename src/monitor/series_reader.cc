#include "monitor/series_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/message.h"
#include "json/parser.h"
#include "monitor/series_format.h"
#include "tensor/kernels/crc32.h"

namespace msprobe {
namespace {

constexpr size_t kLayoutsLooked = 16;

template <typename T>
T LoadAt(std::string_view bytes, size_t at) {
  T v;
  std::memcpy(&v, bytes.data() + at, sizeof(T));
  return v;
}

}  // namespace

StatusOr<SeriesFile> SeriesFile::Open(const std::string& path, size_t most_bytes) {
  MSP_ASSIGN_OR_RETURN(MappedFile mapped, MappedFile::Open(path));
  SeriesFile file(std::move(mapped));
  if (!file.file_.text().starts_with(kSeriesMagic)) {
    return BadInput(Msg("{} is not a file of series: it does not begin with {}", path, kSeriesMagic));
  }
  file.whole_ = kSeriesMagic.size();
  file.Scan(most_bytes);
  return file;
}

StatusOr<bool> SeriesFile::Follow(size_t most_bytes) {
  if (Scan(most_bytes)) return true;
  MSP_ASSIGN_OR_RETURN(MappedFile now, MappedFile::Open(file_.path()));
  if (now.text().size() < whole_) return BadInput(Msg("{} became shorter: read it again", file_.path()));
  file_ = std::move(now);
  return Scan(most_bytes);
}

SeriesFile::Values SeriesFile::block(size_t i) const {
  const Block& b = blocks_[i];
  return {b.step,
          b.table,
          b.columns,
          b.layout,
          layouts_[b.layout].series,
          reinterpret_cast<const double*>(file_.text().data() + b.values)};
}

// True when it stopped because of `most_bytes`.
bool SeriesFile::Scan(size_t most_bytes) {
  const std::string_view text = file_.text();
  const size_t begin = whole_;
  while (text.size() - whole_ >= sizeof(SeriesBlock)) {
    if (whole_ - begin >= most_bytes) return true;
    const auto block = LoadAt<SeriesBlock>(text, whole_);
    const size_t payload = whole_ + sizeof(SeriesBlock);
    if (PaddedTo8(block.bytes) > text.size() - payload) return false;
    const std::string_view bytes = text.substr(payload, block.bytes);
    if (Crc32(bytes.data(), bytes.size()) != block.crc || !Take(block.type, bytes, payload, &session_)) {
      return false;
    }
    whole_ = payload + PaddedTo8(block.bytes);
  }
  return false;
}

bool SeriesFile::Take(uint32_t type, std::string_view payload, size_t at, Session* session) {
  switch (static_cast<SeriesBlockType>(type)) {
    case SeriesBlockType::kSession: *session = {}; return true;
    case SeriesBlockType::kTable: return TakeTable(payload, session);
    case SeriesBlockType::kSeries: return TakeSeries(payload, session);
    case SeriesBlockType::kValues: return TakeValues(payload, at, session);
  }
  return true;  // of a later release
}

bool SeriesFile::TakeTable(std::string_view payload, Session* session) {
  JsonDoc doc;
  if (!ParseJson(payload, "table", &doc).ok()) return false;
  Table table;
  table.name = doc["name"].Text();
  for (const JsonValue& column : doc["columns"].Items()) table.columns.emplace_back(column.Text());
  table.micro_steps = doc["micro_steps"].Bool();
  const auto [known, fresh] =
      table_ids_.emplace(fmt::format("{}\n{}", table.name, fmt::join(table.columns, "\n")), tables_.size());
  if (fresh) tables_.push_back(std::move(table));
  session->tables.push_back(known->second);
  session->layouts.push_back(kNone);
  return true;
}

bool SeriesFile::TakeSeries(std::string_view payload, Session* session) {
  JsonDoc doc;
  if (!ParseJson(payload, "series", &doc).ok()) return false;
  for (const JsonValue& item : doc["items"].Items()) {
    if (item.size() != 4 || item[0].UInt() >= session->tables.size()) return false;
    Series series{session->tables[item[0].UInt()], item[1].Int(), std::string(item[2].Text()), item[3].Int()};
    const auto [known, fresh] = series_ids_.emplace(
        fmt::format("{}\n{}\n{}\n{}", series.table, series.vpp_stage, series.micro_step, series.name), series_.size());
    if (fresh) series_.push_back(std::move(series));
    session->series.push_back(known->second);
  }
  return true;
}

bool SeriesFile::TakeRows(std::string_view bytes, size_t count, size_t table, Session* session) {
  Rows rows;
  rows.series.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const auto number = LoadAt<uint32_t>(bytes, i * sizeof(uint32_t));
    if (number >= session->series.size()) return false;
    rows.series.push_back(session->series[number]);
    rows.place.emplace(rows.series.back(), static_cast<uint32_t>(i));
  }
  // A training that alternates between a few sets of rows keeps a few layouts.
  const auto oldest =
      layouts_.rbegin() + static_cast<std::ptrdiff_t>(std::min<size_t>(layouts_.size(), kLayoutsLooked));
  const auto known = std::find_if(layouts_.rbegin(), oldest, [&](const Rows& r) { return r.series == rows.series; });
  if (known != oldest) {
    session->layouts[table] = static_cast<size_t>(layouts_.rend() - known) - 1;
  } else {
    session->layouts[table] = layouts_.size();
    layouts_.push_back(std::move(rows));
  }
  return true;
}

bool SeriesFile::TakeValues(std::string_view payload, size_t at, Session* session) {
  if (payload.size() < sizeof(SeriesValues)) return false;
  const auto head = LoadAt<SeriesValues>(payload, 0);
  if (head.table >= session->tables.size() || head.columns != tables_[session->tables[head.table]].columns.size()) {
    return false;
  }
  size_t values = sizeof(SeriesValues);
  if ((head.flags & kSameRows) == 0) {
    const size_t bytes = PaddedTo8(size_t{head.rows} * sizeof(uint32_t));
    if (payload.size() - values < bytes || !TakeRows(payload.substr(values), head.rows, head.table, session))
      return false;
    values += bytes;
  }
  const size_t layout = session->layouts[head.table];
  if (layout == kNone || layouts_[layout].series.size() != head.rows) return false;
  if ((payload.size() - values) / sizeof(double) < size_t{head.rows} * head.columns) return false;
  blocks_.push_back({head.step, session->tables[head.table], head.rows, head.columns, at + values, layout});
  last_step_ = std::max(last_step_, head.step);
  return true;
}

double SeriesFile::Value(size_t block, size_t row, size_t column) const {
  const Block& b = blocks_[block];
  return LoadAt<double>(file_.text(), b.values + (column * b.rows + row) * sizeof(double));
}

std::vector<SeriesFile::Point> SeriesFile::Read(size_t series, size_t column) const {
  std::vector<Point> points;
  const size_t table = series_[series].table;
  for (const Block& block : blocks_) {
    if (block.table != table || column >= block.columns) continue;
    const auto& place = layouts_[block.layout].place;
    const auto row = place.find(series);
    if (row == place.end()) continue;
    const size_t at = block.values + (column * block.rows + row->second) * sizeof(double);
    points.push_back({block.step, LoadAt<double>(file_.text(), at)});
  }
  return points;
}

}  // namespace msprobe
