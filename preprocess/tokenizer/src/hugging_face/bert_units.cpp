// SPDX-License-Identifier: Apache-2.0
#include "hugging_face/bert_units.hpp"

#include "normalize/json_component.hpp"

namespace millrace::tokenizer::detail {

std::optional<pattern> bert_units_of(const json_value& root) {
  const auto words = root.find("pre_tokenizer");
  if (!words || json_component(words->element(), "pre_tokenizer").type() != "BertPreTokenizer") {
    return std::nullopt;
  }
  const auto normalizer = root.find("normalizer");
  if (!normalizer) return pattern::bert;
  const json_component steps(normalizer->element(), "normalizer");
  if (steps.type() != "BertNormalizer") return std::nullopt;
  return steps.flag("handle_chinese_chars") ? pattern::bert_chinese : pattern::bert;
}

}  // namespace millrace::tokenizer::detail
