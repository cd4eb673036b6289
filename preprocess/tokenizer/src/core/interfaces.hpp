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

#include <millrace/error.hpp>
#include <millrace/tokenizer/tokenizer.hpp>

#include "core/aligned_text.hpp"
#include "core/growth_limit.hpp"
#include "core/table_io.hpp"
#include "split/instruction_set.hpp"

/// Interfaces of the parts of a composed_tokenizer.
namespace millrace::tokenizer::detail {

class token_table;

/// Transforms text before the other steps. Immutable; threads may share it.
class normalizer {
 public:
  virtual ~normalizer() = default;

  /// Returns the normalized text. If nothing changes, this is `text` itself. Otherwise, overwrites
  /// `buffer` and returns a view of it. Input and output are valid UTF-8.
  ///
  /// @param limit  growth limit of the text, computed from the size of the text before the first
  ///               normalizer
  /// @pre `text` is not part of `buffer`
  /// @throws unencodable_text  the text grows beyond the limit, or the regex engine gives up
  virtual std::string_view normalize(std::string_view text, std::string& buffer,
                                     growth_limit& limit) const = 0;

  /// Normalizes a text that no normalizer has changed yet, and derives the growth limit from it.
  std::string_view normalize(std::string_view text, std::string& buffer) const {
    growth_limit limit(text.size());
    return normalize(text, buffer, limit);
  }

  /// Normalizes `text` like normalize(), and passes on which bytes of the original text each byte
  /// was made from. Several times slower. Does not limit the growth: call normalize() before.
  virtual void align(aligned_text& text) const = 0;

  /// True if every text that contains `text` can be cut at offset `at` of `text`. After such a cut,
  /// the two sides, normalized separately and joined, equal the normalized uncut text, regardless
  /// of the text before and after. The characters next to the cut do not change, except that ASCII
  /// letters may change their case.
  /// @pre 0 < at < text.size(), a character begins at `at`
  virtual bool may_cut(std::string_view text, std::size_t at) const {
    static_cast<void>(text);
    static_cast<void>(at);
    return false;
  }
};

/// A stretch of normalized text without added tokens. An engine treats it as a separate text: regex
/// anchors for the start and the end of a text match at the start and the end of the section.
struct section {
  std::string_view text;
  bool at_start = true;  ///< no text and no added token precedes it
  /// True if this section is the rest of a longer section after a cut (section_engine::may_cut).
  /// Then the engine skips everything that applies only to the start of a section.
  bool continues = false;
};

/// Encodes sections for one thread. Owns an engine's scratch memory and caches.
class section_encoder {
 public:
  virtual ~section_encoder() = default;

  /// Appends the ids of `section`. Reads nothing outside `section.text`.
  /// @return std::nullopt, or a fault whose offset is relative to `section.text`.
  virtual std::optional<encode_fault> encode(const section& section, id_buffer& ids) = 0;

  /// Appends the ids of `section` like encode(), and for each id its span in `section.text`. If
  /// there is a fault, both may contain a part of the result.
  virtual std::optional<encode_fault> encode_with_offsets(const section& section, id_buffer& ids,
                                                          std::vector<byte_span>& spans) {
    static_cast<void>(section);
    static_cast<void>(ids);
    static_cast<void>(spans);
    return encode_fault{0, std::string(unknown_places)};
  }
  static constexpr std::string_view unknown_places =
      "the places of tokens are not known with this type and these options";

  /// Sets the limit on the output of encode() for a text. Only engines that normalize use the
  /// limit. Their encode() throws unencodable_text if the limit is exceeded. Without this call,
  /// there is no limit.
  ///
  /// @param limit  must outlive this object; the caller changes it for each text
  virtual void limit_growth(growth_limit& limit) { limit_ = &limit; }

 protected:
  section_encoder() = default;
  section_encoder(const section_encoder&) = delete;
  section_encoder& operator=(const section_encoder&) = delete;

  growth_limit& limit() noexcept { return *limit_; }

 private:
  growth_limit no_limit_ = growth_limit::none();
  growth_limit* limit_ = &no_limit_;
};

/// A pre-tokenizer together with a model. Turns text without added tokens into ids. Immutable;
/// threads may share it.
class section_engine {
 public:
  virtual ~section_engine() = default;

  /// @param cache_bytes  as for tokenizer::make_encoder
  /// @return an encoder, which this engine must outlive.
  virtual std::unique_ptr<section_encoder> make_encoder(std::size_t cache_bytes) const = 0;

  /// True if every section that contains `text` can be cut at offset `at` of `text`. After such a
  /// cut, encoding the two sides separately gives the ids of the uncut section, regardless of the
  /// text before and after. The second side must be encoded as a section with `continues` set.
  /// @pre 0 < at < text.size(), a character begins at `at`
  virtual bool may_cut(std::string_view text, std::size_t at) const {
    static_cast<void>(text);
    static_cast<void>(at);
    return false;
  }
  /// True if a section with `continues` set must be encoded directly after the previous section, by
  /// the same encoder.
  virtual bool continues_in_order() const noexcept { return false; }

  /// What write() writes, for cache files.
  enum class table_form : std::uint8_t {
    none,             ///< nothing: this engine is always built from the tokenizer's files
    byte_bpe,         ///< the tables of byte_bpe_engine.hpp
    spaced_byte_bpe,  ///< the same, for the engine that adds a space before each section
  };
  virtual table_form form() const noexcept { return table_form::none; }
  virtual void write(table_writer& /*out*/) const {}
};

/// Settings that affect the speed and the memory of an engine, but never its ids.
struct engine_tuning {
  /// Largest size in bytes of the pretoken cache that all encoders of the engine share. It holds
  /// the ids of words. The cache is created with the first encoder, and is about as large as that
  /// one's.
  std::size_t shared_bytes = std::size_t{48} << 20;
  instruction_set set = best_instruction_set();
};

/// Turns ids into text. Immutable; threads may share it.
class detokenizer {
 public:
  virtual ~detokenizer() = default;

  /// Decodes ids as tokenizer::decode does.
  virtual std::string decode(std::span<const std::int64_t> ids) const = 0;

  /// As tokenizer::token_texts.
  virtual std::optional<formats::token_texts> texts() const { return std::nullopt; }

  /// The strings of the tokens, for cache files; null if this object is always built from the
  /// tokenizer's files.
  virtual const token_table* tokens() const noexcept { return nullptr; }
};

}  // namespace millrace::tokenizer::detail
