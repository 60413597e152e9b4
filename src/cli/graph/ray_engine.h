// The graphs of steps and ranks built by tasks on a Ray cluster, each of which runs this command for one of them.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/python_process.h"
#include "base/status.h"
#include "base/temp_directory.h"
#include "graph/build/visualize.h"

namespace msprobe {

class RayEngine {
 public:
  /// `command`: the arguments behind the name of the command that build the graphs; parts lie in a directory below
  /// `output` as long as this object lives. All machines must see the same files.
  RayEngine(std::vector<std::string> command, std::string output)
      : command_(std::move(command)), output_(std::move(output)) {}
  RayEngine(const RayEngine&) = delete;
  RayEngine& operator=(const RayEngine&) = delete;
  /// To be given to VisualizeGraph().
  GraphParts Parts();

 private:
  Status Begin(size_t pairs);
  StatusOr<std::string> File(size_t pair);
  Status ReadAnswer();

  std::vector<std::string> command_;
  std::string output_;
  std::optional<TempDirectory> directory_;
  std::unique_ptr<PythonProcess> process_;
  std::map<size_t, Status> answers_;
  size_t pairs_ = 0;
};

}  // namespace msprobe
