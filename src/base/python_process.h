// A program of ours in the environment's Python, talked to over a socket, which is its descriptor 0.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace msprobe {

class PythonProcess {
 public:
  /// Runs `program`, its text, in the Python of $MSPROBE_PYTHON, else the one beside the command, else python3. Error
  /// texts name `option`, for which it runs. kUsage when there is no such Python.
  /// A descriptor that is `inherited` is its descriptor 3.
  static StatusOr<std::unique_ptr<PythonProcess>> Start(std::string_view option, std::string_view program,
                                                        const std::vector<std::string>& arguments, int inherited = -1);
  PythonProcess(const PythonProcess&) = delete;
  PythonProcess& operator=(const PythonProcess&) = delete;
  /// Ends the process, by force when it does not end by itself.
  ~PythonProcess();

  Status Send(const void* data, size_t bytes);
  /// The next line without its end. After `seconds` (0: never) an error, behind which the process is of no more use.
  StatusOr<std::string> ReadLine(int seconds = 0);
  /// The next `bytes` bytes, which come behind a line.
  StatusOr<std::string> ReadBytes(size_t bytes, int seconds = 0);
  /// What to say when the other side is gone, or speaks otherwise than it should.
  Status Ended() const;
  /// Does not wait for it to end by itself.
  void Kill();

 private:
  explicit PythonProcess(std::string_view option) : option_(option) {}
  /// Appends what has come to `buffer_`.
  Status Receive(std::chrono::steady_clock::time_point end_of_time, int seconds);
  Status Spawn(std::string_view program, const std::vector<std::string>& arguments, int inherited);

  std::string option_;
  int socket_ = -1;
  pid_t pid_ = -1;
  std::string buffer_;  // bytes behind the last line
};

}  // namespace msprobe
