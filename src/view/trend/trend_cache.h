// Trend files kept open, the least recently used dropped first.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "view/file/directory.h"
#include "view/trend/trend_file.h"

namespace msprobe::view {

class TrendCache {
 public:
  /// Opened again when its stamp differs from what is kept.
  StatusOr<std::shared_ptr<TrendFile>> File(const std::string& real, const FileStamp& stamp, std::string_view shown);

 private:
  struct OpenFile {
    std::string real;
    FileStamp stamp;
    std::shared_ptr<TrendFile> file;
  };
  std::mutex mutex_;
  std::list<OpenFile> files_;
};

}  // namespace msprobe::view
