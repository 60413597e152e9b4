#include "monitor/series_writer.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/message.h"
#include "json/writer.h"
#include "monitor/append_file.h"
#include "monitor/series_reader.h"
#include "tensor/kernels/crc32.h"

namespace msprobe {
namespace {

template <typename T>
void AppendRaw(std::string* out, const T* values, size_t count) {
  out->append(reinterpret_cast<const char*>(values), count * sizeof(T));
}

}  // namespace

SeriesWriter::~SeriesWriter() { Close(); }

void SeriesWriter::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

Status SeriesWriter::Open(const std::string& path) {
  MSP_ASSIGN_OR_RETURN(fd_, OpenAppend(path));
  path_ = path;
  const off_t size = lseek(fd_, 0, SEEK_END);
  if (size > 0) {
    Status cut = OkStatus();
    if (const auto file = SeriesFile::Open(path); !file.ok()) {
      cut = file.status();
    } else if (ftruncate(fd_, static_cast<off_t>(file->whole_bytes())) != 0) {
      cut = InternalError(
          Msg("{} cannot be continued: {}; choose another directory", path, KnownText(std::strerror(errno))));
    }
    if (!cut.ok()) return Close(), cut;
  } else {
    pending_ = kSeriesMagic;
  }
  AddBlock(SeriesBlockType::kSession, {});
  return OkStatus();
}

void SeriesWriter::AddBlock(SeriesBlockType type, std::string_view payload) {
  const SeriesBlock block{static_cast<uint32_t>(type), static_cast<uint32_t>(payload.size()),
                          Crc32(payload.data(), payload.size()), 0};
  AppendRaw(&pending_, &block, 1);
  pending_ += payload;
  pending_.resize(PaddedTo8(pending_.size()), '\0');
}

void SeriesWriter::AddTable(std::string_view name, std::span<const std::string> columns, bool micro_steps) {
  last_rows_.emplace_back();
  if (!is_open()) return;
  JsonWriter json(kJsonCompact);
  json.Object([&] {
    json.Member("name", name);
    json.Member("columns", columns);
    json.Member("micro_steps", micro_steps);
  });
  AddBlock(SeriesBlockType::kTable, json.Take());
}

void SeriesWriter::AddSeries(std::span<const SeriesName> series) {
  if (!is_open() || series.empty()) return;
  JsonWriter json(kJsonCompact);
  json.Object([&] {
    json.ArrayMember("items", series, [&](const SeriesName& s) {
      json.BeginArray();
      json.UInt(s.table);
      json.Int(s.vpp_stage);
      json.String(s.name);
      json.Int(s.micro_step);
      json.EndArray();
    });
  });
  AddBlock(SeriesBlockType::kSeries, json.Take());
}

void SeriesWriter::AddValues(int64_t step, uint32_t table, std::span<const uint32_t> rows,
                             std::span<const double> values) {
  if (!is_open() || rows.empty()) return;
  std::vector<uint32_t>& last = last_rows_[table];
  const bool same = std::equal(rows.begin(), rows.end(), last.begin(), last.end());
  const SeriesValues head{step, table, static_cast<uint32_t>(rows.size()),
                          static_cast<uint32_t>(values.size() / rows.size()), same ? kSameRows : 0};
  payload_.clear();
  AppendRaw(&payload_, &head, 1);
  if (!same) {
    AppendRaw(&payload_, rows.data(), rows.size());
    payload_.resize(PaddedTo8(payload_.size()), '\0');
    last.assign(rows.begin(), rows.end());
  }
  AppendRaw(&payload_, values.data(), values.size());
  AddBlock(SeriesBlockType::kValues, payload_);
}

Status SeriesWriter::Flush() {
  if (!is_open() || pending_.empty()) return OkStatus();
  Status status = AppendWhole(fd_, path_, pending_);
  pending_.clear();
  if (!status.ok()) Close();
  return status;
}

}  // namespace msprobe
