// The effective configuration of a run: what its files set, with names of one kind, and what its frameworks take for
// the rest.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/message.h"
#include "checks/pack.h"
#include "config/settings.h"

namespace msprobe {

struct Fact {
  ConfigValue value;
  std::string origin;  // file:line; "default of Megatron"; what it was computed from
  bool by_default = false;
  bool by_name = false;           // of a file of no known stack, by what others call it
  std::vector<double> also = {};  // what it says, too, where the unit or the rule of such a file is not known
};

/// Values by the names of quantities.def and those that are computed from them: attention_kind, padded_vocab,
/// global_batch, warmup, schedule, precision, moe, ...
class EffectiveRun {
 public:
  explicit EffectiveRun(Configuration configuration, const Pack* pack = nullptr);

  /// Null: no file says it, and no framework whose files were given has a default.
  const Fact* Find(std::string_view quantity) const;
  std::optional<double> Number(std::string_view quantity) const;
  std::optional<bool> Truth(std::string_view quantity) const;
  /// In small letters; "" if it is not known.
  std::string Word(std::string_view quantity) const;
  /// An environment variable, from the scripts or the pack.
  const Setting* Variable(std::string_view name) const;
  std::string Package(std::string_view name) const;
  bool Has(ConfigDialect dialect) const;
  /// Whether a file says what the model is: without, nothing follows from what it does not set.
  bool KnowsModel() const { return Find("num_layers") || Find("hidden_size"); }
  /// Whether a program that is no stack of its own trains.
  bool HasOwnProgram() const;
  /// Whether experts are used; nullopt if nothing says so.
  bool IsMoe() const;
  /// The smallest and largest value of the first input of the packed forwards, if those are whole numbers.
  std::optional<std::pair<double, double>> TokenRange() const { return tokens_; }

  /// Whether a file leaves it to the run: $(nproc).
  bool LeftOpen(std::string_view quantity) const { return open_.contains(quantity); }

  const std::map<std::string, Fact, std::less<>>& facts() const { return facts_; }
  /// Keys of settings that some quantity is read from, and which; "" of several.
  const std::map<std::string, std::string, std::less<>>& used() const { return used_; }
  const Configuration& configuration() const { return configuration_; }
  const std::vector<Message>& notes() const { return configuration_.notes; }
  const std::vector<ConfigDialect>& dialects() const { return dialects_; }

 private:
  void FindOwnPrograms();
  void ReadNamed();
  void MarkCopies(const ConfigSource& source, const Setting& read, const std::string& quantity);
  void ReadOptimizerGroups();
  void ReadTokenizer();
  void ReadVersions();
  void ReadDeepSpeedDefaults();
  void ReadDefaults();
  /// Whether a stack that takes its schedules from transformers trains.
  bool HasSchedulesOfTransformers() const;
  /// Quantities that stacks give in units, words or parts of their own.
  void DeriveOfPrograms();
  void DeriveLengths();
  void DeriveUnits();
  void DeriveOfMpt();
  void DeriveOfTimm();
  void DeriveOfOpenClip();
  void DeriveOfNanoGpt();
  void DeriveOfMmengine();
  void DeriveNorm();
  void DeriveNormEps(const std::string& norm);
  void DeriveOfOlmo();
  void DeriveMeans();
  bool DeriveMeanOfHooks(const ConfigSource& source);
  void DeriveOfDetectron();
  void DeriveMilestones();
  void DeriveDivergence();
  void DerivePolicy();
  /// What a file of no known stack may say in another unit, or by a rule of its own.
  void ReadOtherUnits();
  void DeriveOwnBatch();
  void DeriveAttention();
  void DeriveWindow();
  void DeriveActivation();
  void DeriveOfModelType();
  void DeriveSizes();
  void DeriveRotary();
  void DeriveMoe();
  void DeriveAuxLoss();
  void DeriveSharedExperts();
  void DeriveDenseLayers();
  void DeriveOptimizer();
  void DeriveBatch();
  void DeriveCompletions();
  /// Whether a file of no known stack has a number of micro batches under a name that is not known.
  bool AccumulatesByOtherName() const;
  void DeriveWorld();
  /// Whether a program that is not here counts by devices, of which one process may have many.
  bool CountsDevices() const;
  void DeriveSchedule();
  void DeriveWarmup();
  void DeriveClipping();
  void DeriveData();
  void DeriveAdapter();
  void AddModulesOfTorchtune(std::vector<std::string>* names);
  void DerivePrecision();
  void DeriveLossScale();
  /// A value that the files leave to the run: $(nproc).
  void LeaveOpen(const std::string& quantity) {
    facts_.erase(quantity);
    open_.insert(quantity);
  }
  void Set(const std::string& quantity, ConfigValue value, const std::string& origin, bool by_default = false);
  /// A computed value with the origin of what it was computed from.
  void From(std::string_view source, const std::string& quantity, ConfigValue value);

  Configuration configuration_;
  std::vector<ConfigDialect> dialects_;
  std::map<std::string, Fact, std::less<>> facts_;
  std::map<std::string, std::string, std::less<>> used_;
  std::set<std::string, std::less<>> open_;
  std::optional<std::pair<double, double>> tokens_;
};

}  // namespace msprobe
