// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include <millrace/tokenizer/tokenizer.hpp>

namespace millrace::tokenizer::detail {

/// Wraps `inner` to use the token with the text `content` as the end-of-document token.
///
/// @throws config_error  no token has that text, or several do.
std::unique_ptr<tokenizer> with_eod(std::unique_ptr<tokenizer> inner, std::string_view content);

/// Like the function above, but takes the id of the end-of-document token.
/// @pre 0 <= eod < inner->vocab_size()
std::unique_ptr<tokenizer> with_eod(std::unique_ptr<tokenizer> inner, std::int32_t eod);

}  // namespace millrace::tokenizer::detail
