// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <random>
#include <string>

#include "record/conversation_reader.hpp"

namespace millrace::test {

/// Options with the template `<role>content</>` for each message; `</>` ends a turn.
inline preprocess::conversation_options plain_conversations() {
  constexpr const char* source =
      "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}";
  return {.templates = {.usual = chat::chat_template::parse(source, "plain.jinja")},
          .training = {.special_tokens = {"</>"}}};
}

/// A line with a conversation of up to five turns, or, rarely, with a record that is none.
inline std::string random_conversation(std::mt19937_64& random) {
  const auto word = [&] {
    std::string letters(random() % 30, ' ');
    for (char& c : letters) c = static_cast<char>('a' + random() % 26);
    return letters;
  };
  switch (random() % 12) {
    case 0:
      return R"({"messages": [{"role": "nobody", "content": "a"}]})";
    case 1:
      return R"({"messages": [{"role": "user", "content": "nothing to learn"}]})";
    case 2:
      return R"({"messages": "\ud800"})";
    default:
      break;
  }
  std::string line = R"({"messages": [)";
  for (std::size_t i = 0, turns = 1 + random() % 5; i < turns; ++i) {
    line += std::string(i > 0 ? ", " : "") + R"({"role": ")" +
            (i % 2 == 1 || turns == 1 ? "assistant" : "user") + R"(", "content": ")" + word() +
            "\"}";
  }
  return line + "]}";
}

}  // namespace millrace::test
