// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include <millrace/tokenizer/tokenizer.hpp>

namespace millrace::tokenizer::detail {

/// `inner` with another token at the end of documents: the one whose text is `content`.
///
/// @throws config_error  no token has that text, or several have.
std::unique_ptr<tokenizer> with_eod(std::unique_ptr<tokenizer> inner, std::string_view content);

/// The one of this id.
/// @pre 0 <= eod < inner->vocab_size()
std::unique_ptr<tokenizer> with_eod(std::unique_ptr<tokenizer> inner, std::int32_t eod);

}  // namespace millrace::tokenizer::detail
