// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "composed/normalizer.hpp"
#include "sentencepiece/charsmap.hpp"
#include "sentencepiece/model_file.hpp"
#include "sentencepiece/symbol_matcher.hpp"

namespace millrace::tokenizer::detail {

/// How the normalizer writes a space.
enum class space_form : unsigned char {
  symbol,  ///< U+2581, as SentencePiece does, if the model escapes spaces
  blank,   ///< a space, and U+2581 in the text becomes one too: as short, and as good, since then
           ///< no text has both
};

/// SentencePiece's normalization: replacement rules, white space, dummy prefix or suffix.
class text_normalizer final : public normalizer {
 public:
  /// @param spec     its charsmap begins at the offset that it names
  /// @param symbols  are left as they are
  /// @throws format_error  the charsmap is malformed
  text_normalizer(const normalizer_spec& spec, bool whitespace_as_suffix, symbol_matcher symbols,
                  space_form form);

  /// Nothing of a text changes but for spaces' form, and a dummy space where one is asked for.
  bool keeps_characters() const noexcept {
    return rules_.empty() && symbols_.empty() && !remove_extra_whitespaces_;
  }

  std::string_view normalize(std::string_view text, std::string& buffer) const override;

 private:
  struct step {
    std::string_view text;  // what the prefix becomes
    std::size_t size_bytes;
  };

  step next(std::string_view text) const noexcept;
  std::size_t plain_run(std::string_view text) const noexcept;
  void append(std::string_view text, std::string& out) const;
  void strip_end(std::string& out) const;

  charsmap rules_;
  symbol_matcher symbols_;
  bool add_dummy_prefix_;
  bool remove_extra_whitespaces_;
  bool whitespace_as_suffix_;
  bool folds_symbol_ = false;      // U+2581 becomes a space
  std::string space_ = " ";        // what a space becomes
  std::array<bool, 256> plain_{};  // an ASCII character that no rule changes if ASCII follows it
};

}  // namespace millrace::tokenizer::detail
