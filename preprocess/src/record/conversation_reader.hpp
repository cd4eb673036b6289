// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/chat/chat_template.hpp>
#include <millrace/chat/training_text.hpp>
#include <millrace/chat/value.hpp>
#include <millrace/formats/detail/mask.hpp>
#include <millrace/tokenizer/tokenizer.hpp>

#include "record/exact_json.hpp"
#include "record/record_parser.hpp"

namespace millrace::preprocess {

/// What becomes of a conversation with more tokens than `--max-length`.
enum class overlong_policy : std::uint8_t {
  error,     ///< it is a bad record
  drop,      ///< it is dropped and counted
  truncate,  ///< its first tokens are kept
};

/// How records of conversations become documents (`--messages-key`).
struct conversation_options {
  chat::training_templates templates;
  chat::training_options training = {};
  /// Variables of the templates: the tokenizer's named tokens.
  std::vector<std::pair<std::string, std::string>> variables = {};
  /// What `strftime_now` formats, in seconds since 1970. Unset: no template calls it.
  std::optional<std::int64_t> date = std::nullopt;
  std::optional<std::int64_t> most_tokens = std::nullopt;  ///< `--max-length`
  overlong_policy overlong = overlong_policy::error;
  /// The number of tokens at the start of each trained turn that are not trained.
  std::size_t untrained_tokens = 0;
  /// Refuse a conversation in which a token belongs to two turns, of which one is trained.
  bool refuse_shared_tokens = false;
  /// The flags above, with checksums of the templates, for P.meta and the journal.
  std::vector<std::pair<std::string, std::string>> settings = {};
};

/// Renders the conversation in one line. Use one reader per thread.
class conversation_reader {
 public:
  /// @param options  must outlive this object
  explicit conversation_reader(const conversation_options& options);

  /// Renders the conversation of `line`, which is passed without its line end.
  ///
  /// @return nothing, or the fault. After a fault, text() is meaningless.
  std::optional<record_fault> read(std::string_view line);

  /// The last conversation. Valid until the next read().
  const chat::training_text& text() const noexcept { return text_; }

 private:
  std::optional<record_fault> fault_of_json(std::string_view line);

  chat::training_renderer renderer_;
  exact_json exact_;
  chat::value_pool pool_;
  chat::training_text text_;
};

/// Appends one bit per token: 1 if the token is trained. For each trained span, these are the
/// tokens from the first one that overlaps it to the last one, as in transformers.
///
/// @param tokens   the bytes of each token
/// @param trained  ascending, without common bytes
/// @param skipped  number of tokens at the start of each span that are not trained
/// @return the number of trained tokens
std::int64_t append_trained(std::span<const tokenizer::byte_span> tokens,
                            std::span<const chat::byte_span> trained, std::size_t skipped,
                            formats::bit_buffer& out);

/// The byte at which a trained span begins or ends inside of a token. Nothing if there is none.
std::optional<std::size_t> shared_token(std::span<const tokenizer::byte_span> tokens,
                                        std::span<const chat::byte_span> trained);

}  // namespace millrace::preprocess
