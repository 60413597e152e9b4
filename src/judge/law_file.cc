#include "judge/law_file.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/file.h"
#include "base/message.h"
#include "json/parser.h"

namespace msprobe {
namespace {

constexpr uint64_t kMostBytes = 64 << 20;
constexpr size_t kMostNames = 1000;  // of a law that are kept

// One rank says what it finds of all of them: without a guilty rank there is none.
bool ComparesRanks(const std::string& law) {
  return law == "replicas" || law == "collectives" || law == "batch_repeats";
}

}  // namespace

namespace {

void AddUnseen(std::string_view law, std::string_view why, bool in_part, size_t rank, std::vector<UnseenLaw>* unseen) {
  const auto known = std::find_if(unseen->begin(), unseen->end(), [&](const UnseenLaw& u) {
    return u.law == law && u.why == why && u.in_part == in_part;
  });
  if (known != unseen->end()) {
    known->ranks.insert(rank);
  } else {
    unseen->push_back({std::string(law), std::string(why), in_part, {rank}});
  }
}

}  // namespace

Status ReadLaws(const std::string& path, size_t rank, RankLaws* laws) {
  if (!IsRegularFile(path)) return OkStatus();
  MSP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  if (file.text().size() > kMostBytes) return BadInput(Msg("{} is too large for the laws of a rank", path));
  JsonDoc doc;
  MSP_RETURN_IF_ERROR(ParseJson(file.text(), path, &doc));
  if (!doc["laws"].IsObject()) return BadInput(Msg("{} has no laws: it is none that a monitor wrote", path));
  for (const JsonMember& law : doc["laws"].Members()) {
    for (const JsonValue& entry : law.value["broken"].Items()) {
      if (!entry["step"].IsInt() || !entry["text"].IsString()) {
        return BadInput(Msg("{} has a broken law without step or text: it is none that a monitor wrote", path));
      }
      BrokenLaw one;
      one.law = std::string(law.name);
      one.text = std::string(entry["text"].Text());
      one.step = entry["step"].Int();
      if (!entry["name"].Text().empty()) one.names.emplace_back(entry["name"].Text());
      one.ranks.insert(rank);
      if (entry["rank"].IsInt()) one.culprit = entry["rank"].Int();
      laws->broken.push_back(std::move(one));
    }
    const std::string_view part = law.value["partly_not_checked"].Text(), none = law.value["not_checked"].Text();
    if (!part.empty()) AddUnseen(law.name, part, true, rank, &laws->unseen);
    if (!none.empty()) AddUnseen(law.name, none, false, rank, &laws->unseen);
    laws->held += part.empty() && none.empty() && law.value["broken"].Items().empty();
  }
  return OkStatus();
}

std::vector<BrokenLaw> TogetherOf(std::vector<BrokenLaw> laws, size_t ranks) {
  std::map<std::tuple<int64_t, std::string, std::string, int64_t>, BrokenLaw> groups;
  for (BrokenLaw& law : laws) {
    const auto key = std::make_tuple(law.step, law.law, law.text, law.culprit.value_or(-1));
    const auto [known, fresh] = groups.try_emplace(key, law);
    if (fresh) continue;
    BrokenLaw& group = known->second;
    group.ranks.insert(law.ranks.begin(), law.ranks.end());
    for (std::string& name : law.names) {
      const bool is_new = std::find(group.names.begin(), group.names.end(), name) == group.names.end();
      if (is_new && group.names.size() < kMostNames) group.names.push_back(std::move(name));
    }
  }
  std::vector<BrokenLaw> together;
  for (auto& [key, group] : groups) {
    if (!group.culprit && ranks > 1) {
      if (ComparesRanks(group.law)) {
        group.undecided = group.law == "replicas";
      } else if (group.ranks.size() == 1) {
        group.culprit = static_cast<int64_t>(*group.ranks.begin());
      }
    }
    together.push_back(std::move(group));
  }
  return together;
}

}  // namespace msprobe
