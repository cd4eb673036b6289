// SPDX-License-Identifier: Apache-2.0
#include "tiktoken/tiktoken_patterns.hpp"

#include <array>

#include <millrace/error.hpp>

#include "split/splitters.hpp"

namespace millrace::tokenizer::detail {
namespace {

struct named_pattern {
  std::string_view name;
  std::unique_ptr<const word_splitter> (*make)();
};

constexpr std::array patterns = {
    named_pattern{"r50k", make_r50k_splitter},
    named_pattern{"p50k", make_r50k_splitter},
    named_pattern{"p50k_edit", make_r50k_splitter},
};

}  // namespace

std::unique_ptr<const word_splitter> make_tiktoken_splitter(std::string_view name) {
  for (const named_pattern& pattern : patterns) {
    if (pattern.name == name) return pattern.make();
  }
  throw config_error("--tiktoken-pattern '" + std::string(name) + "': unknown, expected one of " +
                     tiktoken_pattern_names());
}

std::string tiktoken_pattern_names() {
  std::string names;
  for (const named_pattern& pattern : patterns) {
    names += (names.empty() ? "" : ", ") + std::string(pattern.name);
  }
  return names;
}

}  // namespace millrace::tokenizer::detail
