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

/// What a `.tiktoken` file does not say and the programs that come with it do.
struct special_table {
  std::size_t ranks = 0;              ///< lines of the file
  std::vector<special_token> tokens;  ///< distinct contents; ids may be shared
  std::string eod;                    ///< which of them ends a document
};

/// The vocabulary of the name: r50k, p50k, p50k_edit, cl100k, o200k, o200k_harmony as in the
/// package tiktoken 0.14; llama3 and llama4 as Meta publishes them, llama3 with the names of the
/// first release (later ones rename some of the reserved tokens; ids and size are the same);
/// qwen2 as in the `tokenization_qwen.py` beside `qwen.tiktoken`, whose ranks and first three
/// specials Qwen2 and 2.5 share; kimi as in the `tokenizer_config.json` and `tokenization_kimi.py`
/// of Kimi K2's first release (later ones name some of the reserved tokens), up to the 163840 ids
/// of its model: that program makes two names more, for which the model has no row.
///
/// @return no tokens where the name is none of these.
special_table special_table_of(std::string_view name);

}  // namespace millrace::tokenizer::detail
