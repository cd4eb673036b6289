// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bpe/token_table.hpp"
#include "core/growth_limit.hpp"
#include "core/interfaces.hpp"
#include "hugging_face/json_node.hpp"

namespace millrace::tokenizer::detail {

/// The strings of all tokens of a vocabulary while `decoder_step::describe` applies the steps of a
/// decoder to them.
struct described_tokens {
  std::vector<std::string> first;  ///< by id: the string of the first token of a document
  std::vector<std::string> inner;  ///< by id: the string of any other token
  std::vector<bool> is_byte = {};  ///< by id, after a ByteFallback; else empty
  bool joined = false;             ///< a step has joined all tokens into one
  std::string strip = {};          ///< dropped from the start of the joined text ...
  std::size_t strip_times = 0;     ///< ... at most this often
};

/// One step of decoding. Changes the list of token strings that the previous step produced.
class decoder_step {
 public:
  virtual ~decoder_step() = default;
  /// @throws unencodable_text  the tokens grow beyond the limit
  virtual void apply(std::vector<std::string>& tokens, growth_limit& limit) const = 0;
  /// Applies this step to the strings of a whole vocabulary, so that they describe what apply()
  /// does with any list of its tokens. Returns false if they cannot describe this.
  virtual bool describe(described_tokens& tokens) const = 0;

  /// Decodes `tokens` with this step, which may be a whole sequence of steps. Derives the growth
  /// limit from `tokens`.
  void apply(std::vector<std::string>& tokens) const;
};

/// Reads the entry "decoder": ByteLevel, WordPiece, Metaspace, BPEDecoder, ByteFallback, Fuse,
/// Strip, Replace, CTC and Sequence.
///
/// If a decoder has another type, or if the pattern of a Replace is not supported, the tokens are
/// concatenated unchanged. This is allowed because encoding does not need a decoder.
/// @param decoder  null if the file has no decoder; then the tokens are joined with spaces
/// @param notes    receives a line with the reason if the decoder is not supported
std::unique_ptr<const decoder_step> read_decoder(const json_node* decoder,
                                                 std::vector<std::string>& notes);

/// Creates a detokenizer that looks up the string of each id in `tokens`, and then applies
/// `decoder` to the strings. An id outside `tokens` becomes U+FFFD.
std::unique_ptr<const detokenizer> make_chain_detokenizer(
    token_table tokens, std::unique_ptr<const decoder_step> decoder);

}  // namespace millrace::tokenizer::detail
