// What the files of a tokenizer say, without a framework: its vocabulary and its special tokens.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "base/status.h"
#include "config/settings.h"

namespace msprobe {

/// tokenizer.json, tokenizer.model (SentencePiece), vocab.json or vocab.txt.
bool IsTokenizerFile(std::string_view path);

/// A directory with one of those files, or such a file: its settings as a source of the configuration, of the dialect
/// kTokenizer. False where the directory has none. kBadInput for a file that is damaged or larger than a vocabulary is.
StatusOr<bool> AddTokenizer(const std::string& path, Configuration* out);

/// The ids that a tokenizer of a file has tokens for.
StatusOr<std::set<int64_t>> IdsOfTokenizer(const std::string& path);

/// The settings of a file with these bytes.
StatusOr<ConfigSource> ReadTokenizer(std::string_view bytes, const std::string& path);

}  // namespace msprobe
