#include "parity/record.h"

#include <algorithm>

#include "base/message.h"
#include "base/text.h"
#include "json/parser.h"
#include "tensor/kernels/metrics_sources.h"

namespace msprobe {
namespace {

std::vector<int64_t> Integers(const JsonValue& array) {
  std::vector<int64_t> out;
  for (const JsonValue& one : array.Items()) out.push_back(one.Int());
  return out;
}

std::vector<std::string> Texts(const JsonValue& array) {
  std::vector<std::string> out;
  for (const JsonValue& one : array.Items()) out.emplace_back(one.Text());
  return out;
}

Status Damaged(const std::string& path) {
  return BadInput(Msg("{} is no record of msprobe parity: run the command again", path));
}

/// False where the tensor does not lie in its file.
bool ReadEntry(const JsonValue& json, std::string_view data, ParityEntry* entry) {
  entry->name = json["name"].Text();
  entry->dtype = ParseDType(json["dtype"].Text());
  entry->shape = Integers(json["shape"]);
  entry->whole = Integers(json["whole"]);
  entry->partial = Texts(json["partial"]), entry->mean = Texts(json["mean"]);
  entry->replica = Texts(json["replica"]), entry->unknown = json["unknown"].Text();
  for (const JsonValue& box : json["boxes"].Items()) {
    ParityBox& own = entry->boxes.emplace_back(ParityBox{Integers(box[0]), Integers(box[1])});
    if (own.begin.size() != entry->whole.size() || own.size.size() != entry->whole.size()) return false;
    for (size_t d = 0; d < own.size.size(); ++d) {
      if (own.begin[d] < 0 || own.size[d] < 0 || own.begin[d] > entry->whole[d] - own.size[d]) return false;
    }
  }
  if (json["valid"].IsArray()) entry->valid = {json["valid"][0].Int(), json["valid"][1].Int()};
  const int64_t at = json["at"].Int();
  int64_t count = 1;
  for (const int64_t length : entry->shape) {
    if (length < 0 || (length > 0 && count > static_cast<int64_t>(data.size()) / length)) return false;
    count *= length;
  }
  const auto bytes = static_cast<uint64_t>(count) * ElementSize(entry->dtype);
  if (entry->dtype == DType::kUnknown || at < 0 || static_cast<uint64_t>(at) > data.size() ||
      bytes > data.size() - static_cast<uint64_t>(at)) {
    return false;
  }
  if (entry->valid &&
      (entry->valid->first < 0 || entry->valid->second < entry->valid->first || entry->valid->second > count)) {
    return false;
  }
  entry->data = data.data() + at;
  return true;
}

bool IsOfModule(std::string_view phase) { return phase == "forward" || phase == "backward" || phase == "input"; }

void ReadFacts(const JsonValue& facts, ParityRank* rank) {
  for (const JsonMember& step : facts.Members()) {
    const int number = std::atoi(std::string(step.name).c_str());
    for (const JsonMember& fact : step.value.Members()) {
      for (const JsonValue& value : fact.value.Items()) {
        const std::pair key{number, std::string(fact.name)};
        if (value.IsNumber()) rank->numbers[key].push_back(value.Number());
        if (value.IsString()) rank->texts[key].emplace_back(value.Text());
      }
    }
  }
}

StatusOr<ParityRank> ReadRank(const std::string& directory) {
  ParityRank rank;
  const std::string path = JoinPath(directory, "record.json");
  MSP_ASSIGN_OR_RETURN(MappedFile head, MappedFile::Open(path));
  rank.head = std::make_unique<MappedFile>(std::move(head));
  MSP_ASSIGN_OR_RETURN(MappedFile tensors, MappedFile::Open(JoinPath(directory, "tensors.bin")));
  rank.tensors = std::make_unique<MappedFile>(std::move(tensors));
  JsonDoc json;
  MSP_RETURN_IF_ERROR(ParseJson(rank.head->text(), path, &json));
  rank.rank = json["rank"].Int32(), rank.world = json["world"].Int32(), rank.steps = json["steps"].Int32();
  rank.engine = json["engine"].Text(), rank.lost = Texts(json["lost"]);
  rank.python = json["versions"]["python"].Text(), rank.torch = json["versions"]["torch"].Text();
  for (const JsonMember& axis : json["axes"].Members()) {
    for (const JsonValue& one : axis.value.Items()) rank.axes[std::string(axis.name)].push_back(one.Int32());
  }
  for (const JsonMember& note : json["notes"].Members()) rank.notes[std::string(note.name)] = Texts(note.value);
  ReadFacts(json["facts"], &rank);
  const std::vector<std::string> several = Texts(json["several"]);
  for (const JsonValue& one : json["entries"].Items()) {
    ParityPhase& phase = rank.phases[{one["step"].Int32(), std::string(one["phase"].Text())}];
    ParityEntry entry;
    if (!ReadEntry(one, rank.tensors->text(), &entry)) return Damaged(path);
    const std::string module = entry.name.substr(0, entry.name.find_first_of("# "));
    if (std::find(several.begin(), several.end(), module) != several.end() && IsOfModule(one["phase"].Text())) {
      rank.notes["several chunks of the model have it"].push_back(entry.name);
      continue;
    }
    phase.by_name.emplace(entry.name, phase.entries.size());
    phase.entries.push_back(std::move(entry));
  }
  return rank;
}

}  // namespace

int64_t ParityEntry::elements() const {
  int64_t count = 1;
  for (const int64_t length : shape) count *= length;
  return count;
}

const ParityEntry* ParityPhase::Find(std::string_view name) const {
  const auto found = by_name.find(name);
  return found == by_name.end() ? nullptr : &entries[found->second];
}

const ParityPhase& ParityRank::phase(int step, const std::string& name) const {
  static const ParityPhase kNone;
  const auto found = phases.find({step, name});
  return found == phases.end() ? kNone : found->second;
}

std::optional<double> ParityRank::Number(int step, const std::string& name) const {
  const auto found = numbers.find({step, name});
  if (found == numbers.end() || found->second.empty()) return std::nullopt;
  return found->second.front();
}

StatusOr<ParityRun> ReadParityRun(const std::string& directory) {
  ParityRun run;
  MSP_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(directory));
  for (const std::string& name : names) {
    if (!StartsWith(name, "rank") || !IsRegularFile(JoinPath(JoinPath(directory, name), "record.json"))) continue;
    MSP_ASSIGN_OR_RETURN(ParityRank rank, ReadRank(JoinPath(directory, name)));
    run.push_back(std::move(rank));
  }
  std::sort(run.begin(), run.end(), [](const ParityRank& a, const ParityRank& b) { return a.rank < b.rank; });
  return run;
}

std::vector<double> ElementsOf(const ParityEntry& entry) {
  std::vector<double> out(static_cast<size_t>(entry.elements()));
  if (!out.empty()) metrics::ToDoubles(entry.dtype, entry.data, out.size(), out.data());
  return out;
}

}  // namespace msprobe
