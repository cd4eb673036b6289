// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/detail/export.hpp>

namespace millrace::dataset {

/// Checks that every token of a dataset is an id of a vocabulary, in one pass over the `.bin`.
///
/// @pre the dataset was opened with `check_level::full` (otherwise the reported sequence may be
///      wrong), and vocab_size > 0.
/// @throws format_error  a token is outside 0 .. vocab_size - 1; the message has the first such
///                       token, its sequence, its offset in the sequence, and its byte in the
///                       `.bin`.
/// @throws config_error  the tokens are floats, which cannot be ids.
MILLRACE_EXPORT void verify_tokens(const indexed_dataset& data, std::int64_t vocab_size);

}  // namespace millrace::dataset
