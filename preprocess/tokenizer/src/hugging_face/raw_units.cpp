// SPDX-License-Identifier: Apache-2.0
#include "hugging_face/raw_units.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "hugging_face/json_component.hpp"

namespace millrace::tokenizer::detail {
namespace {

// Normalizers to which white space is an end of the text, and that leave it white space.
bool sees_to_white_space(const json_component& json) {
  constexpr std::array<std::string_view, 7> types = {
      "BertNormalizer", "Lowercase", "StripAccents", "NFC", "NFD", "NFKC", "NFKD"};
  if (json.type() == "Sequence") {
    return std::ranges::all_of(json.components("normalizers"), sees_to_white_space);
  }
  return std::ranges::find(types, json.type()) != types.end();
}

}  // namespace

std::optional<pattern> raw_units_of(const json_value& root) {
  const auto words = root.find("pre_tokenizer");
  if (!words) return std::nullopt;
  const auto type = json_component(words->element(), "pre_tokenizer").type();
  const bool is_bert = type == "BertPreTokenizer";
  if (!is_bert && type != "Whitespace" && type != "WhitespaceSplit") return std::nullopt;
  const auto normalizer = root.find("normalizer");
  if (!normalizer) return is_bert ? pattern::bert : pattern::white_space;
  const json_component steps(normalizer->element(), "normalizer");
  if (is_bert && steps.type() == "BertNormalizer") {
    return steps.flag("handle_chinese_chars") ? pattern::bert_chinese : pattern::bert;
  }
  if (!sees_to_white_space(steps)) return std::nullopt;
  return pattern::white_space;
}

}  // namespace millrace::tokenizer::detail
