// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/detail/export.hpp>

// Example:
//
//     // Opening with check_level::full checks every entry of the index.
//     const millrace::dataset::indexed_dataset data("web_text_document",
//                                                   {.check =
//                                                   millrace::dataset::check_level::full});
//     const auto sums = millrace::dataset::verify_sums("web_text_document", {.workers = 8});
//     if (!sums) std::cout << "no checksums: the tokens were not checked\n";

/// Checks of all bytes of a dataset.
namespace millrace::dataset {

struct verify_options {
  int workers = 1;  ///< number of threads, at least 1; the result does not depend on it
  /// Called now and then with the number of bytes that this call has checked so far. Never called
  /// by two threads at once. It may throw to stop the check.
  std::function<void(std::uint64_t bytes)> progress = {};
};

/// Checksums that both files of a dataset have.
struct verified_sums {
  std::string root;          ///< root of the `.sum`, as hexadecimal digits
  bool are_original = true;  ///< computed when the files were written, not by a repair
};

/// Compares PREFIX.bin and PREFIX.idx with their checksums in PREFIX.sum. Makes one pass over both
/// files, in constant memory per thread.
///
/// @return nullopt if there is no PREFIX.sum
/// @throws format_error  the `.sum` is invalid, or a block has changed since the `.sum` was
///                       written; the message has the byte range of the first changed block.
/// @throws io_error      a file cannot be read.
MILLRACE_EXPORT std::optional<verified_sums> verify_sums(const std::filesystem::path& prefix,
                                                         const verify_options& options = {});

/// Checks that every token of a dataset is an id of a vocabulary, in one pass over the `.bin`.
///
/// @pre the dataset was opened with `check_level::full` (otherwise the reported sequence may be
///      wrong), and vocab_size > 0.
/// @throws format_error  a token is outside 0 .. vocab_size - 1; the message has the first such
///                       token, its sequence, its offset in the sequence, and its byte in the
///                       `.bin`.
/// @throws config_error  the tokens are floats, which cannot be ids.
/// @throws io_error      a part of the `.bin` cannot be read or is missing. Then open the dataset
///                       again before other reads: in this object, zeros are in place of that part.
MILLRACE_EXPORT void verify_tokens(const indexed_dataset& data, std::int64_t vocab_size,
                                   const verify_options& options = {});

}  // namespace millrace::dataset
