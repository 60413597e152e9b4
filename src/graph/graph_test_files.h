// Small dumps for the tests of this room.
#pragma once

#include <string>

#include "dump/test_files.h"

namespace msprobe {

/// A directory with rank directories, removed afterwards.
class DumpDir : public TempDir {
 public:
  std::string Path(const std::string& name) const { return path() + "/" + name; }
  /// A rank directory; `data` are the members of "data" in dump.json, `construct` those of construct.json.
  std::string Rank(const std::string& dir, const std::string& construct, const std::string& data,
                   const std::string& stack = "", const std::string& task = "statistics") const {
    Write(dir + "/construct.json", "{" + construct + "}");
    Write(dir + "/stack.json", "{" + stack + "}");
    Write(dir + "/dump.json",
          "{\"task\": \"" + task +
              "\", \"level\": \"mix\", \"framework\": \"pytorch\", \"dump_data_dir\": null, \"data\": {" + data + "}}");
    return Path(dir);
  }
};

/// A tensor of a statistics dump.
inline std::string TensorJson(double max, double min, double mean, double norm, const std::string& more = "") {
  const auto number = [](double v) {
    char buf[64];
    snprintf(buf, sizeof buf, "%.17g", v);
    return std::string(buf);
  };
  return "{\"type\": \"torch.Tensor\", \"dtype\": \"torch.float32\", \"shape\": [2, 3], \"Max\": " + number(max) +
         ", \"Min\": " + number(min) + ", \"Mean\": " + number(mean) + ", \"Norm\": " + number(norm) +
         ", \"requires_grad\": true" + more + "}";
}

inline std::string OpJson(const std::string& name, const std::string& input, const std::string& output) {
  return "\"" + name + "\": {\"input_args\": [" + input + "], \"input_kwargs\": {}, \"output\": [" + output + "]}";
}

}  // namespace msprobe
