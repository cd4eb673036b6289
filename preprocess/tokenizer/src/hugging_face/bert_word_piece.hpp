// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>

#include <millrace/tokenizer/tokenizer.hpp>

#include "hugging_face/hugging_face_tokenizer.hpp"

namespace millrace::tokenizer::detail {

/// BERT's tokenizer for a `vocab.txt`, as in Megatron's BertWordPieceLowerCase and
/// BertWordPieceCase. It puts `[CLS]` before each text and `[SEP]` after it. `[SEP]` is also the
/// end-of-document token. The vocabulary is followed by `<extra_id_0>` to `<extra_id_99>`, then by
/// the special tokens of the options. A text that contains one of these additional tokens gets its
/// id.
///
/// @param vocab_file  one token per line, with ids from 0. Lines end as in Python's text files.
/// @throws io_error      the file cannot be read.
/// @throws format_error  the file is not UTF-8, contains a token twice, or lacks one of BERT's
///                       special tokens.
/// @throws config_error  a special token of the options is empty.
/// @pre `options` has no special tokens if `lower_case` is false
std::unique_ptr<tokenizer> make_bert_word_piece_tokenizer(const std::filesystem::path& vocab_file,
                                                          bool lower_case,
                                                          const hugging_face_options& options = {});

}  // namespace millrace::tokenizer::detail
