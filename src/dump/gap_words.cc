// Recordings that are not whole, in the words of both languages.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "dump/gaps.h"
#include "json/value.h"
#include "json/writer.h"

namespace msprobe {
namespace {

constexpr size_t kGroupsShown = 3, kRanksShown = 8;

using State = Wholeness::State;

/// Recordings of one step of one side that fared alike.
struct Group {
  DumpSide side = DumpSide::kOnly;
  int step = -1;
  State state = State::kWhole;
  std::vector<int> ranks;
  uint64_t least = 0, most = 0;  // ops that are there
  uint64_t ops_lost = 0, tensors_lost = 0;
  std::string why;
};

std::vector<Group> GroupsOf(const std::vector<RecordingGap>& gaps) {
  std::vector<Group> out;
  for (const RecordingGap& gap : gaps) {
    const auto alike = std::ranges::find_if(
        out, [&](const Group& g) { return g.side == gap.side && g.step == gap.step && g.state == gap.what.state; });
    const bool known = alike != out.end();
    Group& group = known ? *alike : out.emplace_back(Group{gap.side, gap.step, gap.what.state, {}, gap.what.ops});
    if (gap.rank >= 0) group.ranks.push_back(gap.rank);
    group.least = std::min(group.least, gap.what.ops);
    group.most = std::max(group.most, gap.what.ops);
    group.ops_lost += gap.what.ops_lost;
    group.tensors_lost += gap.what.tensors_lost;
    if (group.why.empty()) group.why = gap.what.why;
  }
  return out;
}

template <typename... Args>
std::string Say(Language language, std::string_view en, std::string_view zh, const Args&... args) {
  return fmt::format(fmt::runtime(language == Language::kChinese ? zh : en), args...);
}

struct SideWords {
  std::string_view name, en, zh;
};

constexpr SideWords SideOf(DumpSide side) {
  switch (side) {
    case DumpSide::kTarget: return {"target", " of the target", "调试侧"};
    case DumpSide::kGolden: return {"golden", " of the golden run", "标杆侧"};
    case DumpSide::kA: return {"a", " of A", "A"};
    case DumpSide::kB: return {"b", " of B", "B"};
    case DumpSide::kOnly: break;
  }
  return {};
}

/// "step 1, rank 0 of the target"
std::string Place(const Group& g, Language language) {
  std::string out;
  if (g.step >= 0) out = fmt::format("step {}", g.step);
  std::string ranks;
  for (size_t i = 0; i < g.ranks.size() && i < kRanksShown; ++i) ranks += (i ? ", " : "") + std::to_string(g.ranks[i]);
  if (g.ranks.size() > kRanksShown) ranks += ", ...";
  const bool many = g.ranks.size() > 1 && language == Language::kEnglish;
  if (!ranks.empty()) out += (out.empty() ? "" : ", ") + std::string(many ? "ranks " : "rank ") + ranks;
  if (language == Language::kChinese) {
    const std::string side(SideOf(g.side).zh);
    return side + (side.empty() || out.empty() ? "" : " ") + (out.empty() && side.empty() ? "该采集" : out);
  }
  if (out.empty()) out = "the recording";
  return out + std::string(SideOf(g.side).en);
}

std::string Ops(const Group& g) {
  return g.least == g.most ? std::to_string(g.most) : fmt::format("{}-{}", g.least, g.most);
}

std::string Incomplete(const Group& g, const std::string& place, Language language) {
  std::string out = Say(language, "{} is incomplete: {} ops and {} tensors were not written",
                        "{} 不完整：{} 个算子、{} 个 tensor 未写出", place, g.ops_lost, g.tensors_lost);
  if (!g.why.empty()) out += Say(language, " ({})", "（{}）", OneLine(g.why));
  return out;
}

std::string Sentence(const Group& g, Language language) {
  const std::string place = Place(g, language), ops = Ops(g);
  const bool nothing = g.most == 0;
  switch (g.state) {
    case State::kKilled:
      if (nothing) {
        return Say(language, "{} was cut: the run was killed before any of its ops was written",
                   "{} 被截断：运行在写出任何算子之前被终止", place);
      }
      return Say(language, "{} was cut: the run was killed after {} of its ops",
                 "{} 被截断：运行在写出 {} 个算子后被终止", place, ops);
    case State::kRecording:
      return Say(language, "{} is still being recorded: {} of its ops are there so far",
                 "{} 仍在采集：目前已有 {} 个算子", place, ops);
    case State::kElsewhere:
      return Say(language, "{} was cut, or is still being recorded on another host: {} of its ops are there",
                 "{} 被截断，或仍在另一台主机上采集：已有 {} 个算子", place, ops);
    case State::kIncomplete: return Incomplete(g, place, language);
    case State::kCut:
      if (g.ops_lost > 0) {
        return Say(language, "{} was cut: {} of its ops are left, {} are gone", "{} 被截断：剩余 {} 个算子，缺少 {} 个",
                   place, ops, g.ops_lost);
      }
      return Say(language, "{} was cut: its dump.json ends early, after {} whole ops",
                 "{} 被截断：dump.json 提前结束，完整的算子有 {} 个", place, ops);
    case State::kUnknown:
      return Say(language, "{} may not be whole: its dump_summary.json cannot be read, {} ops are there",
                 "{} 可能不完整：dump_summary.json 无法读取，已有 {} 个算子", place, ops);
    case State::kWhole: break;
  }
  return {};
}

}  // namespace

std::string GapText(const std::vector<RecordingGap>& gaps, Language language) {
  std::string out;
  const std::vector<Group> groups = GroupsOf(gaps);
  for (size_t i = 0; i < groups.size() && i < kGroupsShown; ++i)
    out += (i ? Say(language, "; ", "；") : std::string()) + Sentence(groups[i], language);
  if (groups.size() > kGroupsShown) {
    out += Say(language, "; {} more are not whole", "；另有 {} 个不完整", groups.size() - kGroupsShown);
  }
  if (!out.empty() && out[0] >= 'a' && out[0] <= 'z' && language == Language::kEnglish)
    out[0] = static_cast<char>(out[0] - 'a' + 'A');
  return out;
}

void WriteGaps(JsonWriter* json, const std::vector<RecordingGap>& gaps) {
  const auto number = [&](const char* key, int value) {
    json->Key(key);
    value < 0 ? json->Null() : json->Int(value);
  };
  json->Array(gaps, [&](const RecordingGap& gap) {
    json->BeginObject();
    json->Key("side");
    gap.side == DumpSide::kOnly ? json->Null() : json->String(SideOf(gap.side).name);
    number("step", gap.step);
    number("rank", gap.rank);
    json->Member("state", WholenessName(gap.what.state));
    json->Member("ops", gap.what.ops);
    json->Member("ops_not_written", gap.what.ops_lost);
    json->Member("tensors_not_written", gap.what.tensors_lost);
    json->Key("why");
    gap.what.why.empty() ? json->Null() : json->String(gap.what.why);
    json->Member("path", gap.path);
    json->EndObject();
  });
}

std::vector<RecordingGap> ReadGaps(const JsonValue& list) {
  std::vector<RecordingGap> out;
  if (!list.IsArray()) return out;
  for (const JsonValue& entry : list.Items()) {
    RecordingGap gap;
    const JsonValue &state = entry["state"], &ops = entry["ops"], &step = entry["step"], &rank = entry["rank"];
    for (const State s :
         {State::kKilled, State::kRecording, State::kElsewhere, State::kIncomplete, State::kCut, State::kUnknown}) {
      if (state.IsString() && state.Text() == WholenessName(s)) gap.what.state = s;
    }
    if (gap.what.whole() || !ops.IsUInt()) continue;
    for (const DumpSide side : {DumpSide::kTarget, DumpSide::kGolden}) {
      if (entry["side"].IsString() && entry["side"].Text() == SideOf(side).name) gap.side = side;
    }
    gap.what.ops = ops.UInt();
    if (entry["ops_not_written"].IsUInt()) gap.what.ops_lost = entry["ops_not_written"].UInt();
    if (entry["tensors_not_written"].IsUInt()) gap.what.tensors_lost = entry["tensors_not_written"].UInt();
    if (step.IsInt32()) gap.step = step.Int32();
    if (rank.IsInt32()) gap.rank = rank.Int32();
    if (entry["path"].IsString()) gap.path = entry["path"].Text();
    if (entry["why"].IsString()) gap.what.why = entry["why"].Text();
    out.push_back(std::move(gap));
  }
  return out;
}

}  // namespace msprobe
