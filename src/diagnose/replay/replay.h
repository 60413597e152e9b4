// Which side of a difference is right: ops are called again in float64 with the inputs that the dumps hold.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/python_process.h"
#include "compare/pair/compare.h"
#include "diagnose/divergence.h"
#include "diagnose/replay_result.h"

namespace msprobe {

/// The process that calls torch.
class Replayer {
 public:
  /// kUsage when there is no Python with torch.
  static StatusOr<std::unique_ptr<Replayer>> Start();
  /// An op of the target and its partner. What cannot be replayed is a result that says why; an error ends it all.
  StatusOr<ReplayedOp> Replay(const DumpPair& pair, size_t op);

 private:
  Replayer() = default;
  Status Begin();
  StatusOr<std::string> Ask(const std::string& question, Message* why);
  std::unique_ptr<PythonProcess> process_;  // null after it died
  int restarts_ = 0;
};

/// Which ops are worth it. Keeps a bounded number of ops, of one pair or of many.
class ReplayPlan {
 public:
  explicit ReplayPlan(size_t most = 0) : most_(most) {}
  /// The suspects of a pair, and the ops that add most: `differences` and `distances` by op of the target.
  void Add(const DumpPair& pair, const FilePair& files, const Differences& differences, const OpDistances& distances);
  /// What another plan has for pairs behind these.
  void Merge(const ReplayPlan& other);
  /// The op of the first divergence comes before all others.
  void AddFirst(const Divergence& divergence);

  struct Entry {
    size_t files = 0;  // index in files()
    size_t op = 0;     // of the target
    int grade = 0;     // 0: the first divergence, 1: bug, 2: suspicious, 3: adds most, 4: the same, of modules
    float score = 0;   // error of the results over that of the inputs
  };
  const std::vector<FilePair>& files() const { return files_; }
  /// At most `most`, by pair and op.
  std::vector<Entry> Entries() const;

 private:
  void Shorten();
  size_t most_;
  std::vector<FilePair> files_;
  std::vector<Entry> entries_;
};

/// Called now and then with the share of the work that is done.
using ReplayProgress = std::function<void(double share)>;

/// Replays what the plan names, in its order of pairs and ops.
StatusOr<std::vector<ReplayedOp>> ReplayOps(const ReplayPlan& plan, const Mapping& mapping, Replayer* replayer,
                                            const ReplayProgress& progress);

}  // namespace msprobe
