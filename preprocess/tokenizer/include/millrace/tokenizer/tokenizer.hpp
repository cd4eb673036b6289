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

#include <millrace/tokenizer/id_buffer.hpp>

/// Text to ids and back. Engines implement these two interfaces; nothing outside this folder
/// knows which engine it holds.
namespace millrace::tokenizer {

/// Why a text has no ids, and where: byte offset in the text.
struct encode_fault {
  std::size_t offset_bytes = 0;
  std::string what;
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

  /// Special tokens found in the texts so far, those that a template adds not among them.
  virtual std::int64_t special_tokens_found() const noexcept { return 0; }
};

/// A vocabulary with its rules: immutable, shared by all threads.
class tokenizer {
 public:
  virtual ~tokenizer() = default;

  virtual std::unique_ptr<encoder> make_encoder() const = 0;

  /// Number of ids, added tokens included: every id is in 0 .. vocab_size() - 1. It decides the
  /// dtype of a dataset.
  virtual std::int64_t vocab_size() const noexcept = 0;

  /// Id that ends a document, or nothing if the vocabulary names none.
  virtual std::optional<std::int32_t> eod() const noexcept = 0;

  /// The text that `ids` stand for. Bytes that are no UTF-8 (a character cut in half) come as
  /// they are; ids outside the vocabulary, as U+FFFD.
  virtual std::string decode(std::span<const std::int64_t> ids) const = 0;

  /// Hex SHA-256 over the type, its options, the contents of its files and the version of its
  /// tables: two tokenizers with equal fingerprints give equal ids.
  virtual std::string fingerprint() const = 0;

  /// What is worth knowing before a long run, a line each; mostly nothing. For people: the words
  /// may change.
  virtual std::vector<std::string> notes() const { return {}; }
};

}  // namespace millrace::tokenizer
