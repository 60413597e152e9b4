// The layout of monitor.series, shared by the writer and the reader.
//
// The file begins with kSeriesMagic. Blocks follow, each a SeriesBlock and its payload, padded to 8 bytes:
//   kSession   nothing; a process begins, and numbers its tables and series from 0
//   kTable     {"name": "grad_reduced", "columns": ["norm", "min"], "micro_steps": false}, numbered as they come
//   kSeries    {"items": [[table, vpp_stage, "name", micro_step], ...]}, numbered as they come; micro_step -1: none
//   kValues    SeriesValues, u32 series[rows] padded to 8 bytes unless kSameRows is set (then those of the table's last
//              kValues), f64 values[columns][rows]
// Numbers are little-endian. A block whose size or checksum is wrong ends the file: what is before it is whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace msprobe {

inline constexpr std::string_view kSeriesMagic = "MSPSER01";

enum class SeriesBlockType : uint32_t { kSession = 1, kTable = 2, kSeries = 3, kValues = 4 };

struct SeriesBlock {
  uint32_t type;
  uint32_t bytes;  // of the payload, without padding
  uint32_t crc;    // of the payload
  uint32_t zero;
};
static_assert(sizeof(SeriesBlock) == 16);

struct SeriesValues {
  int64_t step;
  uint32_t table, rows, columns, flags;
};
static_assert(sizeof(SeriesValues) == 24);

inline constexpr uint32_t kSameRows = 1;

constexpr size_t PaddedTo8(size_t bytes) { return (bytes + 7) / 8 * 8; }

}  // namespace msprobe
