// SPDX-License-Identifier: Apache-2.0
#include "tiktoken/tiktoken_patterns.hpp"

#include <array>

#include <millrace/error.hpp>

namespace millrace::tokenizer::detail {
namespace {

struct named_pattern {
  std::string_view name;
  pattern cut;
};

// The patterns of the vocabularies in special_tables.hpp, then Megatron's two patterns.
constexpr std::array patterns = {
    named_pattern{"r50k", pattern::r50k},      named_pattern{"p50k", pattern::r50k},
    named_pattern{"p50k_edit", pattern::r50k}, named_pattern{"cl100k", pattern::cl100k},
    named_pattern{"o200k", pattern::o200k},    named_pattern{"o200k_harmony", pattern::o200k},
    named_pattern{"llama3", pattern::llama3},  named_pattern{"llama4", pattern::o200k},
    named_pattern{"qwen2", pattern::qwen2},    named_pattern{"kimi", pattern::kimi},
    named_pattern{"v1", pattern::megatron_v1}, named_pattern{"v2", pattern::tekken},
};

}  // namespace

pattern tiktoken_pattern(std::string_view name) {
  for (const named_pattern& known : patterns) {
    if (known.name == name) return known.cut;
  }
  throw config_error("--tiktoken-pattern '" + std::string(name) + "': unknown, expected one of " +
                     tiktoken_pattern_names());
}

std::string tiktoken_pattern_names() {
  std::string names;
  for (const named_pattern& known : patterns) {
    names += (names.empty() ? "" : ", ") + std::string(known.name);
  }
  return names;
}

}  // namespace millrace::tokenizer::detail
