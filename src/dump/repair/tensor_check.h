// The tensor files that a dump names: there, whole, and of the shape and type that it says.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dump/repair/verify_finding.h"
#include "json/value.h"

namespace msprobe {

class TensorCheck {
 public:
  /// `data_dir` is what dump.json says; the directory beside it counts first, a dump may have been moved.
  TensorCheck(const std::string& rank_dir, std::string_view data_dir);
  ~TensorCheck();
  /// A tensor's object in dump.json; one without "data_name" has no file.
  void Check(const JsonValue& tensor);
  void Report(std::vector<VerifyFinding>* out);
  uint64_t good() const { return good_; }
  uint64_t bytes() const { return bytes_; }

 private:
  bool CheckContent(const std::string& name, const JsonValue& tensor);
  struct State;
  std::unique_ptr<State> state_;
  uint64_t good_ = 0, bytes_ = 0;
};

}  // namespace msprobe
