// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/tokenizer/id_buffer.hpp>

/// Text to ids and back. Engines implement these two interfaces; nothing outside this folder
/// knows which engine it holds.
namespace millrace::tokenizer {

/// Why a text has no ids, and where: byte offset in the text.
struct encode_fault {
  std::size_t offset_bytes = 0;
  std::string what;
};

/// A part of a text that was cut where tokenizer::last_cut says; by itself, a whole text.
struct text_part {
  std::string_view text;
  bool is_first = true;  ///< nothing of its text is before it
  bool is_last = true;   ///< or behind it
};

/// Encodes texts for one thread: it owns the engine's scratch memory and caches.
///
/// Outlived by its tokenizer. Equal texts give equal ids whatever was encoded before.
class encoder {
 public:
  virtual ~encoder() = default;

  /// Appends the ids of `text` to `ids`.
  ///
  /// @param text  valid UTF-8
  /// @return nothing, or why this text cannot be encoded (then `ids` has some of its ids).
  virtual std::optional<encode_fault> encode(std::string_view text, id_buffer& ids) = 0;

  /// The same for a part: the ids of a text's parts, one behind the other, are those of the text.
  ///
  /// @return the fault's offset is in the part.
  virtual std::optional<encode_fault> encode_part(const text_part& part, id_buffer& ids) {
    return encode(part.text, ids);
  }

  /// Sets a function that encode() and encode_part() call from their own thread when a normalizer
  /// begins a step over a text, and for each MiB that it makes. To interrupt them, `check` throws:
  /// they let the exception through, and the encoder may be used again. An empty function checks
  /// nothing. Encoders that do not normalize never call it.
  virtual void set_interrupt_check(std::function<void()> /*check*/) {}  // NOLINT: others keep it

  /// Special tokens found in the texts so far, those that a template adds not among them.
  virtual std::int64_t special_tokens_found() const noexcept { return 0; }
};

/// A vocabulary with its rules: immutable to who looks, shared by all threads.
class tokenizer {
 public:
  virtual ~tokenizer() = default;

  /// Default size of an encoder's pretoken cache, in bytes.
  static constexpr std::size_t default_encoder_bytes = std::size_t{64} << 20;

  std::unique_ptr<encoder> make_encoder() const { return make_encoder(default_encoder_bytes); }
  /// @param cache_bytes  the most that the encoder's pretoken cache takes, a few KiB apart. It
  /// affects
  ///                     speed alone. It does not include the memory that a text needs while it is
  ///                     encoded, nor the cache of up to 48 MiB that all encoders share.
  virtual std::unique_ptr<encoder> make_encoder(std::size_t cache_bytes) const = 0;

  /// Number of ids, added tokens included: every id is in 0 .. vocab_size() - 1. It decides the
  /// dtype of a dataset.
  virtual std::int64_t vocab_size() const noexcept = 0;

  /// Id that ends a document, or nothing if the vocabulary names none.
  virtual std::optional<std::int32_t> eod() const noexcept = 0;

  /// The text that `ids` stand for. Bytes that are no UTF-8 (a character cut in half) come as
  /// they are; ids outside the vocabulary, as U+FFFD.
  virtual std::string decode(std::span<const std::int64_t> ids) const = 0;

  /// The last place that is surely one to cut a text at: `text` is the beginning of that text, or
  /// of what is left of it behind such a cut, and whatever follows, the part before the cut and
  /// what is behind it give the text's ids by encoder::encode_part.
  ///
  /// @param text  valid UTF-8
  /// @return at least 1 and less than text.size(), or 0: it knows no such place.
  virtual std::size_t last_cut(std::string_view text) const {
    static_cast<void>(text);
    return 0;
  }
  /// Whether the parts of a text have to be encoded one after another by one encoder, with no
  /// other text in between; else by any encoders in any order.
  virtual bool parts_in_order() const noexcept { return false; }

  /// Hex SHA-256 over the type, its options, the contents of its files and the version of its
  /// tables: two tokenizers with equal fingerprints give equal ids.
  virtual std::string fingerprint() const = 0;

  /// What is worth knowing before a long run, a line each; mostly nothing. For people: the words
  /// may change.
  virtual std::vector<std::string> notes() const { return {}; }
};

}  // namespace millrace::tokenizer
