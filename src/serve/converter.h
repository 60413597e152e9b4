// Turns dumps into graphs: `msprobe graph_visualize` as a child process, one at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/status.h"

namespace msprobe::serve {

struct Conversion {
  enum class State : uint8_t { kRunning, kCancelling, kDone, kFailed, kCancelled };
  int64_t id = 0;
  State state = State::kRunning;
  int percent = 0;
  double seconds = 0;
  std::vector<std::string> command;  ///< as one would type it in the served directory
  std::string file;                  ///< kDone: the graph, relative to the served directory; "" when there is none
  std::string text;                  ///< kDone: what it printed, a plan or a summary as JSON
  struct Line {
    std::string english, chinese;
  };
  Line error;             ///< one line; with kDone what is incomplete
  std::vector<Line> log;  ///< the last lines of its stderr
};

class Converter {
 public:
  /// `command` is the executable, `directory` where it runs: its paths are relative to it. A conversion that is told to
  /// end has `patience` to do so before it is told again.
  Converter(std::string command, std::string directory,
            std::chrono::milliseconds patience = std::chrono::milliseconds(5000));
  Converter(const Converter&) = delete;
  Converter& operator=(const Converter&) = delete;
  /// Ends a conversion that runs, and waits for it.
  ~Converter();
  const std::string& directory() const { return directory_; }

  /// `options` follow `graph_visualize`. Null while another conversion runs.
  std::optional<int64_t> Start(std::vector<std::string> options);
  /// False when conversion `id` is not the one that runs.
  bool Cancel(int64_t id);
  /// The one that runs or ran last; null before the first.
  std::optional<Conversion> Last();

 private:
  using Clock = std::chrono::steady_clock;
  struct Child;
  void Run();
  void Follow(Child* child);
  void Urge(Child* child);
  void TakeOutput(std::string_view line);
  void TakeError(std::string_view line);
  void TakeProgress(std::string_view json);
  void Finish(int wait_status);
  bool Busy() const;  // of a locked converter

  const std::string command_, directory_;
  const std::chrono::milliseconds patience_;
  std::mutex mutex_;
  std::thread thread_;
  Conversion last_;  // id 0: none
  std::deque<Conversion::Line> log_;
  std::string output_;
  Conversion::Line last_error_, progress_error_;
  Clock::time_point began_, cancelled_;
};

}  // namespace msprobe::serve
