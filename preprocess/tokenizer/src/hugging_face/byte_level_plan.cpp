// SPDX-License-Identifier: Apache-2.0
#include "hugging_face/byte_level_plan.hpp"

#include <cstddef>

#include "hugging_face/json_component.hpp"

namespace millrace::tokenizer::detail {
namespace {

using step = byte_level_plan::step;

void flatten(const json_component& json, std::vector<json_component>& parts) {
  if (json.type() != "Sequence") {
    parts.push_back(json);
    return;
  }
  for (const json_component& part : json.components("pretokenizers")) flatten(part, parts);
}

std::optional<step> step_of(const json_component& json) {
  if (json.type() == "Digits") {
    return step{
        json.flag("individual_digits") ? step::kind::individual_digits : step::kind::runs_of_digits,
        {}};
  }
  if (json.type() != "Split") return std::nullopt;
  const auto pattern = json.pattern_of("pattern");
  // `invert` does not change which pieces are isolated, so check only that it is a flag.
  if (!pattern.is_regex || json.text("behavior") != "Isolated") return std::nullopt;
  (void)json.flag("invert");
  return step{step::kind::regex, std::string(pattern.text)};
}

}  // namespace

std::optional<byte_level_plan> byte_level_plan_of(const json_node& pre_tokenizer,
                                                  const std::string& path) {
  if (pre_tokenizer.is_null()) return std::nullopt;
  std::vector<json_component> parts;
  flatten(json_component(pre_tokenizer, path), parts);
  if (parts.empty() || parts.back().type() != "ByteLevel") return std::nullopt;
  byte_level_plan plan;
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    auto step = step_of(parts[i]);
    if (!step) return std::nullopt;
    plan.steps.push_back(std::move(*step));
  }
  plan.add_prefix_space = parts.back().flag("add_prefix_space");
  plan.byte_level_regex = parts.back().flag_or("use_regex", true);
  return plan;
}

}  // namespace millrace::tokenizer::detail
