// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include <millrace/tokenizer/tokenizer.hpp>

#include "support/paths.hpp"

/// Creates tokenizers that need no files outside the source tree.
namespace millrace::test {

inline std::unique_ptr<tokenizer::tokenizer> byte_tokenizer() {
  return tokenizer::make_tokenizer(tokenizer::tokenizer_options());
}

inline std::unique_ptr<tokenizer::tokenizer> null_tokenizer(std::int64_t vocab_size) {
  tokenizer::tokenizer_options options;
  options.type = "NullTokenizer";
  options.vocab_size = vocab_size;
  return tokenizer::make_tokenizer(options);
}

inline std::unique_ptr<tokenizer::tokenizer> tiny_bpe_tokenizer() {
  tokenizer::tokenizer_options options;
  options.type = "GPT2BPETokenizer";
  options.vocab_file = golden("tiny_bpe/vocab.json");
  options.merge_file = golden("tiny_bpe/merges.txt");
  return tokenizer::make_tokenizer(options);
}

}  // namespace millrace::test
