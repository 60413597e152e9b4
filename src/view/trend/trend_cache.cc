#include "view/trend/trend_cache.h"

#include <algorithm>

namespace msprobe::view {
namespace {

constexpr size_t kMostFiles = 4;  // two runs side by side, and those looked at before

}  // namespace

StatusOr<std::shared_ptr<TrendFile>> TrendCache::File(const std::string& real, const FileStamp& stamp,
                                                      std::string_view shown) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(files_.begin(), files_.end(), [&](const OpenFile& f) { return f.real == real; });
  if (found != files_.end() && found->stamp == stamp) {
    files_.splice(files_.begin(), files_, found);
    return files_.front().file;
  }
  if (found != files_.end()) files_.erase(found);
  MSP_ASSIGN_OR_RETURN(std::shared_ptr<TrendFile> file, TrendFile::Open(real, shown));
  files_.push_front({real, stamp, file});
  if (files_.size() > kMostFiles) files_.pop_back();
  return file;
}

}  // namespace msprobe::view
