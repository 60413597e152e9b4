#include "responses/response_settings.h"

#include <charconv>
#include <cmath>

#include "base/message.h"
#include "base/text.h"
#include "base/yaml.h"

namespace msprobe {
namespace {

constexpr int64_t kMostWindow = int64_t{1} << 12;  // its tables take the square of it

/// What a number may be.
enum class Allowed : uint8_t { kPositive, kCount, kShare, kLogProbability };

Message WordsOf(Allowed allowed) {
  switch (allowed) {
    case Allowed::kPositive: return Msg("an integer from 1 to {}", kMostWindow);
    case Allowed::kCount: return Msg("an integer from 0");
    case Allowed::kShare: return Msg("a number from 0 to 1");
    case Allowed::kLogProbability: return Msg("a number that is not above 0");
  }
  return {};
}

bool Fits(double value, Allowed allowed) {
  const bool whole = std::floor(value) == value;
  switch (allowed) {
    case Allowed::kPositive: return whole && value >= 1 && value <= static_cast<double>(kMostWindow);
    case Allowed::kCount: return whole && value >= 0 && value < 1e15;
    case Allowed::kShare: return value >= 0 && value <= 1;
    case Allowed::kLogProbability: return value <= 0;
  }
  return false;
}

class SettingsReader {
 public:
  SettingsReader(const YamlNode& root, std::string path) : root_(root), path_(std::move(path)) {}

  template <typename Number>
  void Read(std::string_view key, Allowed allowed, Number* to) {
    if (!status_.ok()) return;
    const YamlNode* node = &root_;
    for (const std::string_view word : Split(key, '.')) node = node && node->IsMap() ? node->Find(word) : nullptr;
    double value = NAN;
    const std::string text = node && node->IsText() ? node->text : "";
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !Fits(value, allowed)) {
      status_ = BadInput(Msg("{}: {} is {}; allowed: {}", OneLine(path_), key,
                             text.empty() ? Msg("missing") : Message(OneLine(text)), WordsOf(allowed)));
      return;
    }
    *to = static_cast<Number>(value);
  }
  Status status() const { return status_; }

 private:
  const YamlNode& root_;
  std::string path_;
  Status status_;
};

}  // namespace

StatusOr<ResponseLimits> ReadResponseLimits(const std::string& path) {
  MSP_ASSIGN_OR_RETURN(const YamlNode root, ReadYamlFile(path));
  ResponseLimits out;
  SettingsReader reader(root, path);
  reader.Read("window_size", Allowed::kPositive, &out.window);
  reader.Read("stride", Allowed::kPositive, &out.stride);
  reader.Read("rare_character.explogp_sum_thresh", Allowed::kShare, &out.rare_sum);
  reader.Read("rare_character.category_thresh", Allowed::kCount, &out.rare_categories);
  reader.Read("rare_character.top1_logp_thresh", Allowed::kLogProbability, &out.rare_top1);
  reader.Read("garbled.top1_logp_thresh", Allowed::kLogProbability, &out.garbled_top1);
  reader.Read("garbled.window_ratio", Allowed::kShare, &out.garbled_share);
  reader.Read("garbled.window_thresh", Allowed::kCount, &out.garbled_windows);
  reader.Read("repetition.trajectory.n", Allowed::kPositive, &out.ngram);
  reader.Read("repetition.trajectory.distinct_n_thresh", Allowed::kShare, &out.distinct);
  reader.Read("repetition.trajectory.logp_thresh", Allowed::kLogProbability, &out.trajectory_logp);
  reader.Read("repetition.acf.acf_threshold", Allowed::kShare, &out.acf);
  reader.Read("repetition.acf.logp_thresh", Allowed::kLogProbability, &out.acf_logp);
  reader.Read("repetition.single_window_thresh", Allowed::kCount, &out.single_windows);
  reader.Read("repetition.multi_window_thresh", Allowed::kCount, &out.multi_windows);
  MSP_RETURN_IF_ERROR(reader.status());
  if (out.window < out.stride) {
    return BadInput(Msg("{}: window_size is {}, less than stride {}: windows would leave tokens out", OneLine(path),
                        out.window, out.stride));
  }
  return out;
}

}  // namespace msprobe
