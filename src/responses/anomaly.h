// Broken responses of a generation: rare characters, garbled text, repetition, values that are no numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace msprobe {

/// What is wrong with a response; the numbers are those that programs read.
enum class ResponseAnomaly : uint8_t { kNone, kRareCharacter, kGarbled, kRepetition, kNotNumbers };
std::string_view NameOf(ResponseAnomaly anomaly);

/// As the yaml of the earlier tool calls them.
struct ResponseLimits {
  int64_t window = 128, stride = 64;
  double rare_sum = 0.4, rare_top1 = -6;
  int64_t rare_categories = 2;
  double garbled_top1 = -5, garbled_share = 0.2;
  int64_t garbled_windows = 0;
  int64_t ngram = 3;
  double distinct = 0.2, trajectory_logp = -0.2;
  double acf = 0.65, acf_logp = -0.2;
  int64_t single_windows = 14, multi_windows = 2;
};

/// The candidates of each token of a response, the most probable first.
struct ResponseTokens {
  std::span<const int64_t> tokens;
  size_t positions = 0, candidates = 0;
  std::span<const double> logprobs;     // positions x candidates
  std::span<const int64_t> ids;         // the same
  std::span<const uint8_t> categories;  // by id; empty where the vocabulary is not known
};

/// Categories of tokens that count otherwise than one each.
inline constexpr uint8_t kLatin = 0, kLatinWithSpace = 1, kPunctuation = 2, kWhitespace = 3;

struct ResponseFinding {
  ResponseAnomaly anomaly = ResponseAnomaly::kNone;
  int64_t position = -1;  // the token, or where the window begins that decides
};

/// Keeps memory and tables between responses; one thread at a time.
class AnomalyDetector {
 public:
  explicit AnomalyDetector(const ResponseLimits& limits);
  ResponseFinding Find(const ResponseTokens& response);

 private:
  struct Repeats {
    int64_t both = 0, acf = 0, trajectory = 0;
  };
  int64_t RareAt(const ResponseTokens& r, size_t begin, size_t end, int64_t* count) const;
  bool IsRare(const ResponseTokens& r, size_t position) const;
  bool IsGarbled(const ResponseTokens& r, size_t begin, size_t end, int64_t rare) const;
  bool CountRepeats(const ResponseTokens& r, size_t begin, size_t end, Repeats* repeats);
  bool HasPeriod(std::span<const double> values);
  bool HasFewDistinct(std::span<const int64_t> tokens);

  ResponseLimits limits_;
  std::vector<double> forward_cos_, forward_sin_, backward_;  // tables of the transforms
  std::vector<double> values_, power_, correlation_;
  std::vector<uint64_t> grams_;
};

}  // namespace msprobe
