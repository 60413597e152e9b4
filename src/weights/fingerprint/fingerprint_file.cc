#include "weights/fingerprint/fingerprint_file.h"

#include <algorithm>
#include <cstring>

#include "base/base64.h"
#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "json/parser.h"
#include "json/writer.h"

namespace msprobe {
namespace {

constexpr std::string_view kFormat = "msprobe fingerprint";
constexpr int64_t kVersion = 1;

using FactMember = int64_t ModelFacts::*;
constexpr std::pair<std::string_view, FactMember> kFacts[] = {
    {"heads", &ModelFacts::heads},    {"groups", &ModelFacts::groups}, {"head_dim", &ModelFacts::head_dim},
    {"hidden", &ModelFacts::hidden},  {"ffn", &ModelFacts::ffn},       {"vocab", &ModelFacts::vocab},
    {"experts", &ModelFacts::experts}};
using TruthMember = std::optional<bool> ModelFacts::*;
constexpr std::pair<std::string_view, TruthMember> kTruths[] = {
    {"gated", &ModelFacts::gated}, {"zero_centred", &ModelFacts::zero_centred}, {"tied", &ModelFacts::tied}};

/// Little endian, whatever wrote it.
std::string BytesOf(const std::vector<uint64_t>& hashes) {
  std::string out(hashes.size() * 8, '\0');
  char* to = out.data();
  for (const uint64_t hash : hashes) {
    for (int shift = 0; shift < 64; shift += 8) *to++ = static_cast<char>(hash >> shift);
  }
  return out;
}

bool HashesOf(std::string_view text, std::vector<uint64_t>* out) {
  std::string bytes;
  if (!FromBase64(text, &bytes) || bytes.size() % 8 != 0) return false;
  out->resize(bytes.size() / 8);
  for (size_t i = 0; i < out->size(); ++i) {
    uint64_t hash = 0;
    for (size_t k = 8; k-- > 0;) hash = hash << 8 | static_cast<unsigned char>(bytes[8 * i + k]);
    (*out)[i] = hash;
  }
  return true;
}

void WritePrint(const WeightPrint& w, JsonWriter* json) {
  json->BeginObject();
  json->Member("name", w.name);
  if (!w.part.empty()) json->Member("part", w.part);
  json->Member("role", w.role);
  json->Member("dtype", DTypeName(w.dtype));
  if (w.stored != DType::kUnknown) json->Member("stored", DTypeName(w.stored));
  json->Member("shape", w.shape);
  if (w.buffer) json->Member("buffer", true);
  if (w.table) json->Member("table", true);
  if (w.none != NoPrint::kNone) json->Member("none", kNoPrintNames[static_cast<size_t>(w.none)]);
  json->ArrayMember("pieces", w.pieces, [&](const PrintPiece& piece) {
    json->BeginObject();
    json->Member("row", piece.row);
    json->Member("column", piece.column);
    json->Member("columns", piece.columns);
    json->Member("hashes", Base64(BytesOf(piece.hashes)));
    json->EndObject();
  });
  json->EndObject();
}

bool ReadSizes(const JsonValue& value, std::vector<int64_t>* out) {
  int64_t count = 0;
  if (!value.IsArray()) return false;
  for (const JsonValue& size : value.Items()) {
    if (!size.IsInt()) return false;
    out->push_back(size.Int());
  }
  return CountElements(*out, &count);
}

bool ReadPiece(const JsonValue& value, const RowsAndColumns& whole, PrintPiece* out) {
  for (const std::string_view key : {"row", "column", "columns"}) {
    if (!value[key].IsInt()) return false;
  }
  out->row = value["row"].Int();
  out->column = value["column"].Int();
  out->columns = value["columns"].Int();
  if (!HashesOf(value["hashes"].Text(), &out->hashes)) return false;
  const bool columns = out->column >= 0 && out->columns > 0 && out->columns <= whole.columns &&
                       out->column <= whole.columns - out->columns;
  return columns && out->row >= 0 && out->rows() <= whole.rows && out->row <= whole.rows - out->rows();
}

bool ReadPrint(const JsonValue& value, WeightPrint* out) {
  const JsonValue &name = value["name"], &role = value["role"];
  if (!name.IsString() || !role.IsString() || !ReadSizes(value["shape"], &out->shape)) return false;
  out->name = name.Text();
  out->role = role.Text();
  out->part = value["part"].Text();
  out->dtype = ParseDType(value["dtype"].Text());
  if (value["stored"].IsString()) out->stored = ParseDType(value["stored"].Text());
  out->buffer = value["buffer"].Bool();
  out->table = value["table"].Bool();
  for (size_t i = 1; i < kNoPrintNames.size(); ++i) {
    if (value["none"].Text() == kNoPrintNames[i]) out->none = static_cast<NoPrint>(i);
  }
  const RowsAndColumns whole = RowsOf(out->shape);
  for (const JsonValue& piece : value["pieces"].Items()) {
    if (!ReadPiece(piece, whole, &out->pieces.emplace_back())) return false;
  }
  return true;
}

/// Rows that readers make room for, against those that the file holds.
bool IsPlausible(const Fingerprint& print) {
  constexpr int64_t kMostRows = int64_t{1} << 27, kMostShards = 4096, kSome = int64_t{1} << 20;
  int64_t reach = 0, held = 0;
  for (const WeightPrint& w : print.weights) {
    int64_t end = 0;
    for (const PrintPiece& piece : w.pieces) {
      end = std::max(end, piece.row + piece.rows());
      held += piece.rows();
    }
    if (end > kMostRows) return false;
    reach += end;
  }
  return reach <= kMostRows && reach <= held * kMostShards + kSome;
}

void ReadFacts(const JsonValue& value, ModelFacts* out) {
  constexpr int64_t kMost = int64_t{1} << 40;
  for (const auto& [key, member] : kFacts) {
    const JsonValue& fact = value[key];
    if (fact.IsInt() && fact.Int() > 0 && fact.Int() < kMost) out->*member = fact.Int();
  }
  for (const auto& [key, member] : kTruths) {
    if (value[key].IsBool()) out->*member = value[key].Bool();
  }
  out->model_type = value["model_type"].Text();
}

}  // namespace

std::string FingerprintText(const Fingerprint& print) {
  std::string out;
  JsonWriter json(&out, kJsonIndented);
  json.BeginObject();
  json.Member("format", kFormat);
  json.Member("version", kVersion);
  json.Member("name", print.name);
  json.Member("kind", print.kind);
  if (print.step >= 0) json.Member("step", print.step);
  json.Member("rank", print.rank);
  json.Member("world", print.world);
  json.ObjectMember("model", [&] {
    for (const auto& [key, member] : kFacts) {
      if (print.facts.*member > 0) json.Member(key, print.facts.*member);
    }
    for (const auto& [key, member] : kTruths) {
      if (print.facts.*member) json.Member(key, *(print.facts.*member));
    }
    if (!print.facts.model_type.empty()) json.Member("model_type", print.facts.model_type);
  });
  json.ArrayMember("weights", print.weights, [&](const WeightPrint& w) { WritePrint(w, &json); });
  json.EndObject();
  return out + "\n";
}

Status WriteFingerprint(const Fingerprint& print, const std::string& path) {
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  MSP_RETURN_IF_ERROR(file.Write(FingerprintText(print)));
  return file.Commit();
}

StatusOr<Fingerprint> ParseFingerprint(std::string_view text, const std::string& what) {
  JsonDoc doc;
  MSP_RETURN_IF_ERROR(ParseJson(text, what, &doc));
  if (doc["format"].Text() != kFormat) {
    return BadInput(Msg("{} is no fingerprint of weights: make one with 'msprobe weights fingerprint'", what));
  }
  if (doc["version"].Int() != kVersion) {
    return BadInput(
        Msg("{} is a fingerprint of version {}, and this release reads {}: use the same release of msprobe for both",
            what, doc["version"].Int(), kVersion));
  }
  Fingerprint out;
  out.path = what;
  out.name = doc["name"].Text();
  out.kind = doc["kind"].Text();
  if (doc["step"].IsInt()) out.step = std::max<int64_t>(-1, doc["step"].Int());
  out.rank = std::max<int64_t>(0, doc["rank"].Int());
  out.world = std::max<int64_t>(1, doc["world"].Int());
  ReadFacts(doc["model"], &out.facts);
  for (const JsonValue& weight : doc["weights"].Items()) {
    if (!ReadPrint(weight, &out.weights.emplace_back())) {
      return BadInput(Msg("{} is damaged: its weight {} cannot be read, make the fingerprint again", what,
                          OneLine(out.weights.back().name)));
    }
  }
  if (!IsPlausible(out)) {
    return BadInput(Msg("{} is damaged: it says of rows that no model has, make the fingerprint again", what));
  }
  return out;
}

bool IsFingerprint(const std::string& path) {
  constexpr size_t kHead = 64;
  if (IsDirectory(path)) {
    const auto names = ListDirectory(path);
    return names.ok() && std::any_of(names->begin(), names->end(), [&](const std::string& name) {
             return name.ends_with(".json") && IsRegularFile(JoinPath(path, name)) &&
                    IsFingerprint(JoinPath(path, name));
           });
  }
  if (!IsRegularFile(path)) return false;
  const auto file = MappedFile::Open(path);
  return file.ok() && file->text().substr(0, kHead).find(kFormat) != std::string_view::npos;
}

StatusOr<std::vector<Fingerprint>> ReadFingerprints(const std::string& path) {
  std::vector<std::string> paths{path};
  if (IsDirectory(path)) {
    paths.clear();
    MSP_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(path));
    for (const std::string& name : names) {
      const std::string file = JoinPath(path, name);
      if (name.ends_with(".json") && IsFingerprint(file)) paths.push_back(file);
    }
  }
  std::vector<Fingerprint> out;
  for (const std::string& file : paths) {
    MSP_ASSIGN_OR_RETURN(const MappedFile map, MappedFile::Open(file));
    MSP_ASSIGN_OR_RETURN(Fingerprint print, ParseFingerprint(map.text(), file));
    out.push_back(std::move(print));
  }
  if (out.empty()) return BadInput(Msg("{} holds no fingerprint: name a directory rank*.json is in", path));
  return out;
}

}  // namespace msprobe
