#include "jobs/configuration/tokenizer_files.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <optional>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "json/parser.h"
#include "tensor/files/wire.h"

namespace msprobe {
namespace {

constexpr uint64_t kLargest = uint64_t{256} << 20;
constexpr std::array<std::string_view, 4> kFiles{"tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt"};
constexpr std::array<std::string_view, 3> kSpecial{"bos_token", "eos_token", "pad_token"};

/// Tokens by id; the ids of the special ones as SentencePiece has them.
struct Vocabulary {
  std::map<int64_t, std::string> tokens;
  std::map<std::string, int64_t, std::less<>> special;
  size_t twice = 0;  // ids that two tokens have

  void Add(int64_t id, std::string_view token) {
    const auto [at, added] = tokens.emplace(id, token);
    if (!added && at->second != token) ++twice;
  }
  std::optional<int64_t> IdOf(std::string_view token) const {
    for (const auto& [id, text] : tokens) {
      if (text == token) return id;
    }
    return std::nullopt;
  }
};

void AddMap(const JsonValue& vocab, Vocabulary* out) {
  for (const JsonMember& member : vocab.Members()) {
    if (member.value.IsInt()) out->Add(member.value.Int(), member.name);
  }
}

/// tokenizer.json of the library tokenizers; vocab.json, which is the map alone.
Status ReadJsonVocabulary(std::string_view bytes, const std::string& path, Vocabulary* out) {
  JsonDoc doc;
  MSP_RETURN_IF_ERROR(ParseJson(bytes, path, &doc));
  const JsonValue& model = doc["model"];
  const JsonValue& vocab = model["vocab"];
  if (vocab.IsArray()) {  // of Unigram: [token, score] in the order of the ids
    int64_t id = 0;
    for (const JsonValue& item : vocab.Items()) out->Add(id++, item[0].Text());
  } else {
    AddMap(model.IsObject() ? vocab : static_cast<const JsonValue&>(doc), out);
  }
  for (const JsonValue& token : doc["added_tokens"].Items()) {
    if (token["id"].IsInt()) out->Add(token["id"].Int(), token["content"].Text());
  }
  return OkStatus();
}

/// A ModelProto of SentencePiece: pieces (1), and the ids of special ones in its trainer_spec (2).
Status ReadPieces(std::string_view bytes, const std::string& path, Vocabulary* out) {
  constexpr uint32_t kPieces = 1, kTrainer = 2, kText = 1, kBos = 41, kEos = 42, kPad = 43;
  Wire model(bytes);
  out->special = {{"bos_token", 1}, {"eos_token", 2}, {"pad_token", -1}};
  int64_t id = 0;
  for (Wire::Member member; model.Next(&member);) {
    if (!member.text) continue;
    Wire inner(member.bytes);
    for (Wire::Member part; inner.Next(&part);) {
      if (member.number == kPieces && part.number == kText && part.text) out->Add(id, part.bytes);
      if (member.number != kTrainer || part.text) continue;
      const auto value = static_cast<int64_t>(static_cast<int32_t>(part.value));
      if (part.number == kBos) out->special["bos_token"] = value;
      if (part.number == kEos) out->special["eos_token"] = value;
      if (part.number == kPad) out->special["pad_token"] = value;
    }
    if (!inner.good())
      return BadInput(Msg("{} is no model of SentencePiece: give the file as it was made", OneLine(path)));
    id += member.number == kPieces ? 1 : 0;
  }
  if (!model.good()) return BadInput(Msg("{} is no model of SentencePiece, or cut off: copy it again", OneLine(path)));
  return OkStatus();
}

void ReadLines(std::string_view bytes, Vocabulary* out) {
  int64_t id = 0;
  while (!bytes.empty()) {
    const size_t end = std::min(bytes.find('\n'), bytes.size());
    std::string_view line = bytes.substr(0, end);
    if (EndsWith(line, "\r")) line.remove_suffix(1);
    out->Add(id++, line);
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
  }
}

/// FNV-1a of the tokens in the order of their ids: the same vocabulary in two formats has one.
std::string FingerprintOf(const Vocabulary& vocabulary) {
  uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&](std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  };
  for (const auto& [id, token] : vocabulary.tokens) {
    add(std::to_string(id));
    add(std::string_view("\0", 1));
    add(token);
    add(std::string_view("\0", 1));
  }
  return fmt::format("{} tokens, {:08x}", vocabulary.tokens.size(), static_cast<uint32_t>(hash ^ hash >> 32));
}

StatusOr<Vocabulary> ReadVocabulary(std::string_view bytes, const std::string& path) {
  Vocabulary out;
  if (EndsWith(path, ".json")) {
    MSP_RETURN_IF_ERROR(ReadJsonVocabulary(bytes, path, &out));
  } else if (EndsWith(path, ".model")) {
    MSP_RETURN_IF_ERROR(ReadPieces(bytes, path, &out));
  } else {
    ReadLines(bytes, &out);
  }
  if (out.tokens.empty()) return BadInput(Msg("{} holds no tokens: give the tokenizer of the model", OneLine(path)));
  return out;
}

void AddSetting(std::string_view key, ConfigValue value, ConfigSource* out) {
  out->settings.push_back({"tokenizer." + std::string(key), std::move(value), out->path});
}

ConfigSource SourceOf(const Vocabulary& vocabulary, const std::string& path) {
  ConfigSource out;
  out.dialect = ConfigDialect::kTokenizer;
  out.path = path;
  AddSetting("vocabulary", ConfigValue::Of(FingerprintOf(vocabulary)), &out);
  AddSetting("largest_id", ConfigValue::Of(vocabulary.tokens.rbegin()->first), &out);
  AddSetting("ids_given_twice", ConfigValue::Of(static_cast<int64_t>(vocabulary.twice)), &out);
  for (const auto& [name, id] : vocabulary.special) {
    if (id >= 0) AddSetting(name, ConfigValue::Of(id), &out);
  }
  return out;
}

/// Texts of the special tokens, in tokenizer_config.json or special_tokens_map.json; either a text or an object of one.
Status AddSpecial(const std::string& directory, const Vocabulary& vocabulary, ConfigSource* out) {
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json"}) {
    const std::string path = JoinPath(directory, name);
    if (!IsRegularFile(path)) continue;
    MSP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
    JsonDoc doc;
    MSP_RETURN_IF_ERROR(ParseJson(file.text(), path, &doc));
    for (const std::string_view special : kSpecial) {
      const JsonValue& token = doc[special];
      const std::string_view text = token.IsObject() ? token["content"].Text() : token.Text();
      if (text.empty() || out->Find("tokenizer." + std::string(special))) continue;
      if (const auto id = vocabulary.IdOf(text)) AddSetting(special, ConfigValue::Of(*id), out);
    }
  }
  return OkStatus();
}

StatusOr<MappedFile> OpenBounded(const std::string& path) {
  MSP_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  if (file.text().size() > kLargest) {
    return BadInput(Msg("{} has {} MB, which no vocabulary has: give the tokenizer of the model", OneLine(path),
                        file.text().size() >> 20));
  }
  return file;
}

}  // namespace

bool IsTokenizerFile(std::string_view path) {
  const std::string_view name = BaseName(path);
  for (const std::string_view known : kFiles) {
    if (name == known) return true;
  }
  return false;
}

StatusOr<ConfigSource> ReadTokenizer(std::string_view bytes, const std::string& path) {
  MSP_ASSIGN_OR_RETURN(const Vocabulary vocabulary, ReadVocabulary(bytes, path));
  return SourceOf(vocabulary, path);
}

StatusOr<std::set<int64_t>> IdsOfTokenizer(const std::string& path) {
  MSP_ASSIGN_OR_RETURN(const MappedFile file, OpenBounded(path));
  MSP_ASSIGN_OR_RETURN(const Vocabulary vocabulary, ReadVocabulary(file.text(), path));
  std::set<int64_t> out;
  for (const auto& [id, token] : vocabulary.tokens) out.insert(out.end(), id);
  return out;
}

StatusOr<bool> AddTokenizer(const std::string& path, Configuration* out) {
  std::string found = IsDirectory(path) ? std::string() : path;
  for (const std::string_view name : kFiles) {
    const std::string inner = JoinPath(path, std::string(name));
    if (found.empty() && IsRegularFile(inner)) found = inner;
  }
  if (found.empty()) return false;
  MSP_ASSIGN_OR_RETURN(const MappedFile file, OpenBounded(found));
  MSP_ASSIGN_OR_RETURN(const Vocabulary vocabulary, ReadVocabulary(file.text(), found));
  ConfigSource source = SourceOf(vocabulary, found);
  MSP_RETURN_IF_ERROR(AddSpecial(std::string(DirName(found)), vocabulary, &source));
  out->sources.push_back(std::move(source));
  return true;
}

}  // namespace msprobe
