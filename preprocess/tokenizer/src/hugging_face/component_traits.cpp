// SPDX-License-Identifier: Apache-2.0
#include "hugging_face/component_traits.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {
namespace {

// True for a normalizer that treats white space like the end of a text, and that replaces white
// space only with white space.
bool sees_to_white_space(const json_component& json) {
  constexpr std::array<std::string_view, 7> types = {
      "BertNormalizer", "Lowercase", "StripAccents", "NFC", "NFD", "NFKC", "NFKD"};
  if (json.type() == "Sequence") {
    return std::ranges::all_of(json.components("normalizers"), sees_to_white_space);
  }
  return std::ranges::find(types, json.type()) != types.end();
}

// Returns the text that a Metaspace with prepend_scheme "first" prepends. If there is no such
// Metaspace, returns std::nullopt.
std::optional<std::string_view> prepended_at_first(simdjson::dom::element pre_tokenizer) {
  std::optional<std::string_view> mark;
  any_component(pre_tokenizer, [&](const simdjson::dom::object& each) {
    if (text_in(each, "type") == "Metaspace" && text_in(each, "prepend_scheme") == "first") {
      mark = text_in(each, "replacement");
    }
    return mark.has_value();
  });
  return mark;
}

// True for a Replace whose pattern is one character. If its content is not empty, such a Replace
// does not change the offset of the next character.
bool replaces_one_character(const simdjson::dom::object& replace) {
  std::string_view pattern;
  return replace["pattern"]["String"].get(pattern) == simdjson::SUCCESS && !pattern.empty() &&
         code_point_at(pattern, 0).size_bytes == pattern.size();
}

}  // namespace

std::optional<pattern> raw_units_of(const json_node& root) {
  const auto words = root.find("pre_tokenizer");
  if (!words) return std::nullopt;
  const auto type = json_component(*words, "pre_tokenizer").type();
  const bool is_bert = type == "BertPreTokenizer";
  if (!is_bert && type != "Whitespace" && type != "WhitespaceSplit") return std::nullopt;
  const auto normalizer = root.find("normalizer");
  if (!normalizer) return is_bert ? pattern::bert : pattern::white_space;
  const json_component steps(*normalizer, "normalizer");
  if (is_bert && steps.type() == "BertNormalizer") {
    return steps.flag("handle_chinese_chars") ? pattern::bert_chinese : pattern::bert;
  }
  if (!sees_to_white_space(steps)) return std::nullopt;
  return pattern::white_space;
}

bool may_move_the_start(simdjson::dom::element normalizer, simdjson::dom::element pre_tokenizer) {
  const auto mark = prepended_at_first(pre_tokenizer);
  if (!mark) return false;
  bool is_marked = false;
  return any_component(normalizer, [&](const simdjson::dom::object& each) {
    const std::string_view type = text_in(each, "type");
    if (type == "Sequence") return false;
    if (is_marked) return true;  // a later step may change the mark
    bool left = true;
    if (type == "Strip") return each["strip_left"].get(left) != simdjson::SUCCESS || left;
    if (type != "Replace") {
      return type == "StripAccents" || type == "BertNormalizer" || type == "Nmt";
    }
    const std::string_view content = text_in(each, "content");
    if (!content.empty() && replaces_one_character(each)) return false;
    is_marked = content.starts_with(' ') || (!mark->empty() && content.starts_with(*mark));
    return !is_marked;
  });
}

bool may_split_the_start(simdjson::dom::element normalizer, simdjson::dom::element pre_tokenizer) {
  constexpr std::string_view types[] = {"Precompiled", "NFC",     "NFD",       "NFKC",
                                        "NFKD",        "Replace", "Lowercase", "ByteLevel"};
  return prepended_at_first(pre_tokenizer) &&
         any_component(normalizer, [&](const simdjson::dom::object& each) {
           return std::ranges::count(types, text_in(each, "type")) != 0;
         });
}

}  // namespace millrace::tokenizer::detail
