// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <millrace/tokenizer/tokenizer.hpp>

#include "composed/growth_limit.hpp"
#include "split/instruction_set.hpp"

/// What loaders fill in: the parts that a composed_tokenizer puts together.
namespace millrace::tokenizer::detail {

/// Text to text, before anything else looks at it. Immutable, shared by threads.
class normalizer {
 public:
  virtual ~normalizer() = default;

  /// The normalized text: `text` itself where nothing changes, else `buffer`, which is
  /// overwritten. Valid UTF-8 in and out.
  ///
  /// @param limit  of the text that the first normalizer was given
  /// @pre `text` does not lie in `buffer`
  /// @throws unencodable_text  the text grows beyond the limit, or a regular expression gives up
  virtual std::string_view normalize(std::string_view text, std::string& buffer,
                                     growth_limit& limit) const = 0;

  /// The same for a text that no normalizer has seen yet.
  std::string_view normalize(std::string_view text, std::string& buffer) const {
    growth_limit limit(text.size());
    return normalize(text, buffer, limit);
  }

  /// Whether texts that have `text` in them may be cut there at `at`: whatever is before it and
  /// behind it, both sides normalized are the whole normalized, and the characters next to the cut
  /// are as they were, but for the case of ASCII letters.
  /// @pre 0 < at < text.size(), a character begins at `at`
  virtual bool may_cut(std::string_view text, std::size_t at) const {
    static_cast<void>(text);
    static_cast<void>(at);
    return false;
  }
};

/// A stretch of text without added tokens, normalized: what an engine sees as a text of its own,
/// with a start and an end that patterns may look at.
struct section {
  std::string_view text;
  bool at_start = true;  ///< no text, and no added token, lies before it
  /// It is what lies behind a cut in a longer section (section_engine::may_cut), so that nothing
  /// is done that belongs to a section's start.
  bool continues = false;
};

/// Encodes sections for one thread; an engine's scratch memory and caches.
class section_encoder {
 public:
  virtual ~section_encoder() = default;

  /// Appends the ids of `section`. Nothing is read outside its text.
  /// @return nothing, or what is wrong, with its offset in section.text.
  virtual std::optional<encode_fault> encode(const section& section, id_buffer& ids) = 0;

  /// What encode() may make of the text that its section is of. Only for an engine that normalizes
  /// by itself; it may then throw unencodable_text. Without this call there is no limit.
  ///
  /// @param limit  outlives this, and changes from text to text
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

/// Pre-tokenizer and model: text without added tokens to ids. Immutable, shared by threads.
class section_engine {
 public:
  virtual ~section_engine() = default;

  /// @param cache_bytes  as of tokenizer::make_encoder
  /// @return an encoder that this outlives.
  virtual std::unique_ptr<section_encoder> make_encoder(std::size_t cache_bytes) const = 0;

  /// Whether sections that have `text` in them may be cut there at `at`: whatever is before it and
  /// behind it, the two sides give the ids of the whole, the latter as one that `continues`.
  /// @pre 0 < at < text.size(), a character begins at `at`
  virtual bool may_cut(std::string_view text, std::size_t at) const {
    static_cast<void>(text);
    static_cast<void>(at);
    return false;
  }
  /// Whether one encoder has to encode what continues next after what it continues.
  virtual bool continues_in_order() const noexcept { return false; }
};

/// What changes the speed and the memory of an engine, never ids.
struct engine_tuning {
  /// Size of the pretoken cache that all encoders of the engine share. The first encoder makes it.
  std::size_t shared_bytes = std::size_t{48} << 20;
  instruction_set set = best_instruction_set();
};

/// Ids to text. Immutable, shared by threads.
class detokenizer {
 public:
  virtual ~detokenizer() = default;

  /// As tokenizer::decode.
  virtual std::string decode(std::span<const std::int64_t> ids) const = 0;
};

}  // namespace millrace::tokenizer::detail
