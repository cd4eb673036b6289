// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/detail/export.hpp>
#include <millrace/formats/dtype.hpp>

/// Documents as values: which of them are equal, in one dataset or in two. Two documents are equal
/// if they have the same ids, in sequences of the same lengths and, if asked, of the same modes.
namespace millrace::dataset {

/// The type in which ids of two types are compared: the type itself if both are the same, else one
/// that can represent all values of both.
/// @throws config_error  one type is a float and the other an integer
MILLRACE_EXPORT formats::dtype common_id_type(formats::dtype a, formats::dtype b);

/// Number of ids that `ids_as` converts at a time.
inline constexpr std::int64_t most_ids_as = std::int64_t{1} << 14;

/// The bytes of at most `most_ids_as` ids in another type. Copies them to `buffer` only if the type
/// differs.
/// @pre `type` is that of `ids`, or the result of `common_id_type` with it
MILLRACE_EXPORT std::span<const std::byte> ids_as(formats::dtype type, const token_view& ids,
                                                  std::vector<std::byte>& buffer);

/// A document of one of several datasets.
struct listed_document {
  std::int64_t dataset = 0;  ///< index in the list of datasets
  std::int64_t document = 0;
  /// Equal documents have the same number, others have different numbers. It has no other meaning.
  std::uint64_t group = 0;
};

struct grouping_options {
  int workers = 1;
  bool modes = true;  ///< compare modes; then all datasets have modes, or none
  /// Called now and then with the number of tokens that were hashed so far. Never called by two
  /// threads at once.
  std::function<void(std::int64_t tokens)> progress = {};
};

/// Fills in `group` of all documents in the list. Hashes find candidates, and their contents are
/// compared, so the groups are exact.
///
/// @param list  sorted by dataset and document, and so it stays
/// @pre all datasets were opened with `check_level::full`
/// @throws config_error  as `common_id_type`
MILLRACE_EXPORT void group_equal_documents(std::span<const indexed_dataset* const> datasets,
                                           std::vector<listed_document>& list,
                                           const grouping_options& options);

}  // namespace millrace::dataset
