// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "composed/interfaces.hpp"
#include "sentencepiece/model_file.hpp"
#include "sentencepiece/symbol_matcher.hpp"
#include "text/charsmap.hpp"

namespace millrace::tokenizer::detail {

/// How the normalizer writes a space.
enum class space_form : unsigned char {
  symbol,  ///< U+2581, as SentencePiece does, if the model escapes spaces
  blank,   ///< a space; U+2581 in the text becomes one too, if the model escapes spaces. This is
           ///< shorter, and equivalent, because normalized text then never has both
};

/// SentencePiece's normalization: replacement rules, white space, dummy prefix or suffix.
class text_normalizer final : public normalizer {
 public:
  /// @param spec     charsmap_offset is the offset of its charsmap in the file
  /// @param symbols  user-defined symbols, which are never changed in texts
  /// @throws format_error  the charsmap is malformed
  text_normalizer(const normalizer_spec& spec, bool whitespace_as_suffix, symbol_matcher symbols,
                  space_form form);

  using normalizer::normalize;
  std::string_view normalize(std::string_view text, std::string& buffer,
                             growth_limit& limit) const override;

  /// States whether a part is at the beginning of its text, and whether it is at the end.
  struct place {
    bool begins = false;
    bool ends = false;
  };
  /// Normalizes a part that fragment_cutter cut out. If runs of spaces become one space, a run that
  /// continues after the end of the part adds no space to the part.
  std::string_view normalize_part(std::string_view text, place where, std::string& buffer,
                                  growth_limit& limit) const;

  bool joins_spaces() const noexcept { return remove_extra_whitespaces_; }
  const charsmap& rules() const noexcept { return rules_; }

 private:
  struct step {
    std::string_view text;  // what the prefix is replaced with
    std::size_t size_bytes;
  };

  step next(std::string_view text) const noexcept;
  std::size_t plain_run(std::string_view text) const noexcept;
  void append_normalized(std::string_view text, bool skips_spaces, std::string& out,
                         growth_limit& limit) const;
  void append(std::string_view text, std::string& out) const;
  void strip_end(std::string& out) const;

  charsmap rules_;
  symbol_matcher symbols_;
  bool add_dummy_prefix_;
  bool remove_extra_whitespaces_;
  bool whitespace_as_suffix_;
  bool folds_symbol_ = false;      // U+2581 becomes a space
  std::string space_ = " ";        // what a space is replaced with
  std::array<bool, 256> plain_{};  // ASCII characters that no rule changes if ASCII follows
};

}  // namespace millrace::tokenizer::detail
