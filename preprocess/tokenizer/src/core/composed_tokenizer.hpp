// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/tokenizer/tokenizer.hpp>

#include "core/added_tokens.hpp"
#include "core/interfaces.hpp"

namespace millrace::tokenizer::detail {

/// Number of spaces at both ends of a token's string that `trim_offsets` counts: white space, and
/// GPT-2's character for the space.
struct spaces_at_ends {
  std::uint32_t left = 0;
  std::uint32_t right = 0;
};
spaces_at_ends spaces_of(std::string_view token) noexcept;

/// A post-processor with `trim_offsets`: spans omit the spaces at both ends of a token.
struct offset_trim {
  bool add_prefix_space = true;   ///< keep the only space before the first token
  bool follows_template = false;  ///< the first token is the template's, not the text's
};

/// The parts of a composed_tokenizer. The code that reads a type's files builds them.
struct tokenizer_parts {
  /// What the engine and the decoder point into if they come from a cache file; else null.
  std::shared_ptr<const void> memory = {};
  added_token_finder raw_tokens;             ///< matched in the original text
  std::unique_ptr<const normalizer> normal;  ///< for text between raw_tokens; may be null
  added_token_finder normalized_tokens;      ///< matched in the normalized text
  std::unique_ptr<const section_engine> engine;
  std::vector<std::int32_t> ids_before;    ///< template ids before the text's ids
  std::vector<std::int32_t> ids_behind;    ///< template ids after the text's ids
  bool special_tokens_are_faults = false;  ///< reject texts that contain a special token
  std::unique_ptr<const detokenizer> decoder;
  std::int64_t vocab_size = 0;
  std::optional<std::int32_t> eod;
  std::string fingerprint;
  std::vector<std::string> notes = {};  ///< as tokenizer::notes
  /// The entries of a tokenizer.json from which `normal` and `decoder` were made, or empty. A cache
  /// file holds these texts.
  std::string normalizer_json = {};
  std::string decoder_json = {};
  std::vector<offset_trim> trims = {};
  /// By id, if there are trims: the spaces of the tokens that the engine makes.
  std::vector<spaces_at_ends> token_spaces = {};
  std::string offsets_fault = {};  ///< why the places of tokens are not known, or empty
  /// True if `decoder` was made by make_chain_detokenizer, false if it is a byte_detokenizer.
  bool has_decoder_steps = false;
};

/// The tokenizer class for all types that have vocabulary files. Its steps are:
///
///   1. Match raw_tokens in the text.
///   2. Normalize the text between the matches.
///   3. Match normalized_tokens in the normalized text.
///   4. Encode the text between these matches with the engine.
///   5. Add the ids of the template before and after all other ids.
class composed_tokenizer final : public tokenizer {
 public:
  explicit composed_tokenizer(tokenizer_parts parts) : parts_(std::move(parts)) {}

  std::unique_ptr<encoder> make_encoder(std::size_t cache_bytes) const override;
  std::int64_t vocab_size() const noexcept override { return parts_.vocab_size; }
  std::optional<std::int32_t> eod() const noexcept override { return parts_.eod; }
  std::string decode(std::span<const std::int64_t> ids) const override {
    return parts_.decoder->decode(ids);
  }
  std::optional<formats::token_texts> token_texts() const override {
    return parts_.decoder->texts();
  }
  std::string fingerprint() const override { return parts_.fingerprint; }
  std::vector<std::string> notes() const override { return parts_.notes; }
  const tokenizer_parts& parts() const noexcept { return parts_; }
  std::size_t last_cut(std::string_view text) const override;
  bool parts_in_order() const noexcept override { return parts_.engine->continues_in_order(); }

 private:
  const tokenizer_parts parts_;
};

/// The composed_tokenizer that `made` is or that with_eod() has wrapped, or null.
const composed_tokenizer* composed_of(const tokenizer& made) noexcept;

/// Wraps `inner` to give one more note.
std::unique_ptr<tokenizer> with_note(std::unique_ptr<tokenizer> inner, std::string note);

/// Wraps `inner` to use the token with the text `content` as the end-of-document token.
///
/// @throws config_error  no token has that text, or several do.
std::unique_ptr<tokenizer> with_eod(std::unique_ptr<tokenizer> inner, std::string_view content);

/// Wraps `inner` to use the token with the id `eod` as the end-of-document token.
/// @pre 0 <= eod < inner->vocab_size()
std::unique_ptr<tokenizer> with_eod(std::unique_ptr<tokenizer> inner, std::int32_t eod);

}  // namespace millrace::tokenizer::detail
