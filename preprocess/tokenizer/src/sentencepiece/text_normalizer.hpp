// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/interfaces.hpp"
#include "sentencepiece/model_file.hpp"
#include "sentencepiece/symbol_matcher.hpp"
#include "text/charsmap.hpp"

namespace millrace::tokenizer::detail {

/// How the normalizer writes a space.
enum class space_form : unsigned char {
  /// U+2581, as in SentencePiece, if the model escapes spaces.
  symbol,
  /// A space. If the model escapes spaces, a U+2581 in the text becomes a space too. A space is
  /// shorter than U+2581. The two are equivalent, because normalized text then never has both of
  /// them.
  blank,
};

/// SentencePiece's normalization: replacement rules, white space, dummy prefix or suffix.
class text_normalizer final : public normalizer {
 public:
  /// @param spec     its charsmap_offset is the offset of its charsmap in the file
  /// @param symbols  user-defined symbols, which normalization never changes
  /// @throws format_error  the charsmap is malformed
  text_normalizer(const normalizer_spec& spec, bool whitespace_as_suffix, symbol_matcher symbols,
                  space_form form);

  using normalizer::normalize;
  std::string_view normalize(std::string_view text, std::string& buffer,
                             growth_limit& limit) const override;

  /// Whether a part is at the beginning of its text, and whether it is at the end.
  struct place {
    bool begins = false;
    bool ends = false;
  };
  /// Normalizes a part that fragment_cutter cut out. If runs of spaces become one space, spaces at
  /// the end of the part give no space: the next part begins with the last space of the same run.
  std::string_view normalize_part(std::string_view text, place where, std::string& buffer,
                                  growth_limit& limit) const;

  /// As normalize_part(), and finds for each byte of `out` where in `text` it comes from, like
  /// SentencePiece: bytes that one rule or character makes have the same place. `places` has one
  /// more entry, the end of the text that is not dropped.
  /// @pre where.ends
  void normalize_places(std::string_view text, place where, std::string& out,
                        std::vector<std::size_t>& places, growth_limit& limit) const;

  /// Not used: SentencePiece's engines call normalize_places(). Leaves `text` as it is.
  void align(aligned_text& /*text*/) const override {}

  bool joins_spaces() const noexcept { return remove_extra_whitespaces_; }
  const charsmap& rules() const noexcept { return rules_; }

 private:
  struct step {
    std::string_view text;  // the replacement of the prefix
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
  std::string space_ = " ";        // the replacement of a space
  std::array<bool, 256> plain_{};  // ASCII characters that never change if ASCII follows
};

}  // namespace millrace::tokenizer::detail
