#include "cli/certificate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "base/text.h"

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
  return v != nullptr && v->IsString() ? std::string(Text(*v)) : otherwise;
}

uint64_t CountOf(const JsonValue* v) {
  return v == nullptr ? 0 : v->IsArray() ? v->Size() : v->IsObject() ? v->MemberCount() : 0;
}

std::string LossText(const JsonValue& loss) {
  const std::string value = TextOr(Find(loss, "value"), "");
  return TextOr(Find(loss, "checksum")) + (value.empty() ? "" : " (" + value + ")");
}

std::optional<RunDifference> CompareLosses(const JsonValue& left, const JsonValue& right) {
  const rapidjson::SizeType both = std::min(left.Size(), right.Size());
  for (rapidjson::SizeType i = 0; i < both; ++i) {
    const std::string a = LossText(left[i]), b = LossText(right[i]);
    if (a != b) return RunDifference{0, "loss", std::to_string(i), a, b};
  }
  if (left.Size() == right.Size()) return std::nullopt;
  return RunDifference{0, "number of losses", "", std::to_string(left.Size()), std::to_string(right.Size())};
}

std::optional<RunDifference> CompareNamed(const char* what, const JsonValue& left, const JsonValue& right) {
  for (const auto& member : left.GetObject()) {
    const std::string a = TextOr(&member.value), b = TextOr(Find(right, Text(member.name)));
    if (a != b) return RunDifference{0, what, std::string(Text(member.name)), a, b};
  }
  for (const auto& member : right.GetObject()) {
    if (Find(left, Text(member.name)) == nullptr) {
      return RunDifference{0, what, std::string(Text(member.name)), "none", TextOr(&member.value)};
    }
  }
  return std::nullopt;
}

const JsonValue* StepsOf(const JsonValue& run) {
  const JsonValue* steps = Find(run, "steps");
  return steps != nullptr && steps->IsArray() ? steps : nullptr;
}

std::string DifferenceJson(const std::optional<RunDifference>& d) {
  if (!d) return "null";
  std::string json = fmt::format("{{\"step\": {}, \"what\": \"{}\", \"name\": ", d->step, d->what);
  AppendJsonString(json, d->name);
  json += ", \"first\": ";
  AppendJsonString(json, d->left);
  json += ", \"second\": ";
  AppendJsonString(json, d->right);
  return json + "}";
}

std::string DifferenceText(const RunDifference& d, const std::string& rank) {
  return fmt::format("step {} of {}: {}{}{} is {} and {}", d.step, rank, d.what, d.name.empty() ? "" : " ", d.name,
                     d.left, d.right);
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

std::optional<RunDifference> CompareDigests(const JsonValue& left, const JsonValue& right) {
  const JsonValue *a = StepsOf(left), *b = StepsOf(right);
  if (a == nullptr || b == nullptr) return RunDifference{0, "number of steps", "", "none", "none"};
  for (rapidjson::SizeType i = 0; i < std::min(a->Size(), b->Size()); ++i) {
    for (const auto& [part, what] : kParts) {
      const JsonValue *x = Find((*a)[i], part), *y = Find((*b)[i], part);
      if (x == nullptr || y == nullptr || x->GetType() != y->GetType()) continue;
      std::optional<RunDifference> found;
      if (x->IsArray()) found = CompareLosses(*x, *y);
      if (x->IsObject()) found = CompareNamed(what, *x, *y);
      if (!found) continue;
      found->step = i;
      return found;
    }
  }
  if (a->Size() == b->Size()) return std::nullopt;
  return RunDifference{std::min(a->Size(), b->Size()), "number of steps", "", std::to_string(a->Size()),
                       std::to_string(b->Size())};
}

RankCertificate DescribeRank(const std::string& rank, const JsonValue& bare, const JsonValue& captured) {
  RankCertificate result;
  result.rank = rank;
  const JsonValue* steps = StepsOf(captured);
  for (rapidjson::SizeType i = 0; steps != nullptr && i < steps->Size(); ++i) {
    const JsonValue& step = (*steps)[i];
    RankCertificate::Step& row = result.steps.emplace_back();
    row.losses = CountOf(Find(step, "losses"));
    row.gradients = CountOf(Find(step, "gradients"));
    row.parameters = CountOf(Find(step, "parameters"));
    row.buffers = CountOf(Find(step, "buffers"));
    row.random = CountOf(Find(step, "random"));
    const JsonValue* losses = Find(step, "losses");
    if (losses != nullptr && losses->IsArray() && !losses->Empty()) {
      row.loss = TextOr(Find((*losses)[losses->Size() - 1], "value"), "");
    }
  }
  const JsonValue *before = Find(bare, "peak"), *after = Find(captured, "peak");
  if (before == nullptr || after == nullptr || !after->IsObject()) return result;
  for (const auto& member : after->GetObject()) {
    const JsonValue* was = Find(*before, Text(member.name));
    if (!member.value.IsInt64() || was == nullptr || !was->IsInt64()) continue;
    result.peak.push_back({std::string(Text(member.name)), was->GetInt64(), member.value.GetInt64()});
  }
  return result;
}

bool Certificate::deterministic() const {
  return std::none_of(ranks.begin(), ranks.end(), [](const auto& r) { return r.between_bare.has_value(); });
}

bool Certificate::certified() const {
  const bool equal = std::none_of(ranks.begin(), ranks.end(), [](const auto& r) { return r.with_capture.has_value(); });
  const bool any = std::any_of(ranks.begin(), ranks.end(), [](const auto& r) { return !r.steps.empty(); });
  return any && equal && deterministic();
}

std::string Certificate::Verdict() const {
  if (certified()) {
    uint64_t compared = 0;
    for (const RankCertificate& rank : ranks) {
      for (const auto& s : rank.steps) compared += s.losses + s.gradients + s.parameters + s.buffers + s.random;
    }
    return fmt::format("certified: {} checksums of {} steps and {} processes are equal with and without capture",
                       compared, ranks.front().steps.size(), ranks.size());
  }
  for (const RankCertificate& rank : ranks) {
    if (rank.between_bare) {
      return "not certified: two runs without capture differ already (" +
             DifferenceText(*rank.between_bare, rank.rank) +
             "): make the script deterministic, for example by \"seed\" and \"is_deterministic\" in the configuration";
    }
  }
  for (const RankCertificate& rank : ranks) {
    if (rank.with_capture) {
      return "not certified: the captured run differs (without and with capture " +
             DifferenceText(*rank.with_capture, rank.rank) + ")";
    }
  }
  return "not certified: the script made no step";
}

std::string Certificate::Json(const std::vector<std::pair<std::string, uint32_t>>& files) const {
  std::string json = fmt::format("{{\n \"certified\": {},\n \"deterministic\": {}", certified(), deterministic());
  auto text = [&](const char* key, const std::string& value) {
    json += fmt::format(",\n \"{}\": ", key);
    AppendJsonString(json, value);
  };
  text("verdict", Verdict());
  text("created", created);
  text("command", command);
  text("config", config);
  text("dump_path", dump_path);
  text("msprobe", MSPROBE_VERSION);
  text("python", python);
  text("torch", torch);
  text("devices", devices);
  json += ",\n \"ranks\": [";
  for (const RankCertificate& rank : ranks) {
    json += &rank == &ranks.front() ? "\n  {\"rank\": " : ",\n  {\"rank\": ";
    AppendJsonString(json, rank.rank);
    json += ", \"first_difference\": " + DifferenceJson(rank.with_capture);
    json += ", \"difference_without_capture\": " + DifferenceJson(rank.between_bare) + ", \"steps\": [";
    for (const auto& s : rank.steps) {
      json += fmt::format(
          "{}{{\"losses\": {}, \"gradients\": {}, \"parameters\": {}, \"buffers\": {}, \"random\": {}, \"loss\": "
          "\"{}\"}}",
          &s == &rank.steps.front() ? "" : ", ", s.losses, s.gradients, s.parameters, s.buffers, s.random, s.loss);
    }
    json += "], \"peak_memory\": {";
    for (const auto& m : rank.peak) {
      json += fmt::format("{}\"{}\": {{\"bare\": {}, \"captured\": {}}}", &m == &rank.peak.front() ? "" : ", ", m.where,
                          m.bare, m.captured);
    }
    json += "}}";
  }
  json += "\n ],\n \"files\": {";
  for (const auto& [path, crc] : files) {
    json += &path == &files.front().first ? "\n  " : ",\n  ";
    AppendJsonString(json, path);
    json += fmt::format(": \"{:08x}\"", crc);
  }
  return json + "\n }\n}\n";
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
