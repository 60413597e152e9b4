#include "checks/pack.h"

#include <charconv>

#include "base/message.h"
#include "base/text.h"
#include "json/parser.h"

namespace msprobe {
namespace {

constexpr uint64_t kMostMember = uint64_t{128} << 20, kMostTogether = uint64_t{8} << 30;
constexpr size_t kMostFeatures = 4 << 20;
constexpr int kMaxTagDepth = 100;

/// step3 or rank3 of the part of a path.
bool ReadNumber(std::string_view part, std::string_view prefix, int64_t* out) {
  if (!StartsWith(part, prefix)) return false;
  part.remove_prefix(prefix.size());
  if (!IsDigits(part) || part.size() > 9) return false;
  std::from_chars(part.data(), part.data() + part.size(), *out);
  return true;
}

struct MemberPlace {
  enum class Part : uint8_t { kEnvironment, kPackages, kHyperparameters, kDataset, kWeights, kRandom };
  Part part = Part::kEnvironment;
  StepRank at;
  std::string file;  // of hyperparameters
};

/// Only names that a pack has; so none leads outside of a directory.
bool ReadPlace(std::string_view name, MemberPlace* out) {
  using Part = MemberPlace::Part;
  if (name == "env" || name == "pip") {
    out->part = name == "env" ? Part::kEnvironment : Part::kPackages;
    return true;
  }
  const std::vector<std::string_view> parts = Split(name, '/');
  if (parts.size() == 2 && parts[0] == "hyperparameters" &&
      (parts[1] == "hyperparameters_static.json" || parts[1] == "hyperparameters_dynamic.json")) {
    out->part = Part::kHyperparameters;
    out->file = parts[1];
    return true;
  }
  if (parts.size() == 2 && parts[0] == "random" && EndsWith(parts[1], ".json")) {
    out->part = Part::kRandom;
    return ReadNumber(parts[1].substr(0, parts[1].size() - 5), "rank", &out->at.rank);
  }
  if (parts.size() != 4 || !ReadNumber(parts[1], "step", &out->at.step) ||
      !ReadNumber(parts[2], "rank", &out->at.rank)) {
    return false;
  }
  out->part = parts[0] == "dataset" ? Part::kDataset : Part::kWeights;
  return (parts[0] == "dataset" && parts[3] == "dataset.json") || (parts[0] == "weights" && parts[3] == "weight.json");
}

bool IsFeatures(const JsonValue& value) {
  if (!value.IsObject() || value.size() != 4) return false;
  for (const std::string_view key : {"max", "min", "mean", "norm"}) {
    if (!value[key].IsNumber()) return false;
  }
  return true;
}

TensorFeatures ReadFeatures(const JsonValue& value) {
  return {value["max"].Number(), value["min"].Number(), value["mean"].Number(), value["norm"].Number()};
}

/// Nested arguments as tags with dots.
Status ReadTags(const JsonValue& value, const std::string& tag, int depth,  // NOLINT(misc-no-recursion): kMaxTagDepth
                const std::string& what, std::vector<NamedFeatures>* out) {
  if (out->size() > kMostFeatures)
    return BadInput(Msg("{} holds more tensors than any step: pack the run again", what));
  if (IsFeatures(value)) {
    out->push_back({tag, true, ReadFeatures(value)});
  } else if (value.IsObject() && depth < kMaxTagDepth) {
    for (const JsonMember& member : value.Members()) {
      MSP_RETURN_IF_ERROR(ReadTags(member.value,
                                   tag.empty() ? std::string(member.name) : tag + "." + std::string(member.name),
                                   depth + 1, what, out));
    }
  } else {
    out->push_back({tag, false, {}});
  }
  return OkStatus();
}

Status ReadJsonObject(std::string_view text, const std::string& what, JsonDoc* doc) {
  MSP_RETURN_IF_ERROR(ParseJson(text, what, doc));
  return doc->IsObject() ? OkStatus() : BadInput(Msg("{} is not a JSON object: pack the run again", what));
}

Status ReadRandom(std::string_view text, const std::string& what, int64_t rank, Pack* out) {
  JsonDoc doc;
  MSP_RETURN_IF_ERROR(ReadJsonObject(text, what, &doc));
  auto& ops = out->random[rank];
  for (const JsonMember& op : doc.Members()) {
    std::vector<RandomCall> calls;
    for (const JsonValue& entry : op.value.Items()) {
      RandomCall call;
      call.count = entry["count"].Int();
      for (const JsonValue& frame : entry["stack"].Items()) call.stack.emplace_back(frame.Text());
      calls.push_back(std::move(call));
    }
    ops.emplace_back(std::string(op.name), std::move(calls));
  }
  return OkStatus();
}

Status ReadMember(const MemberPlace& place, std::string_view text, const std::string& what, Pack* out) {
  using Part = MemberPlace::Part;
  JsonDoc doc;
  switch (place.part) {
    case Part::kEnvironment:
      MSP_RETURN_IF_ERROR(ReadJsonObject(text, what, &doc));
      out->has_environment = true;
      for (const JsonMember& member : doc.Members()) {
        out->environment.push_back({std::string(member.name), ConfigValue::Of(member.value), what, 0});
      }
      return OkStatus();
    case Part::kPackages:
      out->has_packages = true;
      for (const std::string_view line : Split(text, '\n')) {
        const size_t equals = line.find('=');
        if (line.empty()) continue;
        const std::string_view version = equals == std::string_view::npos ? "" : line.substr(equals + 1);
        out->packages.emplace_back(ToUtf8(line.substr(0, equals)), ToUtf8(version));
      }
      return OkStatus();
    case Part::kHyperparameters: {
      MSP_RETURN_IF_ERROR(ReadJsonObject(text, what, &doc));
      out->has_hyperparameters = true;
      out->hyperparameters[place.file] = ConfigValue::Of(static_cast<const JsonValue&>(doc)).members;
      return OkStatus();
    }
    case Part::kDataset:
    case Part::kWeights: {
      MSP_RETURN_IF_ERROR(ReadJsonObject(text, what, &doc));
      const bool dataset = place.part == Part::kDataset;
      (dataset ? out->has_dataset : out->has_weights) = true;
      auto& features = (dataset ? out->dataset : out->weights)[place.at];
      if (dataset) return ReadTags(doc, "", 0, what, &features);
      for (const JsonMember& member : doc.Members()) {
        const bool tensor = IsFeatures(member.value);
        features.push_back({std::string(member.name), tensor, tensor ? ReadFeatures(member.value) : TensorFeatures{}});
      }
      return OkStatus();
    }
    case Part::kRandom: out->has_random = true; return ReadRandom(text, what, place.at.rank, out);
  }
  return OkStatus();
}

}  // namespace

StatusOr<PackFile> PackFile::Open(const std::string& path) {
  MSP_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  MSP_ASSIGN_OR_RETURN(const std::vector<PackedMember> all,
                       ListZip(file.text(), path, {"a pack of config_check", 4'000'000, false}));
  std::vector<PackedMember> known;
  uint64_t together = 0;
  size_t others = 0;
  for (const PackedMember& member : all) {
    MemberPlace place;
    if (!ReadPlace(member.name, &place)) {
      others += EndsWith(member.name, "/") ? 0 : 1;
      continue;
    }
    together += member.size;
    if (member.size > kMostMember || together > kMostTogether) {
      return BadInput(
          Msg("{}: the member {} unpacks to more than a pack holds: pack fewer steps", path, OneLine(member.name)));
    }
    known.push_back(member);
  }
  if (known.empty())
    return BadInput(
        Msg("{} holds nothing that config_check packs: give the zip file of 'msprobe config_check -d'", path));
  PackFile out(std::move(file), std::move(known));
  if (others > 0) {
    out.warnings_.push_back(Msg("{} members of {} do not belong to a pack and are left out", others, path));
  }
  return out;
}

StatusOr<Pack> PackFile::Read() const {
  Pack out;
  out.warnings = warnings_;
  for (const PackedMember& member : members_) {
    MemberPlace place;
    (void)ReadPlace(member.name, &place);  // Open() has kept none that it refuses
    MSP_ASSIGN_OR_RETURN(const std::string text, UnpackWhole(member, file_.path(), kMostMember));
    MSP_RETURN_IF_ERROR(ReadMember(place, text, file_.path() + ":" + std::string(member.name), &out));
  }
  return out;
}

Status PackFile::Unpack(const std::string& directory) const {
  for (const PackedMember& member : members_) {
    const std::string path = JoinPath(directory, member.name);
    MSP_RETURN_IF_ERROR(MakeOutputDir(std::string(DirName(path))));
    MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
    MSP_RETURN_IF_ERROR(
        msprobe::Unpack(member, file_.path(), [&](std::string_view piece) { return file.Write(piece); }));
    MSP_RETURN_IF_ERROR(file.Commit());
  }
  return OkStatus();
}

}  // namespace msprobe
