// monitor.series: nothing crashes, and what is read lies within the file.
#include <string>

#include "fuzz_file.h"
#include "monitor/series_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace msprobe;
  const fuzz::MemoryFile input(data, size);
  const auto file = SeriesFile::Open(input.path());
  if (!file.ok()) {
    fuzz::CheckRefusal(file.status());
    return 0;
  }
  fuzz::Check(file->whole_bytes() <= size, "what is whole is within the file");
  fuzz::Check(file->blocks() * 40 <= size, "each block takes its bytes");
  for (size_t i = 0; i < file->series().size() && i < 100; ++i) {
    const auto& table = file->tables().at(file->series()[i].table);
    for (size_t column = 0; column < table.columns.size() && column < 10; ++column) {
      fuzz::Check(file->Read(i, column).size() <= file->blocks(), "a block has one value of a series");
    }
  }
  return 0;
}
