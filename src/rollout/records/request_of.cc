#include "rollout/records/request_of.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/message.h"
#include "base/text.h"

namespace msprobe {
namespace {

constexpr size_t kMostNotes = 20;

class RequestBuilder {
 public:
  RequestBuilder(const RecordParts& parts, RolloutSide side, RolloutRecords* records)
      : parts_(parts), side_(side), records_(records) {}

  RolloutRequest Build() {
    out_.id = IdText("id");
    if (const RecordValue* text = Part("text")) out_.text = text->text;
    if (const RecordValue* status = Part("status"); status && status->kind == RecordValue::Kind::kText)
      out_.truncated = status->text == "truncated" || status->text == "length";
    TakeTokens();
    for (const auto& [part, to] : {std::pair{"train", &out_.train_logprobs}, {"rollout", &out_.rollout_logprobs}})
      *to = OfResponse(Numbers(part), part);
    std::vector<double>& own = side_ == RolloutSide::kTrain ? out_.train_logprobs : out_.rollout_logprobs;
    if (own.empty()) own = OfResponse(Numbers("own"), "own");
    for (const double v : OfResponse(Numbers("mask"), "mask")) out_.response_mask.push_back(v != 0);
    TakePositions();
    TakeTables();
    out_.sampling = {Number("temperature"), Number("top_p"), Number("top_k"), Number("min_p")};
    if (const auto version = Number("version")) out_.version = static_cast<int64_t>(*version);
    return std::move(out_);
  }

 private:
  const RecordValue* Part(std::string_view part) const {
    const auto found = parts_.find(part);
    return found == parts_.end() ? nullptr : &found->second;
  }

  std::vector<double> Numbers(std::string_view part) const {
    std::vector<double> out;
    const RecordValue* value = Part(part);
    if (!value || value->kind == RecordValue::Kind::kNumber || !value->Flatten(&out)) return {};
    return out;
  }

  std::optional<double> Number(std::string_view part) const {
    const RecordValue* value = Part(part);
    if (!value) return std::nullopt;
    if (value->kind == RecordValue::Kind::kNumber) return value->number;
    if (value->kind == RecordValue::Kind::kNumbers && !value->numbers.empty()) return value->numbers.back();
    return std::nullopt;
  }

  std::string IdText(std::string_view part) const {
    const RecordValue* value = Part(part);
    if (!value) return {};
    if (value->kind == RecordValue::Kind::kText) return value->text;
    if (value->kind == RecordValue::Kind::kNumber && std::isfinite(value->number) && std::abs(value->number) < 1e15)
      return std::to_string(static_cast<int64_t>(value->number));
    return {};
  }

  void Note(Message note) {
    std::vector<Message>& notes = records_->notes;
    if (notes.size() < kMostNotes && std::find(notes.begin(), notes.end(), note) == notes.end())
      notes.push_back(std::move(note));
  }

  static int64_t TokenOf(double v) {
    return std::isfinite(v) && std::abs(v) < 9e15 ? static_cast<int64_t>(v) : int64_t{-1};
  }

  /// Which places of the padded row are tokens, and where the response begins in it.
  void TakeTokens() {
    std::vector<double> whole = Numbers("prompt");
    const std::vector<double> response = Numbers("response");
    const bool apart = !response.empty();
    if (apart) {
      begin_ = whole.size();
      whole.insert(whole.end(), response.begin(), response.end());
    } else {
      whole = Numbers("tokens");
    }
    width_ = whole.size();
    std::vector<bool> kept = Kept(apart);
    if (!apart) begin_ = std::min(width_, ResponseBegin(kept));
    for (size_t i = 0; i < width_; ++i) {
      if (!kept[i]) {
        records_->padding.insert(TokenOf(whole[i]));
        continue;
      }
      if (i < begin_) ++out_.prompt;
      places_.push_back(i);
      out_.tokens.push_back(TokenOf(whole[i]));
    }
  }

  std::vector<bool> Kept(bool apart) const {
    std::vector<bool> out(width_, true);
    const auto leave_out = [&](const std::vector<double>& mask, size_t from) {
      for (size_t i = 0; i < mask.size() && from + i < width_; ++i) {
        if (mask[i] == 0) out[from + i] = false;
      }
    };
    const std::vector<double> attention = Numbers("attention");
    if (attention.size() == width_) leave_out(attention, 0);
    if (apart) {
      const std::vector<double> prompt = Numbers("prompt_attention"), response = Numbers("response_attention");
      if (prompt.size() == begin_) leave_out(prompt, 0);
      if (response.size() == width_ - begin_) leave_out(response, begin_);
    } else if (const std::vector<double> response = Numbers("response_attention");
               !response.empty() && response.size() <= width_) {
      leave_out(response, width_ - response.size());  // the last places of the row are those of responses
    }
    if (const auto length = Number("length"); length && *length >= 0) {
      for (size_t i = static_cast<size_t>(std::min(*length, static_cast<double>(width_))); i < width_; ++i)
        out[i] = false;
    }
    return out;
  }

  /// Of a row that holds prompt and response in one.
  size_t ResponseBegin(const std::vector<bool>& kept) const {
    if (width_ == 0) return 0;
    const auto count = static_cast<size_t>(std::count(kept.begin(), kept.end(), true));
    const auto behind = [&](size_t tokens) {  // the place behind so many tokens
      size_t place = 0, seen = 0;
      for (; place < width_ && seen < tokens; ++place) seen += kept[place];
      while (place < width_ && !kept[place]) ++place;
      return place;
    };
    const auto bounded = [&](double v) { return static_cast<size_t>(std::clamp(v, 0.0, static_cast<double>(count))); };
    if (const auto length = Number("response_length")) return behind(count - bounded(*length));
    if (const auto length = Number("prompt_length")) return behind(bounded(*length));
    if (const size_t own = Numbers("response_attention").size(); own > 0 && own <= width_) return width_ - own;
    for (const std::string_view part : {"mask", "rollout", "train", "own"}) {
      const std::vector<double> values = Numbers(part);
      if (values.empty()) continue;
      if (values.size() < width_ && values.size() + 1 != width_) return width_ - values.size();
      const size_t shift = values.size() + 1 == width_ ? 1 : 0;
      for (size_t i = 0; i < values.size(); ++i) {
        if (values[i] != 0 && kept[std::min(i + shift, width_ - 1)]) return i + shift;
      }
      return width_;
    }
    return width_;
  }

  /// The values of the response's tokens; empty where their number fits nothing.
  std::vector<double> OfResponse(std::vector<double> values, std::string_view part) {
    if (values.empty()) return {};
    const size_t response = places_.size() - static_cast<size_t>(out_.prompt);
    if (out_.tokens.empty()) return values;  // ids were not recorded
    size_t first = 0;                        // place of values[0] in the padded row
    if (values.size() == width_ - begin_) {
      first = begin_;
    } else if (values.size() == width_) {
      first = 0;
    } else if (values.size() + 1 == width_) {
      first = 1;  // of the token behind
    } else if (values.size() == response) {
      return values;
    } else {
      Note(Msg("{} has {} values for {} tokens of a response and is left out", PartWords(part), values.size(),
               response));
      return {};
    }
    std::vector<double> out;
    for (size_t i = static_cast<size_t>(out_.prompt); i < places_.size(); ++i) {
      if (places_[i] < first) return {};
      out.push_back(values[places_[i] - first]);
    }
    return out;
  }

  static Message PartWords(std::string_view part) {
    if (part == "mask") return Msg("the mask of responses");
    if (part == "train") return Msg("the list of the trainer's log-probabilities");
    return Msg("the list of the engine's log-probabilities");
  }

  void TakePositions() {
    const std::vector<double> positions = Numbers("positions");
    if (positions.size() != width_ || width_ == 0) return;  // multimodal models have several for each token
    for (const size_t place : places_) out_.positions.push_back(TokenOf(positions[place]));
  }

  /// A table of rows for tokens: those of all tokens, or of the response.
  std::vector<float> RowsOf(std::string_view part, std::vector<int64_t>* inner, bool* of_response) {
    const RecordValue* value = Part(part);
    if (!value) return {};
    const std::vector<int64_t> shape = value->BoxShape();
    if (shape.size() < 2 || shape[0] <= 0) return {};
    std::vector<double> numbers;
    if (!value->Flatten(&numbers)) return {};
    const size_t rows = static_cast<size_t>(shape[0]), each = numbers.size() / rows;
    const size_t prompt = static_cast<size_t>(out_.prompt), tokens = places_.size(), response = tokens - prompt;
    std::vector<size_t> wanted;
    *of_response = false;
    if (rows == width_) {
      wanted = places_;
    } else if (rows == tokens) {
      for (size_t i = 0; i < tokens; ++i) wanted.push_back(i);
    } else if (rows == width_ - begin_ || rows == response) {
      *of_response = true;
      for (size_t i = prompt; i < tokens; ++i) wanted.push_back(rows == response ? i - prompt : places_[i] - begin_);
    } else if (rows + 1 == tokens) {
      for (size_t i = 0; i < rows; ++i) wanted.push_back(i);  // the last token of a response is never computed
    } else {
      return {};
    }
    inner->assign(shape.begin() + 1, shape.end());
    std::vector<float> out;
    out.reserve(wanted.size() * each);
    for (const size_t row : wanted) {
      for (size_t i = 0; i < each; ++i) out.push_back(static_cast<float>(numbers[row * each + i]));
    }
    return out;
  }

  void TakeTables() {
    std::vector<int64_t> inner;
    bool of_response = false;
    if (const std::vector<float> experts = RowsOf("experts", &inner, &of_response); inner.size() == 2) {
      out_.experts.assign(experts.begin(), experts.end());
      out_.expert_layers = inner[0];
      out_.expert_choices = inner[1];
      out_.experts_of_response = of_response;
    }
    inner.clear();
    std::vector<float> router = RowsOf("router_logits", &inner, &of_response);
    if (inner.size() == 2 && inner[0] == out_.expert_layers && of_response == out_.experts_of_response)
      out_.router_logits = std::move(router);
    inner.clear();
    std::vector<float> logits = RowsOf("logits", &inner, &of_response);
    if (inner.size() != 1 || inner[0] <= 1) return;
    const size_t vocabulary = static_cast<size_t>(inner[0]), rows = logits.size() / vocabulary;
    const size_t response = static_cast<size_t>(out_.response());
    if (!of_response) {
      // The row before a token says its probability.
      const size_t prompt = static_cast<size_t>(out_.prompt);
      if (prompt == 0 || rows + 1 < prompt + response) return;
      logits.erase(logits.begin(), logits.begin() + static_cast<ptrdiff_t>((prompt - 1) * vocabulary));
      logits.resize(response * vocabulary);
    }
    if (logits.size() != response * vocabulary) return;
    out_.logits = std::move(logits);
    out_.vocabulary = inner[0];
  }

  const RecordParts& parts_;
  const RolloutSide side_;
  RolloutRecords* records_;
  RolloutRequest out_;
  size_t width_ = 0, begin_ = 0;  // of the padded row: its length, and where the response begins
  std::vector<size_t> places_;    // of the tokens in it
};

}  // namespace

RolloutRequest RequestOf(const RecordParts& parts, RolloutSide side, RolloutRecords* records) {
  return RequestBuilder(parts, side, records).Build();
}

}  // namespace msprobe
