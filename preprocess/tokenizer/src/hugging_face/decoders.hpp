// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bpe/token_table.hpp"
#include "composed/growth_limit.hpp"
#include "composed/interfaces.hpp"
#include "hugging_face/json_node.hpp"

namespace millrace::tokenizer::detail {

/// One step from tokens to text: changes the list of strings that the tokens are by now.
class decoder_step {
 public:
  virtual ~decoder_step() = default;
  /// @throws unencodable_text  the tokens grow beyond the limit
  virtual void apply(std::vector<std::string>& tokens, growth_limit& limit) const = 0;

  /// The first step, or all of them.
  void apply(std::vector<std::string>& tokens) const;
};

/// Reads the entry "decoder": ByteLevel, WordPiece, Metaspace, BPEDecoder, ByteFallback, Fuse,
/// Strip, Replace, CTC and Sequence.
///
/// Where a decoder is of another type, or a Replace has a pattern that is not understood, the
/// tokens are joined as they are: what decodes oddly still encodes.
/// @param decoder  null where the file has none: then spaces join the tokens
/// @param notes  get a line that says so, and why
std::unique_ptr<const decoder_step> read_decoder(const json_node* decoder,
                                                 std::vector<std::string>& notes);

/// Strings of tokens, through a decoder. Ids outside `tokens` are U+FFFD.
std::unique_ptr<const detokenizer> make_chain_detokenizer(
    token_table tokens, std::unique_ptr<const decoder_step> decoder);

}  // namespace millrace::tokenizer::detail
