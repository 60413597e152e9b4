// What `msprobe acc_check --online` does: calls that trainings send are judged as they come.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lab/acc_check.h"

namespace msprobe {

struct OnlineSettings {
  std::string folder;  // that both sides have; "": connections
  std::string host = "127.0.0.1";
  int port = 0;
  std::string tls, token;                    // a directory of certificates, a file; "" for none
  std::vector<int64_t> ranks = {0};          // whose trainings are waited for; empty: of the first that ends
  int64_t journal_bytes = int64_t{4} << 30;  // of calls that wait to be judged
};

/// The keys of mindstudio-probe 8.x in section run_ut (or acc_check) of a config.json. False: is_online is not true.
StatusOr<bool> ReadOnlineConfig(const std::string& path, OnlineSettings* out);
/// "HOST:PORT", or a directory.
Status ReadOnlinePlace(const std::string& place, OnlineSettings* out);

struct OnlineReport {
  AccCheckReport calls;                             // of all tables together
  uint64_t judged = 0;                              // calls that have a row since the command began
  uint64_t sent = 0, left = 0, steps_left_out = 0;  // as the trainings said at their end
  std::vector<std::string> results;                 // accuracy_checking_result_{time}.csv of each step and rank
};

/// Until all ranks are at their end. `settings.output` gets step{n}/rank{r} with the tables, and online_journal.
/// `tell` takes lines for people: where it listens, who was refused.
StatusOr<OnlineReport> CheckOnline(const OnlineSettings& online, AccCheckSettings settings,
                                   const std::function<void(const Message&, bool warning)>& tell);

}  // namespace msprobe
