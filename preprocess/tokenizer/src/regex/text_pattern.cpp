// SPDX-License-Identifier: Apache-2.0
#include <millrace/tokenizer/text_pattern.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <millrace/error.hpp>

#include "regex/pattern_tree.hpp"
#include "regex/pcre2_pattern.hpp"

namespace millrace::tokenizer {

text_pattern::text_pattern(const std::string& pattern) {
  using engine = detail::pcre2_pattern;
  try {
    pattern_ =
        std::make_shared<const engine>(pattern, engine::engine::fastest, engine::alphabet::utf8);
  } catch (const detail::pattern_error& e) {
    if (detail::pcre2_version().empty()) throw error(e.what());
    throw config_error(e.what());
  }
}

text_pattern::finder text_pattern::make_finder() const {
  return [pattern = pattern_, memory = std::make_shared<detail::pcre2_memory>()](
             std::string_view text, std::size_t from,
             bool not_empty) -> std::optional<std::pair<std::size_t, std::size_t>> {
    using kind = detail::pcre2_pattern::result::kind;
    const auto found = pattern->find(text, from, *memory, not_empty);
    if (found.what == kind::match) return std::pair(found.begin, found.end);
    if (found.what == kind::nothing) return std::nullopt;
    throw error("the regular expression cannot be matched in a text of " +
                std::to_string(text.size()) + " bytes: " + std::string(found.problem));
  };
}

}  // namespace millrace::tokenizer
