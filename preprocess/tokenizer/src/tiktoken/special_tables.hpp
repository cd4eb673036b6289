// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::tokenizer::detail {

struct special_token {
  std::string content;
  std::int32_t id = 0;
};

/// Data that a `.tiktoken` file lacks, taken from the programs that are published with the file.
struct special_table {
  std::size_t ranks = 0;              ///< number of lines in the file
  std::vector<special_token> tokens;  ///< contents are distinct; several may share an id
  std::string eod;                    ///< the token that ends a document
};

/// The table of a public vocabulary:
///
///   r50k, p50k, p50k_edit, cl100k, o200k, o200k_harmony: as in the package tiktoken 0.14.
///   llama3, llama4: as published by Meta. llama3 has the names of the first release. Later
///     releases rename some of the reserved tokens, but ids and size are the same.
///   qwen2: as in the `tokenization_qwen.py` next to `qwen.tiktoken`. Qwen2 and Qwen2.5 have the
///     same ranks and the same first three special tokens.
///   kimi: as in the `tokenizer_config.json` and `tokenization_kimi.py` of Kimi K2's first release.
///     Later releases name some of the reserved tokens. The table is limited to the 163840 ids of
///     the model: `tokenization_kimi.py` defines two more names, for which the model has no row.
///
/// @return a table without tokens if `name` is none of these.
special_table special_table_of(std::string_view name);

}  // namespace millrace::tokenizer::detail
