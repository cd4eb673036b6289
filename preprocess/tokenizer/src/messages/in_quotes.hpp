// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/formats/detail/in_quotes.hpp>

namespace millrace::tokenizer::detail {

using formats::in_quotes;

}  // namespace millrace::tokenizer::detail
