// The zip file of `config_check -d` and of ConfigChecker, as mindstudio-probe writes it too.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "config/settings.h"
#include "sheet/zip_members.h"

namespace msprobe {

/// Statistics of one tensor: max, min, mean, norm.
struct TensorFeatures {
  double max = 0, min = 0, mean = 0, norm = 0;
  bool operator==(const TensorFeatures&) const = default;
};

/// By name, in the order of the file: arguments of a forward ("args.0"), or weights. Null features: something that is
/// no tensor.
struct NamedFeatures {
  std::string name;
  bool is_tensor = false;
  TensorFeatures features;
};

/// Where the program stood when it called a random function, outermost frame first.
struct RandomCall {
  std::vector<std::string> stack;
  int64_t count = 0;
};

struct StepRank {
  int64_t step = 0, rank = 0;
  bool operator<(const StepRank& o) const { return step != o.step ? step < o.step : rank < o.rank; }
};

using HyperParameters = std::vector<ConfigMember>;

/// What a pack holds; of parts that it lacks `has_` is false.
struct Pack {
  bool has_environment = false, has_packages = false, has_dataset = false, has_weights = false,
       has_hyperparameters = false, has_random = false;
  std::vector<Setting> environment;
  std::vector<std::pair<std::string, std::string>> packages;
  std::map<StepRank, std::vector<NamedFeatures>> dataset, weights;
  std::map<std::string, HyperParameters> hyperparameters;  // by the name of the file, as hyperparameters_static.json
  std::map<int64_t, std::vector<std::pair<std::string, std::vector<RandomCall>>>> random;  // by rank: op, its calls
  std::vector<Message> warnings;
};

/// A zip file on disk with its directory read and bounded.
class PackFile {
 public:
  static StatusOr<PackFile> Open(const std::string& path);
  StatusOr<Pack> Read() const;
  /// Writes the members that belong to a pack below `directory`, each by its own name; never outside of it, and no
  /// links.
  Status Unpack(const std::string& directory) const;

 private:
  PackFile(MappedFile file, std::vector<PackedMember> members) : file_(std::move(file)), members_(std::move(members)) {}
  MappedFile file_;
  std::vector<PackedMember> members_;  // of known names
  std::vector<Message> warnings_;
};

}  // namespace msprobe
