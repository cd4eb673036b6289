// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

#include <millrace/tokenizer/tokenizer.hpp>

#include "composed/growth_limit.hpp"

namespace millrace::tokenizer::detail {

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

}  // namespace millrace::tokenizer::detail
