#include "certify/certificate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "base/message.h"
#include "json/writer.h"
#include "judgement/judgement_json.h"

namespace msprobe {
namespace {

// In the order in which a step computes them, so that the first difference is the one nearest to its cause.
constexpr std::array<std::pair<const char*, const char*>, 5> kParts{{
    {"losses", "loss"},
    {"gradients", "gradient"},
    {"parameters", "parameter"},
    {"buffers", "buffer"},
    {"random", "random state"},
}};

std::string TextOr(const JsonValue* v, const char* otherwise = "none") {
  return v != nullptr && v->IsString() ? std::string(v->Text()) : otherwise;
}

uint64_t CountOf(const JsonValue* v) {
  return v == nullptr ? 0 : v->IsArray() ? v->size() : v->IsObject() ? v->size() : 0;
}

std::string LossText(const JsonValue& loss) {
  const std::string value = TextOr(loss.Find("value"), "");
  return TextOr(loss.Find("checksum")) + (value.empty() ? "" : " (" + value + ")");
}

std::optional<RunDifference> CompareLosses(const JsonValue& left, const JsonValue& right) {
  const size_t both = std::min(left.size(), right.size());
  for (size_t i = 0; i < both; ++i) {
    const std::string a = LossText(left[i]), b = LossText(right[i]);
    if (a != b) return RunDifference{0, "loss", std::to_string(i), a, b};
  }
  if (left.size() == right.size()) return std::nullopt;
  return RunDifference{0, "number of losses", "", std::to_string(left.size()), std::to_string(right.size())};
}

std::optional<RunDifference> CompareNamed(const char* what, const JsonValue& left, const JsonValue& right) {
  for (const auto& member : left.Members()) {
    const std::string a = TextOr(&member.value), b = TextOr(right.Find(member.name));
    if (a != b) return RunDifference{0, what, std::string(member.name), a, b};
  }
  for (const auto& member : right.Members()) {
    if (left.Find(member.name) == nullptr) {
      return RunDifference{0, what, std::string(member.name), "none", TextOr(&member.value)};
    }
  }
  return std::nullopt;
}

const JsonValue* StepsOf(const JsonValue& run) {
  const JsonValue* steps = run.Find("steps");
  return steps != nullptr && steps->IsArray() ? steps : nullptr;
}

void WriteDifference(JsonWriter* json, std::string_view key, const std::optional<RunDifference>& d) {
  json->Key(key);
  if (!d) return json->Null();
  json->BeginObject();
  json->Member("step", d->step);
  json->Member("what", d->what);
  json->Member("name", d->name);
  json->Member("first", d->left);
  json->Member("second", d->right);
  json->EndObject();
}

/// On one line.
std::string RankJson(const RankCertificate& rank) {
  JsonWriter json;
  json.BeginObject();
  json.Member("rank", rank.rank);
  WriteDifference(&json, "first_difference", rank.with_capture);
  WriteDifference(&json, "difference_without_capture", rank.between_bare);
  json.ArrayMember("steps", rank.steps, [&](const RankCertificate::Step& s) {
    json.BeginObject();
    json.Member("losses", s.losses);
    json.Member("gradients", s.gradients);
    json.Member("parameters", s.parameters);
    json.Member("buffers", s.buffers);
    json.Member("random", s.random);
    json.Member("loss", s.loss);
    json.EndObject();
  });
  json.ObjectMember("peak_memory", [&] {
    for (const RankCertificate::Memory& m : rank.peak) {
      json.ObjectMember(m.where, [&] {
        json.Member("bare", m.bare);
        json.Member("captured", m.captured);
      });
    }
  });
  json.EndObject();
  return json.Take();
}

std::string DifferenceText(const RunDifference& d, const std::string& rank) {
  return fmt::format("step {} of {}: {}{}{} is {} and {}", d.step, rank, d.what, d.name.empty() ? "" : " ", d.name,
                     d.left, d.right);
}

/// Checksums of all steps.
uint64_t ComparedBy(const RankCertificate& rank) {
  uint64_t out = 0;
  for (const auto& s : rank.steps) out += s.losses + s.gradients + s.parameters + s.buffers + s.random;
  return out;
}

// The value for people beside the one with every bit.
std::string LossText(const std::string& bits) {
  char* end = nullptr;
  const double value = std::strtod(bits.c_str(), &end);
  return bits.empty() || *end != '\0' ? bits : fmt::format("{:.6g} ({})", value, bits);
}

// 20261122061248 -> 2026-11-22 06:12:48
std::string DateText(const std::string& stamp) {
  if (stamp.size() != 14) return stamp;
  const auto part = [&](size_t at, size_t n) { return stamp.substr(at, n); };
  return fmt::format("{}-{}-{} {}:{}:{}", part(0, 4), part(4, 2), part(6, 2), part(8, 2), part(10, 2), part(12, 2));
}

}  // namespace

std::optional<RunDifference> CompareDigests(const JsonValue& left, const JsonValue& right,
                                            const DigestOptions& options) {
  const JsonValue *a = StepsOf(left), *b = StepsOf(right);
  if (a == nullptr || b == nullptr) return RunDifference{0, "number of steps", "", "none", "none"};
  const auto from = std::min(static_cast<size_t>(options.left_from), a->size());
  const size_t left_steps = a->size() - from;
  for (size_t i = 0; i < std::min(left_steps, b->size()); ++i) {
    for (const auto& [part, what] : kParts) {
      if (!options.random && std::string_view(part) == "random") continue;
      const JsonValue *x = (*a)[from + i].Find(part), *y = (*b)[i].Find(part);
      if (x == nullptr || y == nullptr || x->kind() != y->kind()) continue;
      std::optional<RunDifference> found;
      if (x->IsArray()) found = CompareLosses(*x, *y);
      if (x->IsObject()) found = CompareNamed(what, *x, *y);
      if (!found) continue;
      found->step = static_cast<int64_t>(from + i);
      return found;
    }
  }
  if (left_steps == b->size()) return std::nullopt;
  return RunDifference{static_cast<int64_t>(from + std::min(left_steps, b->size())), "number of steps", "",
                       std::to_string(left_steps), std::to_string(b->size())};
}

RankCertificate DescribeRank(const std::string& rank, const JsonValue& bare, const JsonValue& captured) {
  RankCertificate result;
  result.rank = rank;
  const JsonValue* steps = StepsOf(captured);
  for (size_t i = 0; steps != nullptr && i < steps->size(); ++i) {
    const JsonValue& step = (*steps)[i];
    RankCertificate::Step& row = result.steps.emplace_back();
    row.losses = CountOf(step.Find("losses"));
    row.gradients = CountOf(step.Find("gradients"));
    row.parameters = CountOf(step.Find("parameters"));
    row.buffers = CountOf(step.Find("buffers"));
    row.random = CountOf(step.Find("random"));
    const JsonValue* losses = step.Find("losses");
    if (losses != nullptr && losses->IsArray() && !losses->empty()) {
      row.loss = TextOr((*losses)[losses->size() - 1].Find("value"), "");
    }
  }
  const JsonValue *before = bare.Find("peak"), *after = captured.Find("peak");
  if (before == nullptr || after == nullptr || !after->IsObject()) return result;
  for (const auto& member : after->Members()) {
    const JsonValue* was = before->Find(member.name);
    if (!member.value.IsInt() || was == nullptr || !was->IsInt()) continue;
    result.peak.push_back({std::string(member.name), was->Int(), member.value.Int()});
  }
  return result;
}

bool Certificate::deterministic() const {
  return std::none_of(ranks.begin(), ranks.end(), [](const auto& r) { return r.between_bare.has_value(); });
}

bool Certificate::certified() const {
  const Conclusion conclusion = Conclude(Judgements());
  return conclusion.kind == JudgementKind::kBitEqual;
}

std::vector<Judgement> Certificate::Judgements() const {
  std::vector<Judgement> out;
  for (const RankCertificate& rank : ranks) {
    Judgement& one = out.emplace_back();
    one.about = Message(rank.rank);
    one.basis = Msg("each bit of each step");
    if (rank.between_bare) {
      one.kind = JudgementKind::kCannotSay;
      one.evidence.push_back(Msg("two runs without capture differ: {}", DifferenceText(*rank.between_bare, rank.rank)));
    } else if (rank.with_capture) {
      one.kind = JudgementKind::kBug;
      one.evidence.push_back(Msg("the captured run differs: {}", DifferenceText(*rank.with_capture, rank.rank)));
    } else if (ComparedBy(rank) > 0) {
      one.kind = JudgementKind::kBitEqual;
    }
  }
  return out;
}

Message Certificate::Verdict() const {
  if (certified()) {
    uint64_t compared = 0;
    for (const RankCertificate& rank : ranks) compared += ComparedBy(rank);
    return Msg("certified: {} checksums of {} steps and {} processes are equal with and without capture", compared,
               ranks.front().steps.size(), ranks.size());
  }
  for (const RankCertificate& rank : ranks) {
    if (rank.between_bare) {
      return Msg(
          "not certified: two runs without capture already differ ({}): make the script deterministic, for example by "
          "\"seed\" and \"is_deterministic\" in the configuration",
          DifferenceText(*rank.between_bare, rank.rank));
    }
  }
  for (const RankCertificate& rank : ranks) {
    if (rank.with_capture) {
      return Msg("not certified: the captured run differs (without and with capture {})",
                 DifferenceText(*rank.with_capture, rank.rank));
    }
  }
  for (const RankCertificate& rank : ranks) {
    if (!rank.steps.empty() && ComparedBy(rank) == 0)
      return Msg("not certified: nothing of {} could be compared", rank.rank);
  }
  return Msg("not certified: the script ran no step");
}

std::string Certificate::Json(const std::vector<std::pair<std::string, uint32_t>>& files) const {
  JsonWriter json(kJsonIndented);
  json.BeginObject();
  json.Member("certified", certified());
  json.Member("deterministic", deterministic());
  json.Member("verdict", Verdict());
  json.Member("created", created);
  json.Member("command", command);
  json.Member("config", config);
  json.Member("dump_path", dump_path);
  json.Member("msprobe", MSPROBE_VERSION);
  json.Member("python", python);
  json.Member("torch", torch);
  json.Member("devices", devices);
  WriteConclusion(Conclude(Judgements()), &json);
  json.ArrayMember("ranks", ranks, [&](const RankCertificate& rank) { json.Raw(RankJson(rank)); });
  json.ObjectMember("files", [&] {
    for (const auto& [path, crc] : files) json.Member(path, fmt::format("{:08x}", crc));
  });
  json.EndObject();
  return json.Take() + "\n";
}

std::string Certificate::Markdown() const {
  std::string md = fmt::format("# {}\n\n{}.\n\n", certified() ? "Certified" : "Not certified", Verdict());
  md += fmt::format(
      "| | |\n|---|---|\n| command | `{}` |\n| configuration | {} |\n| dump | {} |\n| when | {} |\n"
      "| versions | msprobe {}, Python {}, PyTorch {} |\n| devices | {} |\n\n",
      command, config.empty() ? "the defaults" : config, dump_path, DateText(created), MSPROBE_VERSION, python, torch,
      devices);
  md +=
      "The command ran twice without and once with capture. At the end of each step these were compared by CRC-32 of "
      "type, shape and every byte:\n\n| process | step | loss | losses | gradients | parameters | buffers | random "
      "states | equal |\n|---|---|---|---|---|---|---|---|---|\n";
  for (const RankCertificate& rank : ranks) {
    for (size_t i = 0; i < rank.steps.size(); ++i) {
      const auto& s = rank.steps[i];
      auto reaches = [&](const auto& d) { return d && d->step <= static_cast<int64_t>(i); };
      const char* equal = reaches(rank.between_bare)   ? "not even without"
                          : reaches(rank.with_capture) ? "**no**"
                                                       : "yes";
      md += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", rank.rank, i, LossText(s.loss), s.losses,
                        s.gradients, s.parameters, s.buffers, s.random, equal);
    }
  }
  md += "\n| process | peak memory of | without capture, bytes | with capture | ratio |\n|---|---|---|---|---|\n";
  for (const RankCertificate& rank : ranks) {
    for (const auto& m : rank.peak) {
      md += fmt::format("| {} | {} | {} | {} | {:.3f} |\n", rank.rank, m.where, m.bare, m.captured,
                        m.bare > 0 ? static_cast<double>(m.captured) / static_cast<double>(m.bare) : 0.0);
    }
  }
  return md;
}

}  // namespace msprobe
