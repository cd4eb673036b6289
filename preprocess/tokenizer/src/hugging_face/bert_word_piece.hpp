// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>

#include <millrace/tokenizer/tokenizer.hpp>

#include "hugging_face/hugging_face_tokenizer.hpp"

namespace millrace::tokenizer::detail {

/// BERT's tokenizer of a `vocab.txt`, as Megatron's BertWordPieceLowerCase and BertWordPieceCase
/// have it: `[CLS]` and `[SEP]` around each text, and the end of a document is `[SEP]`. Behind the
/// vocabulary, and found in texts, are `<extra_id_0>` to `<extra_id_99>`, then the special tokens
/// of the options.
///
/// @param vocab_file  a token a line, ids from 0; lines end as Python's text files have it
/// @throws io_error      the file cannot be read.
/// @throws format_error  it is not UTF-8, a token is there twice, or one of BERT's special tokens
///                       is missing.
/// @throws config_error  a special token of the options is empty.
/// @pre the cased one is given no special tokens
std::unique_ptr<tokenizer> make_bert_word_piece_tokenizer(const std::filesystem::path& vocab_file,
                                                          bool lower_case,
                                                          const hugging_face_options& options = {});

}  // namespace millrace::tokenizer::detail
