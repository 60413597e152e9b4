#include "base/message.h"

#include "base/text.h"

namespace msprobe {

std::vector<TemplatePiece> PiecesOf(std::string_view english) {
  std::vector<TemplatePiece> out;
  while (!english.empty()) {
    const size_t at = english.find_first_of("{}");
    if (at != 0) out.push_back({english.substr(0, at), false});
    if (at == std::string_view::npos) break;
    english.remove_prefix(at);
    const bool escaped = english.size() > 1 && english[0] == english[1];
    const size_t size = escaped ? 2 : english.find('}') + 1;
    out.push_back({english.substr(0, escaped ? 1 : size), !escaped});
    english.remove_prefix(size);
  }
  return out;
}

Message FilledMessage(std::string_view english, std::initializer_list<MessageArgument> arguments) {
  std::vector<Message> parts;
  std::string text;
  size_t next = 0;
  for (const TemplatePiece& piece : PiecesOf(english)) {
    if (!piece.field) {
      text += piece.text;
      continue;
    }
    const bool numbered = piece.text[1] >= '0' && piece.text[1] <= '9';
    const MessageArgument& argument = arguments.begin()[numbered ? static_cast<size_t>(piece.text[1] - '0') : next++];
    parts.push_back(argument.shown(argument.value, "{" + std::string(piece.text.substr(numbered ? 2 : 1))));
    text += parts.back().English();
  }
  return {Message::Kind::kTemplate, english, std::move(text), std::move(parts)};
}

Message KnownText(std::string_view text) { return {Message::Kind::kPart, {}, std::string(text), {}}; }

Message OneLined(const Message& message) {
  if (message.parts().empty()) {
    Message out(message.kind(), message.key(), OneLine(message.English()), {});
    return out;
  }
  std::vector<Message> parts;
  for (const Message& part : message.parts()) parts.push_back(OneLined(part));
  return {message.kind(), message.key(), OneLine(message.English()), std::move(parts)};
}

Message Joined(const std::vector<Message>& messages, const Message& separator) {
  Message out;
  for (const Message& m : messages) {
    if (m.empty()) continue;
    if (!out.empty()) out += separator;
    out += m;
  }
  return out;
}

}  // namespace msprobe
