// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/formats/detail/json_writer.hpp>
#include <millrace/meta/dataset_meta.hpp>

namespace millrace::inspect {

/// The PREFIX.meta of a dataset; nullopt if there is none.
///
/// @throws io_error      the file exists but cannot be read.
/// @throws format_error  the file is invalid, or belongs to another dataset: its dtype or counts
///                       differ from the `.idx`.
std::optional<formats::dataset_meta> find_meta(const dataset::indexed_dataset& data);

/// @param root  root of PREFIX.sum; nullopt if there is none
/// @throws format_error  PREFIX.meta has a different root.
void check_root(const dataset::indexed_dataset& data, const formats::dataset_meta& meta,
                const std::optional<std::string>& root);

/// Scans the dataset to check the number of empty documents. Also checks that the counts add up.
///
/// @throws format_error  PREFIX.meta is inconsistent, or contradicts the `.idx`.
void check_all_counts(const dataset::indexed_dataset& data, const formats::dataset_meta& meta);

/// Verifies PREFIX.src. Compares it with `meta` if `meta` is given.
///
/// @return the number of inputs that PREFIX.src names; nullopt if there is no PREFIX.src
/// @throws format_error  an entry of PREFIX.src is inconsistent or contradicts `meta`; or `meta`
///                       describes a PREFIX.src, but there is none.
std::optional<std::int64_t> check_sources(const dataset::indexed_dataset& data,
                                          const std::optional<formats::dataset_meta>& meta);

/// Verifies PREFIX.mask. Compares it with `meta` if `meta` is given.
///
/// @return the number of tokens to be predicted; nullopt if there is no PREFIX.mask
/// @throws format_error  a bit has changed; or `meta` has another mask, or one although there is
///                       no PREFIX.mask.
std::optional<std::int64_t> check_mask(const dataset::indexed_dataset& data,
                                       const std::optional<formats::dataset_meta>& meta);

/// The most important fields, as one (name, value) pair per line.
std::vector<std::pair<const char*, std::string>> describe(const formats::dataset_meta& meta);

/// Writes all fields, as the value of a JSON member.
void add_meta(formats::json_writer& json, const formats::dataset_meta& meta);

}  // namespace millrace::inspect
