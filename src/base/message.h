// Makes messages. The English template is the key of its Chinese (base/words), so it is a literal.
#pragma once

#include <fmt/format.h>
#include <msprobe/message.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

template <>
struct fmt::formatter<msprobe::Message> : fmt::formatter<std::string_view> {
  template <typename Context>
  auto format(const msprobe::Message& message, Context& context) const {
    return fmt::formatter<std::string_view>::format(message.English(), context);
  }
};

namespace msprobe {

/// A literal part of a template, or a field of it, such as {} or {0:.3f}.
struct TemplatePiece {
  std::string_view text;
  bool field;
};
std::vector<TemplatePiece> PiecesOf(std::string_view english);

/// A value of a template, and how it is written by a field such as {:.3f}.
struct MessageArgument {
  const void* value;
  Message (*shown)(const void* value, const std::string& field);
};

Message FilledMessage(std::string_view english, std::initializer_list<MessageArgument> arguments);

template <typename T>
Message MessageValue(const void* value, const std::string& field) {
  const T& v = *static_cast<const T*>(value);
  if constexpr (std::is_same_v<T, Message>) {
    return v;
  } else {
    return Message(fmt::vformat(field, fmt::make_format_args(v)));
  }
}

/// "{} does not exist" with its values. Texts and numbers are the same in every language, a Message is put into it,
/// too.
template <typename... Values>
Message Msg(fmt::format_string<const Values&...> english, const Values&... values) {
  const fmt::string_view text = english;
  return FilledMessage({text.data(), text.size()}, {MessageArgument{&values, MessageValue<Values>}...});
}

/// One of the texts that the program chose, such as what the system says of an error: translated as a whole.
Message KnownText(std::string_view text);

/// With what the user named on one line, as OneLine() of base/text.h writes it.
Message OneLined(const Message& message);

/// Those that are not empty, with `separator` between them.
Message Joined(const std::vector<Message>& messages, const Message& separator);

}  // namespace msprobe
